//! The documents' examples, which are run.
//!
//! Each page, README.md and all under docs/, has a database and a folder of its own,
//! in which its examples run in their order.
//!
//! The convention: every fenced block says what it is.
//! - ` ```sql `: statements, run in the order of the document, in one psql session per document; none may fail.
//! - ` ```sql setup `: the same, and in the tutorial the statements that load the flights: see below.
//! - ` ```sql fails=22023 `: the last statement must fail with this SQLSTATE.
//! - ` ```psql `: a transcript. Lines that begin with a prompt (`=> `, `mydb=# `, and `-> ` for the lines that follow)
//!   are run, the others are what psql has printed.
//! - ` ```psql compare `: the same, and what psql prints must be what the document says; `...` stands for anything.
//! - ` ```text `, `sh`, `json`, `toml`, `rust`: not SQL, not run. `python`: run by the tests of the Python package.
//! - ` ```python `, `java`, `javascript`, `go` and `sql cron` of `docs/deploy/applications.md`: run by
//!   `scripts/test-applications`.
//!
//! A page that names `flights` begins where the set-up of the tutorial ends: with the extension and this table. The
//! data are those that `scripts/flights` fetches, and the CSV files are in the folder where psql runs. A page is
//! skipped, which is reported, if there are no such files, or if it creates an extension that the server has not, such
//! as `vector`.
//!
//! Any other block, and SQL in an indented block that would go untested, is an error of the document. So is a figure in
//! the prose that is not the one of the output that it repeats: `figures.rs` has the marks.

use crate::{data, figures, server};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NOT_RUN: [&str; 9] = ["text", "sh", "json", "toml", "rust", "python", "java", "javascript", "go"];
const MARK: &str = "corgipile-document-mark";

/// The page whose set-up other pages build upon.
const TUTORIAL: &str = "docs/start/tutorial.md";

/// A Markdown file.
pub struct Document {
    path: PathBuf,
    blocks: Vec<Block>,
}

struct Block {
    line: usize,
    /// Is it part of the set-up that other pages build upon?
    setup: bool,
    /// Statements, or input and what it printed.
    steps: Vec<Step>,
    compare: bool,
    fails: Option<String>,
}

#[derive(Default)]
struct Step {
    input: String,
    output: Vec<String>,
}

impl Document {
    /// The folder of the repository.
    pub fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository is there")
    }

    /// README.md, and every page under `docs/`.
    pub fn all() -> Vec<PathBuf> {
        let root = Self::root();
        let mut paths = vec![root.join("README.md")];
        add_pages(&root.join("docs"), &mut paths);
        paths
    }

    /// Is a page to be run? With `DOCUMENT` in the environment those are whose path contains its value.
    pub fn is_wanted(page: &str) -> bool {
        std::env::var("DOCUMENT").ok().is_none_or(|wanted| page.contains(&wanted))
    }

    /// Reads a document.
    ///
    /// # Errors
    /// File, line and what breaks the convention.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let at = |e: String| format!("{}:{e}", path.display());
        let blocks = parse(&text).map_err(at)?;
        figures::check(&text, &Self::root()).map_err(at)?;
        Ok(Self { path: path.to_owned(), blocks })
    }

    /// How many blocks are run.
    pub fn examples(&self) -> usize {
        self.blocks.len()
    }

    /// Whether the examples read the flights.
    pub fn needs_flights(&self) -> bool {
        self.steps().any(|step| step.input.contains("flights"))
    }

    /// Whether the page itself loads the flights.
    pub fn has_setup(&self) -> bool {
        self.blocks.iter().any(|block| block.setup)
    }

    /// The name of a database in which the set-up of the tutorial has run. It is made once for all tests of a server.
    ///
    /// # Errors
    /// Why it does not exist: the files are missing, or a statement of the set-up failed.
    pub fn flights() -> Result<String, String> {
        server::once("flights", || {
            let name = "corgipile_flights";
            let path = Self::root().join(TUTORIAL);
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{TUTORIAL}: {e}"))?;
            // not by `read`: a figure of the tutorial that is wrong should fail its own test alone
            let mut tutorial = Self { path, blocks: parse(&text)? };
            tutorial.blocks.retain(|block| block.setup);
            server::admin()
                .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'"))
                .map_err(|e| e.to_string())?;
            tutorial.run(name)?;
            // CREATE DATABASE does not copy what somebody, such as an autovacuum worker, is connected to.
            let close = format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false");
            server::admin().batch_execute(&close).map_err(|e| e.to_string())?;
            Ok(name.to_owned())
        })
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.blocks.iter().flat_map(|block| &block.steps)
    }

    /// The extensions that the examples create.
    pub fn extensions(&self) -> impl Iterator<Item = &str> {
        self.steps().flat_map(|step| {
            let created = step.input.split("CREATE EXTENSION ").skip(1);
            created.filter_map(|rest| rest.trim_start_matches("IF NOT EXISTS ").split([' ', ';', '\n']).next())
        })
    }

    /// Runs all blocks in a database, in one session.
    ///
    /// # Errors
    /// File, line and text of the first example that is not as the document says.
    pub fn run(&self, database: &str) -> Result<(), String> {
        let output = psql(database, &self.script())?;
        let mut sections = output.split(MARK).skip(1);
        for block in &self.blocks {
            let at =
                |reason: &str, step: &Step| format!("{}:{}: {reason}\n{}", self.path.display(), block.line, step.input);
            for step in &block.steps {
                let section = sections.next().ok_or_else(|| at("psql did not come to this", step))?;
                block.check(step, section).map_err(|reason| at(&reason, step))?;
            }
        }
        Ok(())
    }

    /// Every step, after a mark and followed by what became of it.
    fn script(&self) -> String {
        self.steps().map(|step| format!("\\echo {MARK}\n{}\n\\echo :ERROR :SQLSTATE\n", step.input)).collect()
    }
}

/// Adds the Markdown files of a folder and the folders in it, in alphabetical order.
fn add_pages(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{} cannot be listed: {e}", folder.display()));
    let mut entries: Vec<PathBuf> = entries.map(|e| e.expect("an entry can be read").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            add_pages(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
}

impl Block {
    /// `section` is what the step printed and a last line with error flag and SQLSTATE.
    fn check(&self, step: &Step, section: &str) -> Result<(), String> {
        let mut printed: Vec<&str> = section.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let outcome = printed.pop().unwrap_or_default();
        let failed = printed.iter().any(|line| line.contains("ERROR:  "));
        let may_fail = step.output.iter().any(|line| line.contains("ERROR:  "));
        let as_it_says = match &self.fails {
            Some(code) => outcome == format!("true {code}"),
            None => !failed || may_fail,
        };
        if !as_it_says {
            return Err(format!("ended with \"{outcome}\":\n{}", printed.join("\n")));
        }
        let expected: Vec<&str> = step.output.iter().map(|l| l.trim_end()).filter(|l| !l.is_empty()).collect();
        if self.compare && !matches(&expected, &printed) {
            return Err(format!("printed\n{}\nwhere the document says\n{}", printed.join("\n"), expected.join("\n")));
        }
        Ok(())
    }
}

/// Whether lines are as expected; `...` stands for any text in a line, and alone for any lines.
fn matches(expected: &[&str], printed: &[&str]) -> bool {
    match (expected, printed) {
        ([], []) => true,
        (["...", rest @ ..], _) => (0..=printed.len()).any(|skip| matches(rest, &printed[skip..])),
        ([e, es @ ..], [p, ps @ ..]) => line_matches(e, p) && matches(es, ps),
        _ => false,
    }
}

/// PostgreSQL 18 writes rows of EXPLAIN ANALYZE with decimals, which are left out, and so is how wide they make a
/// plan.
fn line_matches(expected: &str, printed: &str) -> bool {
    let is_of_plan =
        |line: &str| line.trim() == "QUERY PLAN" || (!line.is_empty() && line.bytes().all(|byte| byte == b'-'));
    if is_of_plan(expected) && is_of_plan(printed) {
        return expected.trim_matches([' ', '-']) == printed.trim_matches([' ', '-']);
    }
    let printed = &printed.replace(".00 loops=", " loops=");
    let Some((head, tail)) = expected.split_once("...") else { return expected == printed };
    let Some(rest) = printed.strip_prefix(head) else { return false };
    rest.char_indices().map(|(i, _)| i).chain([rest.len()]).any(|i| line_matches(tail, &rest[i..]))
}

/// Runs a script in a folder of its own, where examples may leave files.
fn psql(database: &str, script: &str) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("{database}-files"));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for file in data::flights_directory().into_iter().flat_map(std::fs::read_dir).flatten() {
        let file = file.expect("an entry can be read");
        std::os::unix::fs::symlink(file.path(), folder.join(file.file_name())).expect("a link can be made");
    }
    let result = psql_in(&folder, database, script);
    std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    result
}

fn psql_in(folder: &Path, database: &str, script: &str) -> Result<String, String> {
    // Errors go where the results go, in their order, so that a transcript shows both.
    let mut child = Command::new("sh")
        .args(["-c", "exec \"$0\" \"$@\" 2>&1"])
        .arg(server::program("psql").get_program())
        .args(["-X", "-d", database])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("psql starts");
    let mut stdin = child.stdin.take().expect("psql has a standard input");
    let script = script.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output().expect("psql ends");
    let written = writer.join().expect("the writer does not panic");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    match (written, output.status.success()) {
        (Ok(()), true) => Ok(printed),
        (written, _) => Err(format!("psql failed ({}, {written:?}):\n{printed}", output.status)),
    }
}

/// The blocks that are run, or "line: what is wrong".
fn parse(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let line_number = number + 1;
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let body: Vec<&str> = lines.by_ref().map(|(_, l)| l).take_while(|l| l.trim() != "```").collect();
            blocks.extend(block(line_number, info.trim(), &body)?);
        } else if line.starts_with("    ") && (line.contains("corgipile_") || line.contains("SELECT ")) {
            return Err(format!("{line_number}: SQL outside of a fenced block is not tested"));
        }
    }
    Ok(blocks)
}

fn block(line: usize, info: &str, body: &[&str]) -> Result<Option<Block>, String> {
    let words: Vec<&str> = info.split_whitespace().collect();
    let statements = || vec![Step { input: body.join("\n"), output: Vec::new() }];
    let (steps, compare, fails) = match words[..] {
        [language] if NOT_RUN.contains(&language) => return Ok(None),
        ["sql", "cron"] => return Ok(None),
        ["sql"] | ["sql", "setup"] => (statements(), false, None),
        ["sql", fails] if fails.starts_with("fails=") => {
            (statements(), false, Some(fails["fails=".len()..].to_owned()))
        }
        ["psql"] => (transcript(line, body)?, false, None),
        ["psql", "compare"] => (transcript(line, body)?, true, None),
        _ => return Err(format!("{line}: unknown kind of block \"{info}\"")),
    };
    Ok(Some(Block { line, setup: words.contains(&"setup"), steps, compare, fails }))
}

fn transcript(line: usize, body: &[&str]) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for text in body {
        match (prompt(text), steps.last_mut()) {
            (Some(('=', input)), _) => steps.push(Step { input: input.to_owned(), output: Vec::new() }),
            (Some((_, input)), Some(step)) => step.input = format!("{}\n{input}", step.input),
            (None, Some(step)) => step.output.push((*text).to_owned()),
            _ => return Err(format!("{line}: a transcript begins with a prompt such as \"=> \"")),
        }
    }
    Ok(steps)
}

/// Splits `mydb=# SELECT 1` into the kind of prompt and the input.
fn prompt(line: &str) -> Option<(char, &str)> {
    let at = line.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let mut rest = line[at..].chars();
    let kind = rest.next().filter(|c| matches!(c, '=' | '-' | '(' | '\''))?;
    rest.next().filter(|c| matches!(c, '>' | '#'))?;
    let input = rest.as_str();
    input.strip_prefix(' ').or(input.is_empty().then_some("")).map(|input| (kind, input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ellipses_stand_for_anything() {
        assert!(matches(&["a ... c", "...", "e"], &["a b c", "x", "y", "e"]));
        assert!(!matches(&["a ... c"], &["a b d"]));
        assert!(!matches(&["a"], &["a", "b"]));
    }

    #[test]
    fn prompts_are_told_from_output() {
        assert_eq!(prompt("=> SELECT 1;"), Some(('=', "SELECT 1;")));
        assert_eq!(prompt("demo=# SELECT 1;"), Some(('=', "SELECT 1;")));
        assert_eq!(prompt("demo-# FROM t;"), Some(('-', "FROM t;")));
        assert_eq!(prompt("   ->  Custom Scan (CorgiPileTupleShuffle)"), None);
        assert_eq!(prompt("--------+-----"), None);
        assert_eq!(prompt("(1 row)"), None);
    }

    #[test]
    fn a_transcript_keeps_input_and_output_together() {
        let blocks = parse("```psql compare\n=> SELECT\n-> 1;\n ?column?\n(1 row)\n=> SELECT 2;\n```\n").unwrap();
        assert!(blocks[0].compare);
        let steps: Vec<_> = blocks[0].steps.iter().map(|s| (s.input.as_str(), s.output.len())).collect();
        assert_eq!(steps, [("SELECT\n1;", 2), ("SELECT 2;", 0)]);
    }

    #[test]
    fn an_untested_example_is_an_error_of_the_document() {
        assert!(parse("```\nSELECT 1;\n```").is_err());
        assert!(parse("    SELECT 1;").is_err());
        assert!(parse("```sh\nmake\n```").unwrap().is_empty());
    }
}
