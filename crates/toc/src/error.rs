//! What can be wrong with rows that are to be compressed, and with bytes that claim to be compressed ones.

/// Rows that cannot be encoded, or bytes that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A row is not as long as there are columns.
    #[error("a row has {entries} entries, but there are {columns} columns")]
    Length {
        /// Entries of the row.
        entries: usize,
        /// Columns of the matrix.
        columns: usize,
    },
    /// Indices and values of a sparse row are not equally many.
    #[error("a row has {indices} indices and {values} values")]
    Pairs {
        /// How many indices.
        indices: usize,
        /// How many values.
        values: usize,
    },
    /// An index is not below the number of columns.
    #[error("index {index} is not below the number of columns, {columns}")]
    Index {
        /// The index, from 0.
        index: u32,
        /// Columns of the matrix.
        columns: usize,
    },
    /// The indices of a row do not ascend strictly.
    #[error("index {index} does not come after the index before it")]
    Order {
        /// The index, from 0, that is not greater than the one before.
        index: u32,
    },
    /// More rows, columns or entries than an encoding takes ([`limits`](crate::limits)).
    #[error("a mini-batch of {rows} rows and {columns} columns with {entries} entries is too large")]
    TooLarge {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        columns: usize,
        /// Entries that the encoding would hold one by one.
        entries: u64,
    },
    /// Two matrices do not have the same shape.
    #[error("a matrix of {} rows and {} columns and one of {} and {} do not fit together", rows[0], columns[0], rows[1], columns[1])]
    Shapes {
        /// Rows of both.
        rows: [usize; 2],
        /// Columns of both.
        columns: [usize; 2],
    },
    /// The bytes are of a version of the format that this library does not know.
    #[error("version {0} of the compressed format is not known")]
    Version(u8),
    /// The bytes are not those that were written.
    #[error("the checksum of a compressed mini-batch does not match its bytes")]
    Checksum,
    /// The bytes contradict themselves.
    #[error("malformed compressed mini-batch: {0}")]
    Malformed(&'static str),
}
