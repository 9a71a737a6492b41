//! No error without a test: the enums of the source, compared with the cases here.

use super::{Case, aggregate, argument, models, notices, predict, rows, situations, source, toc, training};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// All cases.
fn cases() -> impl Iterator<Item = &'static Case> {
    [
        aggregate::CASES,
        argument::CASES,
        models::CASES,
        predict::CASES,
        rows::CASES,
        source::CASES,
        toc::CASES,
        training::CASES,
    ]
    .into_iter()
    .flatten()
}

/// The Rust files of a directory and those below it.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let paths = entries.map(|entry| entry.expect("the directory can be listed").path());
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    paths.flat_map(below).filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every variant of the errors, as `Enum::Variant`, with its message, in which braces stand for values;
/// and every notice.
fn variants() -> BTreeMap<String, String> {
    let folders = ["../src/errors", "../crates/pg/src/errors"];
    let texts = folders.map(|folder| files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)));
    let mut found = BTreeMap::new();
    for text in texts.iter().flatten().map(|path| read(path)) {
        let mut rest = text.as_str();
        while let Some((_, after)) = rest.split_once("pub enum ") {
            let (name, body) = after.split_once(" {\n").expect("an enum has a body");
            let (body, after) = body.split_once("\n}\n").expect("an enum has an end");
            rest = after;
            if name == "Notice" {
                found.extend(names(body).map(|variant| (format!("Notice::{variant}"), String::new())));
            }
            for error in body.split("#[error(\"").skip(1) {
                let end =
                    error.match_indices('"').find(|(at, _)| !error[..*at].ends_with('\\')).expect("a message ends").0;
                let variant = names(error[end..].split_once(")]\n").expect("an attribute ends").1).next();
                let variant = variant.expect("a message has a variant");
                found.insert(format!("{name}::{variant}"), error[..end].replace("\\\"", "\""));
            }
        }
    }
    assert!(found.len() > 100, "the enums are elsewhere: {found:#?}");
    found
}

/// The names at the beginnings of an enum's lines.
fn names(body: &str) -> impl Iterator<Item = &str> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    lines
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
        .filter_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()).next())
}

/// Can this message be written so? What stands in braces is any text, and so is `...` in the message.
fn is_of(template: &str, message: &str) -> bool {
    let mut fixed = template.split('{').map(|part| part.split_once('}').map_or(part, |(_, after)| after));
    let mut rest = message.strip_prefix(fixed.next().unwrap_or_default());
    for part in fixed {
        rest = rest.and_then(|rest| rest.split_once(part).map(|(_, after)| after));
    }
    rest.is_some()
}

#[test]
fn every_error_and_notice_has_a_test() {
    let variants = variants();
    let mut covered: Vec<&str> = cases().map(|Case(error, ..)| *error).collect();
    covered.extend(notices::CASES.iter().map(|(notice, ..)| notice));
    covered.extend(situations::TESTS.iter().map(|(error, _)| error));
    covered.extend(situations::OUT_OF_REACH.iter().map(|(error, _)| error));
    let missing: Vec<_> = variants.keys().filter(|variant| !covered.contains(&variant.as_str())).collect();
    assert!(missing.is_empty(), "no test provokes {missing:#?}: add a case to its domain in tests/tests/server/errors");
    let gone: Vec<_> = covered.iter().filter(|variant| !variants.contains_key(**variant)).collect();
    assert!(gone.is_empty(), "there are no such errors: {gone:#?}");
}

#[test]
fn every_case_is_of_the_error_that_it_names() {
    let variants = variants();
    let wrong: Vec<_> = cases()
        .filter(|Case(error, _, _, message, _)| !variants.get(*error).is_some_and(|template| is_of(template, message)))
        .map(|Case(error, _, _, message, _)| format!("{error}: {message}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_tests_of_errors_are_there() {
    let tests = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    for (error, test) in situations::TESTS {
        let (module, function) = test.split_once("::").expect("a module and a function");
        let is_there = tests.iter().any(|path| {
            path.file_stem().is_some_and(|stem| stem == module)
                && read(path).contains(&format!("#[test]\nfn {function}()"))
        });
        assert!(is_there, "{error} names {test}");
    }
}
