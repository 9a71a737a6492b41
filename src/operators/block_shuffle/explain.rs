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
    let copy = scan.full_shuffle().filter(|copy| explain.analyze() && copy.bytes > 0);
    if let Some(copy) = copy {
        explain.integer(c"Full Shuffle Space", copy.bytes as i64);
    }
    if let (Some(_), Some(sort)) = (copy, scan.copies.space()) {
        explain.text(c"Sort Method", sort.method);
        explain.integer(c"Sort Space Used", sort.kilobytes);
        explain.text(c"Sort Space Type", sort.kind);
    }
    if explain.timing() {
        if copy.is_some() {
            explain.milliseconds(c"Full Shuffle Time", scan.copies.total().as_secs_f64());
        }
        explain.milliseconds(c"Scan Time", scan.measured.scan.as_secs_f64());
        explain.milliseconds(c"Decode Time", scan.measured.decode.as_secs_f64());
    }
}
