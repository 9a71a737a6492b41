//! CorgiPileSearch: trains all points of a search on all folds side by side, and stores the best, trained on all rows.
//!
//! The node stands where corgipile_search() stood in FROM, over the same plan as CorgiPileSGD. On the first call it
//! goes through all epochs: whatever the number of points and folds, the source is read once for each, and once more to
//! judge. Then what is left is a training with one point, which goes through the epochs on all rows as any other does.

mod candidates;
mod course;
mod judges;
mod ranking;
mod running;
mod team;
mod workers;

use super::explain::explain;
use crate::errors::OrRaise;
use crate::options::call::TrainArguments;
use crate::options::search::SearchArguments;
use crate::pg::call::arguments::Arguments;
use crate::pg::executor::custom_scan::{CustomScan, Flags, Methods, Node};
use crate::pg::executor::explain::Explain;
pub use ranking::SearchRow;
pub use running::Search;
pub use workers::KIND as SEARCH_WORKERS;

/// State of the node.
pub struct SearchScan {
    /// None in the copies of the plan that EvalPlanQual makes and never runs
    search: Option<Search>,
    position: usize,
}

static METHODS: Methods = Methods::new::<SearchScan>(c"CorgiPileSearch");

impl CustomScan for SearchScan {
    fn methods() -> &'static Methods {
        &METHODS
    }

    fn begin(node: Node, eflags: Flags) -> SearchScan {
        let open = || {
            let (own, rest) = SearchArguments::split(Arguments::of_node(node));
            let arguments = TrainArguments::of_call(&rest).or_raise();
            Search::open(arguments, &own, (node.snapshot(), node.instrument(), eflags)).or_raise()
        };
        SearchScan { search: (!node.in_eval_plan_qual()).then(open), position: 0 }
    }

    fn next(&mut self, node: Node) -> bool {
        let Some(search) = &mut self.search else { return false };
        let Some(row) = search.rows().or_raise().get(self.position) else { return false };
        self.position += 1;
        node.store_values(&row.values());
        true
    }

    fn rescan(&mut self, _node: Node) {
        self.position = 0;
    }

    fn end(&mut self, _node: Node) {
        if let Some(search) = self.search.take() {
            search.close();
        }
    }

    fn explain(&mut self, _node: Node, explain_state: Explain) {
        if let Some(search) = &self.search {
            search.explain(explain_state);
            explain(search.training(), explain_state);
        }
    }
}
