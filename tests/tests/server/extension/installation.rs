//! The scripts that put files into a server, or take them away, and what they refuse.

use corgipile_tests::{Cluster, Session, clustered, program, skip};
use std::env::temp_dir;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, id};

/// A script of the repository.
fn script(name: &str) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(name));
    command.env_remove("CORGIPILE_TMP");
    command
}

/// What a command says if it succeeds, or what it says on standard error.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().expect("the command can be run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// What the server's own pg_config says.
fn pg_config(option: &str) -> String {
    run(program("pg_config").arg(option)).expect("the server has a pg_config")
}

/// The server's major version.
fn major() -> u32 {
    let version = pg_config("--version");
    version.split([' ', '.']).nth(1).and_then(|major| major.parse().ok()).expect("a version")
}

/// The library that the server has.
fn library() -> PathBuf {
    Path::new(&pg_config("--pkglibdir")).join("corgipile.so")
}

/// A directory of one test, which is removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = temp_dir().join(format!("corgipile-{name}-{}", id()));
        fs::create_dir_all(&path).expect("a directory can be made");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_is_no_pg_config_of_a_server_is_refused() {
    for (path, reason) in [
        ("/usr/bin", "is a directory"),
        ("/etc/passwd", "is not a program"),
        ("/bin/true", "does not say that it is PostgreSQL's"),
        ("/nonexistent", "there is no /nonexistent"),
    ] {
        for option in [None, Some("--major")] {
            let said = run(script("pg-config").args(option).env("PG_CONFIG", path));
            assert!(said.as_ref().is_err_and(|said| said.contains(reason)), "{path}: {said:?}");
        }
    }
}

#[test]
fn a_pg_config_of_a_version_without_support_or_without_directories_is_refused() {
    let scratch = Scratch::new("pg-config");
    let (text, path) = (scratch.0.join("text"), scratch.0.join("pg_config"));
    for (says, reason) in [
        ("echo PostgreSQL 14.1", "PostgreSQL 14 is not supported, only 15 16 17 18"),
        ("[ $1 = --version ] && echo PostgreSQL 15.1", "--pkglibdir names no directory"),
    ] {
        fs::write(&text, format!("#!/bin/sh\n{says}\n")).expect("a file can be written");
        // By another process: what a process forks meanwhile would have the program open for writing.
        run(Command::new("install").args(["-m", "755"]).args([&text, &path])).expect("a program can be made");
        let said = run(script("pg-config").env("PG_CONFIG", &path));
        assert!(said.as_ref().is_err_and(|said| said.contains(reason)), "{said:?}");
    }
}

#[test]
fn a_library_is_installed_into_its_own_version_only() {
    let scratch = Scratch::new("install");
    let directories = [scratch.0.join("lib"), scratch.0.join("share")];
    let major = major();
    let install =
        |major: u32| run(script("install").arg("--major").arg(major.to_string()).arg(library()).args(&directories));

    let refused = install(major + 1);
    let reason = format!("was built for PostgreSQL {major}, not {}", major + 1);
    assert!(refused.as_ref().is_err_and(|said| said.contains(&reason)), "{refused:?}");
    assert!(!directories[0].exists(), "something was installed");

    let said = install(major).expect("the library is of this version");
    assert!(said.contains(&format!("corgipile.so, for PostgreSQL {major}")), "{said}");
    assert!(directories[0].join("corgipile.so").exists());
    assert!(directories[1].join("extension/corgipile.control").exists());

    run(script("install").arg("--uninstall").args(&directories)).expect("what was installed can be removed");
    let left = |path: &Path| fs::read_dir(path).expect("the directory is there").count();
    assert_eq!((left(&directories[0]), left(&directories[1].join("extension"))), (0, 0));
}

#[test]
fn a_program_that_is_no_extension_is_not_installed() {
    let scratch = Scratch::new("no-extension");
    let said = run(script("install").args(["--major", "15", "/bin/true"]).args([&scratch.0, &scratch.0]));
    assert!(said.as_ref().is_err_and(|said| said.contains("is no extension of PostgreSQL")), "{said:?}");
}

#[test]
fn a_place_where_no_server_can_run_is_told() {
    let scratch = Scratch::new(&"x".repeat(40));
    let long = scratch.0.to_str().expect("a plain name").to_owned();
    for (place, reason) in [
        ("relative", "is not an absolute path"),
        ("/nonexistent", "is no directory that can be written to"),
        (&long, "is longer than 40 characters"),
    ] {
        let said = run(script("server-directory").env("CORGIPILE_TMP", place));
        assert!(said.as_ref().is_err_and(|said| said.contains(reason)), "{place}: {said:?}");
    }
}

/// A session goes on with the library that it has loaded, and its workers would load the one that is there now.
#[test]
fn a_session_whose_library_was_replaced_trains_alone() {
    let scratch = Scratch::new("replaced");
    let original = std::env::var("PG_CONFIG").expect("scripts/with-postgres sets it");
    let copy = scratch.0.join("copy");
    let programs = run(script("private-copy").arg(original).arg(library()).arg(&copy)).expect("it can be copied");
    let programs = Path::new(&programs);
    let cluster = Cluster::of(programs, &["dynamic_shared_memory_type = mmap"]);
    let mut session = cluster.session();
    session.run("CREATE EXTENSION corgipile");
    clustered(&mut session, "t", 3000);
    let trained_by = |session: &mut Session, processes: u32| {
        let model = session.trained("'t', max_epochs => 2, seed => 3, workers => 2");
        assert_eq!(session.processes_of(model.id), processes);
        model.bits()
    };
    let before = trained_by(&mut session, 2);

    let installed = run(Command::new(programs.join("pg_config")).arg("--pkglibdir")).expect("it tells");
    run(Command::new("install").arg(library()).arg(&installed)).expect("it can be installed again");
    trained_by(&mut session, 1);
    let training = "EXPLAIN (ANALYZE) SELECT FROM corgipile_train('t', max_epochs => 2, prefetch => 'on')";
    let plan = session.lines(training).join("\n");
    assert!(plan.contains("the library was replaced in this session"), "{plan}");
    assert_eq!(trained_by(&mut cluster.session(), 2), before, "a new session has loaded what is there");
}

/// What a volume with an image of the extension has, as CloudNativePG mounts it, is found by this server and by the
/// processes that it starts.
#[test]
fn the_extension_may_be_in_a_volume_of_its_own() {
    let skipped = |reason| skip(the_extension_may_be_in_a_volume_of_its_own, reason);
    if major() < 18 {
        return skipped("extension_control_path came with PostgreSQL 18");
    }
    let volume = Scratch::new("volume");
    let parts = ["lib", "share"].map(|part| volume.0.join(part));
    run(script("install").arg(library()).args(parts)).expect("it is installed into the volume");
    let Some(cluster) = Cluster::with_volume(&volume.0) else {
        return skipped("the server is one that is installed with corgipile, and there is no other without it");
    };
    let mut session = cluster.session();
    session.run("CREATE EXTENSION corgipile");
    clustered(&mut session, "t", 3000);
    for processes in [1, 2] {
        let model = session.trained(&format!("'t', max_epochs => 2, workers => {processes}"));
        assert_eq!(session.processes_of(model.id), processes);
    }
}
