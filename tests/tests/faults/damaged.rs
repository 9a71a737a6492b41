//! Pages that a crash or a disk has damaged are PostgreSQL's own errors or ours, never memory outside of the page.

use crate::probe::report;
use corgipile_tests::{Cluster, Failure, Session};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: usize = 8192;

/// Bytes of a page's header: line pointers follow it.
const HEADER: usize = 24;

/// Changes the pages of a relation's file.
fn change_pages(data: &Path, file: &Path, change: impl Fn(usize, &mut [u8])) {
    let file = data.join(file);
    let mut bytes = fs::read(&file).expect("the relation has a file");
    bytes.chunks_exact_mut(PAGE).enumerate().for_each(|(number, page)| change(number, page));
    fs::write(&file, bytes).expect("it can be written");
}

/// A table of values out of line, and the file of its TOAST table. Everybody sees all rows.
fn table(db: &mut Session) -> PathBuf {
    db.run(
        "CREATE TABLE t (id int, label int, x real[]);
         ALTER TABLE t ALTER x SET STORAGE external;
         INSERT INTO t SELECT i, i % 2, array_fill((i % 7 + i % 2)::real, ARRAY[1500]) FROM generate_series(1, 400) i",
    );
    db.run("VACUUM (FREEZE, ANALYZE) t");
    file_of(db, "(SELECT reltoastrelid FROM pg_class WHERE relname = 't')")
}

fn file_of(db: &mut Session, relation: &str) -> PathBuf {
    PathBuf::from(db.line(&format!("SELECT pg_relation_filepath({relation}::regclass)")))
}

const TRAINING: &str = "SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1)";

/// What a training says of damaged data.
fn failure(db: &mut Session) -> Failure {
    let failure = db.attempt(TRAINING).expect_err("the data is damaged");
    assert_eq!(failure.code, "XX001", "{failure:#?}");
    failure
}

#[test]
fn a_damaged_page_is_an_error_and_nothing_is_read_outside_of_it() {
    let mut cluster = Cluster::new(&["zero_damaged_pages = on"]);
    let mut db = cluster.session();
    let toast = table(&mut db);
    assert_eq!(db.lines(TRAINING), ["2"]);
    let whole = fs::read(cluster.data().join(&toast)).expect("the TOAST table has a file");

    // no line pointers, as far as the header goes, and yet there are chunks behind it: PostgreSQL finds none of them
    cluster.restart_after(|data| change_pages(data, &toast, |_, page| page[12..14].fill(0)));
    let mut db = cluster.session();
    failure(&mut db).says(&["missing chunk"]); // before PostgreSQL looks, which marks the index's entries as dead
    db.fails_with("SELECT sum(x[1]) FROM t", "XX001").says(&["missing chunk"]);

    // pages of zeros, as a crash leaves them, and pages that are invalid, which are taken for such
    for odd in [0, 0xff] {
        cluster.restart_after(|data| {
            fs::write(data.join(&toast), &whole).expect("it can be written");
            change_pages(data, &toast, |number, page| {
                if number % 3 == 1 {
                    page.fill(odd);
                }
            });
        });
        let mut db = cluster.session();
        failure(&mut db).says(&["missing chunk"]);
    }

    // line pointers that point out of the page, and chunks that claim another length than they have: whatever
    // PostgreSQL makes of them, the server stays
    type Damage = fn(&mut [u8]);
    let kinds: [(&str, Damage); 3] = [
        ("a line pointer that points out of the page", |page| {
            for line in page[HEADER..HEADER + 16].chunks_exact_mut(4) {
                line.copy_from_slice(&(0x1ff8_u32 | 1 << 15 | 2000 << 17).to_le_bytes());
            }
        }),
        ("a chunk that claims more bytes than its tuple has", |page| {
            let line = u32::from_le_bytes(page[HEADER..HEADER + 4].try_into().expect("four bytes"));
            page[HEADER..HEADER + 4].copy_from_slice(&(line & 0x1_ffff | 40 << 17).to_le_bytes());
        }),
        ("a chunk without a length", |page| {
            let line = u32::from_le_bytes(page[HEADER..HEADER + 4].try_into().expect("four bytes"));
            let offset = (line & 0x7fff) as usize;
            let data = offset + usize::from(page[offset + 22]);
            page[data + 8..data + 12].fill(0);
        }),
    ];
    for (what, damage) in kinds {
        cluster.restart_after(|data| {
            fs::write(data.join(&toast), &whole).expect("it can be written");
            change_pages(data, &toast, |_, page| damage(page));
        });
        let mut db = cluster.session();
        let result = db.attempt(TRAINING);
        let lost = result.is_err_and(|failure| failure.code == "closed");
        assert!(!lost, "{what}");
        assert_eq!(cluster.session().line("SELECT 1"), "1", "{what}");
        assert!(!cluster.log().contains("was terminated by signal"), "{what}");
    }
    report("Damaged TOAST pages: 6 kinds, 0 servers lost");
}

#[test]
fn a_line_pointer_that_points_out_of_its_page_is_an_error_that_names_the_page() {
    let mut cluster = Cluster::new(&[]);
    let mut db = cluster.session();
    db.run(
        "CREATE TABLE t (id int, label int, x real[]);
            INSERT INTO t SELECT i, i % 2, ARRAY[i % 7 + i % 2, 1]::real[] FROM generate_series(1, 4000) i",
    );
    let visible = file_of(&mut db, "'t'");
    for (everybody_sees, how) in [(false, "PostgreSQL's way"), (true, "ours")] {
        if everybody_sees {
            cluster.session().run("VACUUM (FREEZE) t");
        }
        let mut before = Vec::new();
        cluster.restart_after(|data| {
            before = fs::read(data.join(&visible)).expect("the table has a file");
            change_pages(data, &visible, |number, page| {
                if number == 3 {
                    // the second tuple, all of it that is read by PostgreSQL within the page, and longer than that
                    let line = u32::from_le_bytes(page[HEADER + 4..HEADER + 8].try_into().expect("four bytes"));
                    page[HEADER + 4..HEADER + 8].copy_from_slice(&(line & 0x1_ffff | 8000 << 17).to_le_bytes());
                }
            });
        });
        let mut db = cluster.session();
        assert_eq!(db.line("SELECT count(*) FROM t"), "4000", "{how}");
        failure(&mut db).is(
            "XX001",
            "page 3 of relation \"t\" is damaged: a line pointer points outside of it",
            "Restore the table from a backup; verify_heapam() of the extension amcheck finds other damage.",
        );
        db.fails_with("SELECT count(*) FROM corgipile_shuffle(NULL::t)", "XX001");
        cluster.restart_after(|data| fs::write(data.join(&visible), before).expect("it can be written"));
        assert_eq!(cluster.session().lines(TRAINING), ["2"], "{how}");
    }
}
