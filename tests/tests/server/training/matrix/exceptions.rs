//! Where an invariance cannot hold, and why. A run of the whole matrix fails if an entry is not needed.

use super::invariances::NEARLY;
use super::outcome::Same;

/// What holds in place of the invariance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Holds {
    /// So much.
    Same(Same),
    /// Nothing.
    Nothing,
    /// The second way is refused with this SQLSTATE.
    Refused(&'static str),
}

/// A rule for cells: of these invariances, with a feature of each of these lists.
pub struct Exception {
    pub invariances: &'static [&'static str],
    pub features: &'static [&'static [&'static str]],
    pub holds: Holds,
    pub because: &'static str,
}

const OTHER_PLACES: &[&str] = &["filter or table", "partitions or one table", "group or filter"];
const OTHER_COLUMNS: &[&str] = &[
    "array or columns",
    "float8 or real",
    "sparse or dense",
    "permuted columns",
    "one group or no groups",
    "equal weights or none",
    "weights times 1500",
];

pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        invariances: &["one group or no groups"],
        features: &[&["sliding_window", "mrs", "compressed"]],
        holds: Holds::Refused("0A000"),
        because: "groups are not for rows that stay in the buffer, or whose mini-batches are made already",
    },
    Exception {
        invariances: OTHER_PLACES,
        features: &[&["validation_fraction", "probability", "sample"]],
        holds: Holds::Nothing,
        because: "rows and blocks are drawn by their place in the table",
    },
    Exception {
        invariances: &["filter or table", "partitions or one table"],
        features: &[&["theorem1"]],
        holds: Holds::Nothing,
        because: "the rate is that of the rows in a buffer, and buffers are pages",
    },
    Exception {
        invariances: &[
            "array or columns",
            "float8 or real",
            "one group or no groups",
            "equal weights or none",
            "rows of weight 0 or none",
        ],
        features: &[&["newton"], &["query", "shuffle_once", "epoch_shuffle"]],
        holds: Holds::Same(Same::ButScores(2e-5)),
        because: "in the first pass all decisions are 0, and count for the class that is met first in the copy",
    },
    Exception {
        invariances: OTHER_COLUMNS,
        features: &[&["query"]],
        holds: Holds::Nothing,
        because: "the copy of the query's rows has other columns, so that other rows share a block",
    },
    Exception {
        invariances: &[
            "array or columns",
            "float8 or real",
            "sparse or dense",
            "one group or no groups",
            "equal weights or none",
        ],
        features: &[&["shuffle_once", "epoch_shuffle"], &["theorem1", "probability"]],
        holds: Holds::Nothing,
        because: "the copy has other columns, so that other rows share a buffer; parts of rows are dealt by their place",
    },
    Exception {
        invariances: &["one group or no groups"],
        features: &[&["shuffle_once", "epoch_shuffle"]],
        holds: Holds::Same(NEARLY),
        because: "the copy has another column: means are added up over other pages",
    },
    Exception {
        invariances: &["equal weights or none"],
        features: &[&["compressed"]],
        holds: Holds::Refused("0A000"),
        because: "a row is a whole mini-batch",
    },
    Exception {
        invariances: &["permuted columns"],
        features: &[&["mlp", "mlp of three", "mlp_regression"]],
        holds: Holds::Nothing,
        because: "the first weights of an input are drawn by its place",
    },
    Exception {
        invariances: &["group or filter"],
        features: &[&["newton"]],
        holds: Holds::Same(Same::ButScores(2e-5)),
        because: "in the first pass all decisions are 0, and count for the class that is met first",
    },
    Exception {
        invariances: &["warm start or longer training", "options said again in a warm start"],
        features: &[&["linear"], &["newton"]],
        holds: Holds::Nothing,
        because: "that the first training has converged is found out again, in another epoch",
    },
    Exception {
        invariances: &["weights or repeated rows"],
        features: &[&["validation_fraction", "probability", "sample"]],
        holds: Holds::Nothing,
        because: "rows are drawn, not weights",
    },
    Exception {
        invariances: &["weights or repeated rows", "rows of weight 0 or none"],
        features: &[&["theorem1", "mrs"]],
        holds: Holds::Nothing,
        because: "the rate, or the rows that stay, are those of a buffer, and buffers are pages",
    },
    Exception {
        invariances: &["weights or repeated rows"],
        features: &[&["adam"], &["linear", "balanced"]],
        holds: Holds::Nothing,
        because: "the intercept's first gradient is 0 but for rounding, of which Adam makes a whole step",
    },
    Exception {
        invariances: &["rows of weight 0 or none"],
        features: &[&["validation_fraction", "probability", "sample"]],
        holds: Holds::Nothing,
        because: "rows are drawn by their place in the table",
    },
    Exception {
        invariances: &["sparse or dense"],
        features: &[&["mlp", "mlp of three"], &["momentum", "sgd"]],
        holds: Holds::Same(Same::Within(1e-2)),
        because: "the rounding of long steps grows from layer to layer",
    },
];
