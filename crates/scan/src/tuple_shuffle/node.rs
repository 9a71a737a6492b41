//! The node as the executor sees it.

use super::state::TupleShuffle;
use super::{exec, explain};
use pg::executor::custom_scan::{CustomScan, Flags, Methods, Node};
use pg::executor::explain::Explain;

static METHODS: Methods = Methods::new::<TupleShuffle>(c"CorgiPileTupleShuffle");

impl CustomScan for TupleShuffle {
    fn methods() -> &'static Methods {
        &METHODS
    }

    fn begin(node: Node, eflags: Flags) -> TupleShuffle {
        TupleShuffle::new(node, eflags)
    }

    fn next(&mut self, node: Node) -> bool {
        exec::next(self, node)
    }

    fn rescan(&mut self, node: Node) {
        self.start_over(node);
        node.rescan_child();
    }

    fn end(&mut self, node: Node) {
        node.end_child();
    }

    fn explain(&mut self, node: Node, explain: Explain) {
        explain::explain(self, node, explain);
    }
}
