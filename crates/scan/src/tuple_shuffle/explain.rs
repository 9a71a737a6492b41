//! EXPLAIN.

use super::state::{TupleShuffle, blocks};
use crate::scan_control::LoaderShown;
use pg::executor::custom_scan::Node;
use pg::executor::explain::Explain;

pub fn explain(scan: &mut TupleShuffle, node: Node, explain: Explain) {
    let geometry = blocks(node).with(|blocks, below| blocks.planned_geometry(below));
    if scan.counters.buffers > 0 {
        explain.integer(c"Buffer Blocks", scan.counters.blocks as i64);
        explain.integer(c"Buffer Tuples", scan.counters.tuples as i64);
        explain.integer(c"Buffer Bytes", scan.counters.bytes as i64);
    } else if let Some(geometry) = geometry {
        let (rows, width) = node.planned_size();
        let share = f64::from(geometry.buffer_blocks) / f64::from(geometry.blocks.max(1));
        explain.integer(c"Buffer Blocks", geometry.buffer_blocks.into());
        let memory = scan.shuffling.buffer_memory() as f64;
        explain.integer(c"Buffer Tuples", (rows * share) as i64);
        explain.integer(c"Buffer Bytes", (rows * share * f64::from(width)).min(memory) as i64);
    }
    let capacity = scan.mixer.capacity() as i64;
    if let Some(label) = scan.shuffling.strategy.capacity_label().filter(|_| capacity > 0) {
        explain.integer(label, capacity);
    }
    match &scan.loader {
        Some(LoaderShown { place, why: Some(why) }) if explain.is_text() => {
            explain.text(c"Prefetch", &format!("{place} ({why})"));
        }
        Some(LoaderShown { place, why }) => {
            explain.text(c"Prefetch", place);
            why.iter().for_each(|why| explain.text(c"Prefetch Because", why));
        }
        None => {}
    }
    if explain.analyze() {
        explain.integer(c"Buffers Filled", scan.counters.buffers as i64);
    }
    if explain.timing() {
        explain.milliseconds(c"Shuffle Time", scan.counters.shuffle.as_secs_f64());
    }
}
