//! CorgiPileSearch: trains all points of a search on all folds side by side, and stores the best, trained on all rows.
//!
//! The node stands where corgipile_search() stood in FROM, over the same plan as CorgiPileSGD. On the first call it
//! goes through all epochs: whatever the number of points and folds, the source is read once for each, and once more to
//! evaluate. Then what is left is a training with one point, which goes through the epochs on all rows as any other
//! does.

mod candidates;
mod course;
mod epochs;
mod ranking;
mod running;
mod team;
mod workers;

use super::rows_once::{RowsOnce, Work};
use errors::Result;
use options::call::TrainArguments;
use options::search::SearchArguments;
use pg::call::arguments::Arguments;
use pg::executor::custom_scan::{Flags, Methods, Node};
use pg::executor::explain::Explain;
use pg::values::output::OutputValue;
pub use ranking::SearchRow;
pub use running::Search;
pub use workers::KIND as SEARCH_WORKERS;

pub type SearchScan = RowsOnce<Search>;

static METHODS: Methods = Methods::new::<SearchScan>(c"CorgiPileSearch");

impl Work for Search {
    fn methods() -> &'static Methods {
        &METHODS
    }

    fn open(node: Node, flags: Flags) -> Result<Search> {
        let (own, rest) = SearchArguments::split(Arguments::of_node(node));
        let arguments = TrainArguments::of_call(&rest)?;
        Search::open(arguments, &own, (node.snapshot(), node.instrument(), flags))
    }

    fn row(&mut self, position: usize) -> Result<Option<impl AsRef<[OutputValue]>>> {
        Ok(self.rows()?.get(position).map(SearchRow::values))
    }

    fn close(self) {
        Search::close(self);
    }

    fn show(&self, explain: Explain) {
        self.explain(explain);
    }
}
