//! No error and no notice without a test: the enums and calls of the source, compared with the cases here.

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

/// The text of a string literal, of which this is what follows its first quote.
fn literal(text: &str) -> Option<String> {
    let (end, _) = text.match_indices('"').find(|(at, _)| !text[..*at].ends_with('\\'))?;
    let lines = text[..end].split("\\\n").enumerate();
    let lines = lines.map(|(i, line)| if i == 0 { line } else { line.trim_start() });
    Some(lines.collect::<String>().replace("\\\"", "\""))
}

/// Every variant of the errors, as `Enum::Variant`, with its message, in which braces stand for values.
fn variants() -> BTreeMap<String, String> {
    let folders = ["../crates/errors/src", "../crates/pg/src/errors"];
    let texts = folders.map(|folder| files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)));
    let mut found = BTreeMap::new();
    for text in texts.iter().flatten().map(|path| read(path)) {
        let mut rest = text.as_str();
        while let Some((_, after)) = rest.split_once("pub enum ") {
            let (name, body) = after.split_once(" {\n").expect("an enum has a body");
            let (body, after) = body.split_once("\n}\n").expect("an enum has an end");
            rest = after;
            for error in body.split("#[error(\"").skip(1) {
                let variant = names(error.split_once(")]\n").expect("an attribute ends").1).next();
                let variant = variant.expect("a message has a variant");
                found.insert(format!("{name}::{variant}"), literal(error).expect("a message ends"));
            }
        }
    }
    assert!(found.len() > 100, "the enums are elsewhere: {found:#?}");
    found
}

/// The messages of all notices, in which braces stand for values: literals at the calls that report them.
fn notices() -> Vec<String> {
    let mut found = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for path in files(&root.join("src")).into_iter().chain(files(&root.join("crates"))) {
        let text = read(&path);
        for call in ["pg::notice(", "pg::warning(", ".report_choice("] {
            for (at, _) in text.match_indices(call) {
                let arguments = text[at + call.len()..].trim_start().trim_start_matches("format!(").trim_start();
                if arguments.starts_with("message, hint)") {
                    continue; // passes on what .report_choice() was given
                }
                let message = arguments.strip_prefix('"').and_then(literal);
                found.push(
                    message.unwrap_or_else(|| panic!("{}: a message is a literal: {arguments:.40}", path.display())),
                );
            }
        }
    }
    assert!(found.len() > 30, "notices are elsewhere: {found:#?}");
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
fn every_error_has_a_test() {
    let variants = variants();
    let mut covered: Vec<&str> = cases().map(|Case(error, ..)| *error).collect();
    covered.extend(situations::TESTS.iter().map(|(error, _)| error));
    covered.extend(situations::OUT_OF_REACH.iter().map(|(error, _)| error));
    let missing: Vec<_> = variants.keys().filter(|variant| !covered.contains(&variant.as_str())).collect();
    assert!(missing.is_empty(), "no test provokes {missing:#?}: add a case to its domain in tests/tests/server/errors");
    let gone: Vec<_> = covered.iter().filter(|variant| !variants.contains_key(**variant)).collect();
    assert!(gone.is_empty(), "there are no such errors: {gone:#?}");
}

#[test]
fn every_notice_has_a_test() {
    let printed = |line: &'static str| {
        let line = line.trim_start_matches("...");
        line.strip_prefix("NOTICE:  ").or_else(|| line.strip_prefix("WARNING:  "))
    };
    let elsewhere = || notices::ELSEWHERE.iter().map(|(message, _)| *message);
    let tested = || notices::CASES.iter().flat_map(|(_, told)| told.lines().filter_map(printed)).chain(elsewhere());
    let templates = notices();
    let missing: Vec<_> = templates.iter().filter(|template| !tested().any(|m| is_of(template, m))).collect();
    assert!(missing.is_empty(), "no test provokes {missing:#?}: add a case to tests/tests/server/errors/notices.rs");
    let gone: Vec<_> = elsewhere().filter(|m| !templates.iter().any(|template| is_of(template, m))).collect();
    assert!(gone.is_empty(), "there are no such notices: {gone:#?}");
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
    for (error, test) in situations::TESTS.iter().chain(notices::ELSEWHERE) {
        let (module, function) = test.split_once("::").expect("a module and a function");
        let is_there = tests.iter().any(|path| {
            path.file_stem().is_some_and(|stem| stem == module)
                && read(path).contains(&format!("#[test]\nfn {function}()"))
        });
        assert!(is_there, "{error} names {test}");
    }
}
