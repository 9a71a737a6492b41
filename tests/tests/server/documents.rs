//! The documents' examples run, and print what the documents say.

use corgipile_tests::{Database, Document};

#[test]
fn every_example_of_the_readme_and_the_docs_runs() {
    let paths = Document::all();
    assert!(paths.iter().any(|path| path.ends_with("README.md")));
    for path in paths {
        let document = Document::read(&path);
        let db = Database::empty();
        document.run(db.name());
        if path.ends_with("README.md") {
            assert!(document.examples() > 0, "the README has examples");
        }
    }
}
