//! The names of the encodings.

use std::fmt;
use std::str::FromStr;

/// How a mini-batch is kept in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Every entry, row by row.
    Den,
    /// Column and value of every non-zero.
    Csr,
    /// CSR with indices into a table of the distinct values.
    Cvi,
    /// Every entry as an index into a table of the distinct values.
    Dvi,
    /// Tuple-oriented compression: sequences of pairs of column and value, coded by a prefix tree.
    Toc,
    /// DEN compressed by gzip.
    Gzip,
    /// DEN compressed by Snappy.
    Snappy,
}

impl Encoding {
    /// All encodings.
    pub const ALL: [Encoding; 7] =
        [Encoding::Den, Encoding::Csr, Encoding::Cvi, Encoding::Dvi, Encoding::Toc, Encoding::Gzip, Encoding::Snappy];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Den => "den",
            Encoding::Csr => "csr",
            Encoding::Cvi => "cvi",
            Encoding::Dvi => "dvi",
            Encoding::Toc => "toc",
            Encoding::Gzip => "gzip",
            Encoding::Snappy => "snappy",
        }
    }

    /// Whether its bytes grow with all entries and not with the non-zeros only.
    pub(crate) fn holds_zeros(self) -> bool {
        matches!(self, Encoding::Den | Encoding::Dvi | Encoding::Gzip | Encoding::Snappy)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No encoding has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown encoding \"{0}\": known are den, csr, cvi, dvi, toc, gzip and snappy")]
pub struct UnknownEncoding(pub String);

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    fn from_str(name: &str) -> Result<Encoding, UnknownEncoding> {
        let mut all = Encoding::ALL.into_iter();
        all.find(|encoding| encoding.name().eq_ignore_ascii_case(name)).ok_or_else(|| UnknownEncoding(name.to_owned()))
    }
}
