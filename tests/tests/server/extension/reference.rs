//! The pages of reference that are written from the catalog say what it says.

use corgipile_tests::{Cluster, Database, Reference};
use std::fs;
use std::path::Path;

/// Set by `make reference`, which writes the pages.
const WRITE: &str = "CORGIPILE_WRITE_REFERENCE";

#[test]
fn the_pages_of_reference_are_what_the_catalog_says() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference");
    let cluster = Cluster::new(&["shared_preload_libraries = 'corgipile'"]);
    let (mut db, mut preloaded) = (Database::new(), cluster.session());
    let mut reference = Reference::new(&mut db, &mut preloaded);
    let mut stale = Vec::new();
    for name in ["functions", "options", "settings", "views"] {
        let part = fs::read_to_string(pages.join(format!("parts/{name}.md.in"))).expect("there is a part");
        let page = reference.page(&part).unwrap_or_else(|fault| panic!("parts/{name}.md.in: {fault}"));
        if name == "functions" {
            assert_eq!(reference.without_example(&page), Vec::<String>::new(), "these have no example");
        }
        let path = pages.join(format!("{name}.md"));
        if std::env::var_os(WRITE).is_some() {
            fs::write(&path, page).expect("the page can be written");
        } else if fs::read_to_string(&path).ok() != Some(page) {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "{stale:?} are stale: run `make reference`");
    assert_eq!(reference.left_out(), Vec::<String>::new(), "no part names these");
}
