//! Where a row stands, so that people find it again.

/// Where a row stands in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowAt {
    /// block and offset of the row's ctid
    Ctid(u32, u16),
    /// the same in one of several tables, by its OID
    CtidOf(u32, u32, u16),
    /// 1-based number in the order in which the source query gave its rows
    Number(u64),
    /// 1-based number in the order in which rows came that may have been shuffled
    Read(u64),
}

impl RowAt {
    /// A number that identifies the row in its source, as long as it is not written again.
    #[inline]
    pub fn identity(self) -> u64 {
        match self {
            RowAt::Ctid(block, offset) => u64::from(block) << 16 | u64::from(offset),
            RowAt::CtidOf(table, block, offset) => u64::from(table) << 48 | u64::from(block) << 16 | u64::from(offset),
            RowAt::Number(number) | RowAt::Read(number) => number,
        }
    }
}

impl std::fmt::Display for RowAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RowAt::Ctid(block, offset) | RowAt::CtidOf(_, block, offset) => write!(f, "({block},{offset})"),
            RowAt::Number(n) => write!(f, "number {n} of the source"),
            RowAt::Read(n) => write!(f, "number {n} in the order of reading"),
        }
    }
}

/// Where a row stands, for a message.
#[derive(Debug)]
pub struct Place {
    /// in its table, or among the rows that were read
    pub at: RowAt,
    /// name of its table, if the source has several
    pub table: Option<String>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.table {
            Some(table) => write!(f, "{} of {table}", self.at),
            None => write!(f, "{}", self.at),
        }
    }
}
