//! The node as the executor sees it.

use super::state::BlockShuffle;
use super::{exec, explain};
use options::shuffling::Shuffling;
use pg::executor::custom_scan::{CustomScan, Flags, Methods, Node};
use pg::executor::explain::Explain;

static METHODS: Methods = Methods::new::<BlockShuffle>(c"CorgiPileBlockShuffle");

impl CustomScan for BlockShuffle {
    fn methods() -> &'static Methods {
        &METHODS
    }

    fn begin(node: Node, eflags: Flags) -> BlockShuffle {
        BlockShuffle::new(node, eflags)
    }

    fn next(&mut self, node: Node) -> bool {
        exec::next(self, node)
    }

    fn rescan(&mut self, _node: Node) {
        // An epoch that no one has begun is not over.
        if self.begun {
            self.set_epoch(self.epoch + 1);
        }
    }

    fn end(&mut self, node: Node) {
        if let Some(pages) = self.source.pages.take() {
            pages.end();
        }
        if let Some(cache) = self.cache.take() {
            cache.end();
        }
        if let Some(sharing) = &mut self.sharing {
            sharing.leave();
        }
        self.source.copies.end();
        node.end_child();
    }

    fn seeks(private: &str, pages: u32) -> u32 {
        serde_json::from_str(private).map_or(0, |shuffling: Shuffling| shuffling.seeks(pages))
    }

    fn explain(&mut self, node: Node, explain: Explain) {
        explain::explain(self, node, explain);
    }
}
