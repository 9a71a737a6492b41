//! EXPLAIN.

use super::BlockShuffle;
use crate::pg::custom_scan::Node;
use crate::pg::explain::Explain;

pub fn explain(scan: &mut BlockShuffle, node: Node, explain: Explain) {
    explain.text(c"Strategy", scan.shuffling.strategy.name());
    explain.integer(c"Seed", scan.shuffling.seed);
    if let Some(geometry) = scan.planned_geometry(node) {
        explain.integer(c"Blocks", geometry.blocks.into());
        explain.integer(c"Pages per Block", geometry.pages_per_block.into());
    }
    if explain.analyze() {
        explain.integer(c"Blocks Read", scan.measured.blocks as i64);
        explain.integer(c"Epochs", scan.measured.epochs as i64);
    }
    if explain.timing() {
        explain.milliseconds(c"Scan Time", scan.measured.scan.as_secs_f64());
        explain.milliseconds(c"Decode Time", scan.measured.decode.as_secs_f64());
    }
}
