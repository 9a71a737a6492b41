//! The files of a data set: which ones match, and whether they are still the same.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use source::SourceError;

/// A file as it was when the data set was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataFile {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: u64,
}

impl DataFile {
    pub(crate) fn find(path: PathBuf) -> Result<Self, SourceError> {
        let metadata = std::fs::metadata(&path).map_err(|error| SourceError::Io { path: path.clone(), error })?;
        if metadata.is_dir() {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(SourceError::Io { path, error });
        }
        Ok(Self { size: metadata.len(), modified: modified(&metadata), path })
    }

    /// Opens the file, if it is still the one that was found.
    pub(crate) fn open(&self) -> Result<File, SourceError> {
        let file = File::open(&self.path).map_err(|error| self.io(error))?;
        let metadata = file.metadata().map_err(|error| self.io(error))?;
        if metadata.len() != self.size || modified(&metadata) != self.modified {
            return Err(SourceError::Changed { path: self.path.clone() });
        }
        Ok(file)
    }

    pub(crate) fn io(&self, error: io::Error) -> SourceError {
        SourceError::Io { path: self.path.clone(), error }
    }

    pub(crate) fn damaged(&self, offset: u64, what: impl Into<String>) -> SourceError {
        SourceError::Damaged { path: self.path.clone(), offset, what: what.into() }
    }

    pub(crate) fn schema(&self, what: impl Into<String>) -> SourceError {
        SourceError::Schema { path: self.path.clone(), what: what.into() }
    }
}

pub(crate) fn modified(metadata: &Metadata) -> u64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// The files that the patterns match: the patterns in their order, the files of each sorted by name. A pattern is a
/// file, a directory (its files with one of the endings, at any depth), or has `*`, `?`, `[...]` or `**`.
pub(crate) fn find(patterns: &[String], endings: &[&str]) -> Result<Vec<DataFile>, SourceError> {
    if patterns.is_empty() {
        return Err(SourceError::Invalid("no path was given".into()));
    }
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    for pattern in patterns {
        for path in matches(pattern, endings)? {
            if !seen.insert(path.clone()) {
                let path = path.display();
                return Err(SourceError::Invalid(format!("{path} is matched twice, the second time by {pattern:?}")));
            }
            files.push(DataFile::find(path)?);
        }
    }
    Ok(files)
}

fn matches(pattern: &str, endings: &[&str]) -> Result<Vec<PathBuf>, SourceError> {
    let path = Path::new(pattern);
    // A file whose name happens to have a bracket is meant before what the bracket could mean.
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = if path.is_dir() {
        let escaped = glob::Pattern::escape(pattern.trim_end_matches('/'));
        let mut found = expand(&format!("{escaped}/**/*"))?;
        found.retain(|path| has_ending(path, endings));
        found
    } else if pattern.contains(['*', '?', '[']) {
        expand(pattern)?
    } else {
        // What the system says: that nothing is there, or that it may not be seen.
        let error = path.metadata().err().unwrap_or_else(|| io::Error::other("is neither a file nor a folder"));
        return Err(SourceError::Io { path: path.to_owned(), error });
    };
    found.sort();
    if found.is_empty() {
        let what = if path.is_dir() {
            format!("has no file named *.{}", endings.join(" or *."))
        } else {
            "matches no file".into()
        };
        let error = io::Error::new(io::ErrorKind::NotFound, what);
        return Err(SourceError::Io { path: path.to_owned(), error });
    }
    Ok(found)
}

/// Files below a directory that are data: not what Spark and others put next to them (`_SUCCESS`, `.part.crc`).
fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with(['_', '.']) && endings.iter().any(|ending| name.ends_with(&format!(".{ending}")))
}

fn expand(pattern: &str) -> Result<Vec<PathBuf>, SourceError> {
    let paths = glob::glob(pattern).map_err(|error| SourceError::Invalid(format!("pattern {pattern:?}: {error}")))?;
    let mut found = Vec::new();
    for path in paths {
        let path = path.map_err(|error| SourceError::Io { path: error.path().to_owned(), error: error.into() })?;
        if path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

/// A hash that is the same in every version and on every machine: FNV-1a of 64 bits. Positions in an epoch are saved
/// with it.
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn new(format: &str) -> Self {
        let mut print = Self(0xcbf2_9ce4_8422_2325);
        print.text(format);
        print
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    pub(crate) fn files(&mut self, files: &[DataFile]) {
        self.number(files.len() as u64);
        for file in files {
            self.text(&file.path.to_string_lossy());
            self.number(file.size);
            self.number(file.modified);
        }
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &[DataFile]) -> Vec<String> {
        files.iter().map(|file| file.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn patterns_match_in_their_order_and_files_by_name() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.x", "a.x", "c.y", "_SUCCESS.x", ".a.x", "odd[1].x"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        std::fs::create_dir(dir.path().join("deep")).unwrap();
        std::fs::write(dir.path().join("deep/d.x"), "d").unwrap();
        let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        assert_eq!(names(&find(&[at("c.y"), at("[ab].x")], &["x"]).unwrap()), ["c.y", "a.x", "b.x"]);
        assert_eq!(names(&find(&[at("")], &["x"]).unwrap()), ["a.x", "b.x", "d.x", "odd[1].x"]);
        assert_eq!(names(&find(&[at("odd[1].x")], &["x"]).unwrap()), ["odd[1].x"]);
        let twice = find(&[at("a.x"), at("*.x")], &["x"]).unwrap_err().to_string();
        assert!(twice.contains("a.x is matched twice"), "{twice}");
        for missing in [at("e.x"), at("*.z")] {
            assert!(matches!(find(&[missing], &["x"]), Err(SourceError::Io { error, .. })
                if error.kind() == io::ErrorKind::NotFound));
        }
    }

    #[test]
    fn a_changed_file_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let file = DataFile::find(path.clone()).unwrap();
        file.open().unwrap();
        std::fs::write(&path, "longer").unwrap();
        assert!(matches!(file.open(), Err(SourceError::Changed { .. })));
    }

    #[test]
    fn the_fingerprint_is_that_of_fnv() {
        let mut print = Fingerprint(0xcbf2_9ce4_8422_2325);
        print.bytes(b"foobar");
        assert_eq!(print.finish(), 0x8594_4171_f739_67e8); // from the authors' table of test vectors
    }
}
