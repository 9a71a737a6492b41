//! EXPLAIN.

use super::state::{BlockShuffle, pages_of};
use crate::scan_control::ShareCounters;
use options::cache::CacheMode;
use pg::executor::custom_scan::Node;
use pg::executor::explain::Explain;

pub fn explain(scan: &mut BlockShuffle, node: Node, explain: Explain) {
    if scan.source.is_leaf {
        return explain.integer(c"Pages", pages_of(node).into());
    }
    explain.text(c"Strategy", scan.shuffling.strategy.name());
    explain.integer(c"Seed", scan.shuffling.seed);
    if let Some(sample) = scan.shuffling.sample {
        explain.real(c"Sample", sample);
    }
    if let Some(leaves) = &scan.source.leaves {
        explain.integer(c"Tables", leaves.len() as i64);
    }
    if let Some(geometry) = scan.planned_geometry(node) {
        explain.integer(c"Blocks", geometry.blocks.into());
        explain.integer(c"Pages per Block", geometry.pages_per_block.into());
    }
    if explain.analyze() {
        explain.integer(c"Blocks Read", scan.counters.blocks as i64);
        explain.integer(c"Epochs", scan.counters.epochs as i64);
    }
    share(scan, explain);
    cache(scan, explain);
    let sorts = scan.shuffling.strategy.sorts();
    let copy = Some(scan.source.copies.costs()).filter(|copy| sorts && explain.analyze() && copy.bytes > 0);
    if let Some(copy) = copy {
        explain.integer(c"Full Shuffle Space", copy.bytes as i64);
    }
    if let Some(sort) = copy.and_then(|copy| copy.space.as_ref()) {
        explain.text(c"Sort Method", &sort.method);
        explain.integer(c"Sort Space Used", sort.kilobytes);
        explain.text(c"Sort Space Type", &sort.kind);
    }
    if explain.timing() {
        if let Some(copy) = copy {
            explain.milliseconds(c"Full Shuffle Time", copy.total.as_secs_f64());
        }
        explain.milliseconds(c"Scan Time", scan.counters.scan.as_secs_f64());
        explain.milliseconds(c"Decode Time", scan.counters.decode.as_secs_f64());
    }
}

/// Whether the source is read together with other sessions, or after the fact what that came to.
fn share(scan: &BlockShuffle, explain: Explain) {
    let Some(sharing) = &scan.sharing else { return };
    let ShareCounters { members, drawn, followed } = scan.counters.share;
    match sharing.refusal() {
        Some(why) if explain.is_text() => explain.text(c"Shared Scan", &format!("off ({why})")),
        Some(why) => {
            explain.text(c"Shared Scan", "off");
            explain.text(c"Shared Scan Off Because", why);
        }
        None if !explain.analyze() => explain.text(c"Shared Scan", "on"),
        None if explain.is_text() => {
            let members = if members == 1 { "1 member".to_owned() } else { format!("{members} members") };
            explain.text(c"Shared Scan", &format!("up to {members}, {drawn} blocks drawn, {followed} followed"));
        }
        None => {
            explain.text(c"Shared Scan", "on");
            explain.integer(c"Shared Scan Members", members.into());
            explain.integer(c"Blocks Drawn", drawn as i64);
            explain.integer(c"Blocks Followed", followed as i64);
        }
    }
}

/// Whether tuples are kept for later epochs, or after the fact what was kept.
fn cache(scan: &BlockShuffle, explain: Explain) {
    let Some(plan) = scan.shuffling.cache else { return };
    let off = |reason: &str| {
        if explain.is_text() {
            explain.text(c"Cache", &format!("off ({reason})"));
        } else {
            explain.text(c"Cache", "off");
            explain.text(c"Cache Off Because", reason);
        }
    };
    if let Some(obstacle) = plan.obstacle(scan.shuffling.strategy) {
        return off(obstacle);
    }
    if !explain.analyze() {
        return explain.text(c"Cache", if plan.mode == CacheMode::On { "on" } else { "auto" });
    }
    let here = || scan.cache.as_ref().map(|cache| cache.contents(&scan.division.geometry));
    let Some(contents) = scan.kept_elsewhere.clone().or_else(here) else { return };
    match contents {
        Err(reason) => off(&reason),
        Ok((memory, disk, blocks)) if explain.is_text() => {
            let (memory, disk, of) = (size(memory), size(disk), scan.division.geometry.blocks);
            explain.text(c"Cache", &format!("memory {memory}, disk {disk}, {blocks} of {of} blocks"));
        }
        Ok((memory, disk, blocks)) => {
            explain.text(c"Cache", "on");
            explain.integer(c"Cache Memory", memory as i64);
            explain.integer(c"Cache Disk", disk as i64);
            explain.integer(c"Cached Blocks", blocks as i64);
        }
    }
}

/// Bytes as PostgreSQL writes them: in a unit of which there are some.
fn size(bytes: u64) -> String {
    match bytes.div_ceil(1 << 10) {
        kilobytes @ 0..10_240 => format!("{kilobytes}kB"),
        kilobytes => format!("{}MB", kilobytes.div_ceil(1 << 10)),
    }
}
