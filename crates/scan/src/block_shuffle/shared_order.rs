//! How BlockShuffle joins a reading group, and draws the order of an epoch there.

use super::order::EpochOrder;
use super::pages::Pages;
use super::sharing::{Member, Sharing};
use super::state::{BlockShuffle, LeafScan};
use crate::reading_groups::{NotShared, ReadingGroup, Reads};
use options::shuffling::{SaysShare, Shuffling};
use pg::executor::custom_scan::Node;
use shuffle::BlockSize;
use std::ops::RangeInclusive;

impl BlockShuffle {
    /// Becomes a member of the group that reads these pages, in blocks of this size or of one that it takes over, if
    /// that is asked for and has not been tried.
    pub(super) fn join_group(&mut self, node: Node, pages: &Pages<LeafScan>) {
        if !matches!(self.sharing, Some(Sharing::Asked)) {
            return;
        }
        let joined = self.reads(node, pages).and_then(|reads| ReadingGroup::join(&reads));
        self.sharing = Some(match joined {
            Ok(group) => {
                self.shuffling.pages_per_block = Some(group.pages_per_block());
                Sharing::Member(Box::new(Member::new(group)))
            }
            Err(why) => {
                let is_leader = self.process.partition.index() == 0 && self.process.is_first;
                if self.shuffling.share == Some(SaysShare::Call) && is_leader {
                    pg::notice(
                        format!("the source is not read together with other sessions: {why}"),
                        "The order is that without shared_scan. The view corgipile.stat_shared_scans shows who shares what.",
                    );
                }
                Sharing::Alone(why)
            }
        });
    }

    /// What is read, in the words of reading groups.
    fn reads(&self, node: Node, pages: &Pages<LeafScan>) -> Result<Reads, NotShared> {
        let pages = match &self.division.agreed_pages {
            Some(agreed) => agreed.clone(),
            None => pages.of_tables(),
        };
        let leaves = self.source.leaves.as_deref().unwrap_or_default();
        let tables = match node.relation() {
            Some(relation) => vec![relation],
            None => leaves.iter().filter_map(LeafScan::table).collect(),
        };
        if tables.is_empty() {
            return Err("the rows are in a spool".into());
        }
        let reads = Reads::tables(&tables, &pages).ok_or("no other session can read a temporary table")?;
        let pages_per_block = self.division.geometry.pages_per_block;
        Ok(reads.in_blocks(pages_per_block, sizes(&self.shuffling, pages_per_block)))
    }

    /// Begins the epoch as a member of the group, with the order that the reader draws by itself. That order again if
    /// it is no member, or reads nothing of the source.
    pub(super) fn shared_order(&mut self, own: EpochOrder) -> EpochOrder {
        let Some(Sharing::Member(_)) = &self.sharing else { return own };
        let is_kept = |block: u32| self.of_source(block).is_empty();
        let keeps_all = self.cache().is_some() && own.blocks().all(is_kept);
        let numbers: Vec<u32> = own.blocks().map(|block| self.number_of(block)).collect();
        let Some(sharing) = self.sharing.as_mut() else { return own };
        if keeps_all {
            sharing.leave();
            return own;
        }
        let Sharing::Member(member) = sharing else { return own };
        if !member.begin_epoch(self.epoch, numbers.into_iter()) {
            sharing.leave();
            *sharing = Sharing::Alone("not enough memory to draw blocks together".into());
            return own;
        }
        EpochOrder::open(own.len(), own.pages_left())
    }

    /// Draws blocks until those in this many places of the epoch's order are known.
    pub(super) fn draw_to(&mut self, places: usize) {
        while self.reading.order.drawn() < places.min(self.reading.order.len()) {
            let Some(Sharing::Member(member)) = &mut self.sharing else { break };
            let Some(number) = member.draw(&mut self.counters.share) else { break };
            let block = match &self.division.sample {
                Some(sample) => sample.blocks.binary_search(&number).map_or(number, |block| block as u32),
                None => number,
            };
            self.reading.order.push(block);
        }
    }
}

/// Sizes of blocks that will do. A size that was asked for is kept. Otherwise blocks that are a little larger mix a
/// little less, and such that are up to half as large cost little where others read them, too: a group that was founded
/// before the table grew, or with another buffer, is still found.
fn sizes(asked: &Shuffling, pages_per_block: u32) -> RangeInclusive<u32> {
    match (asked.block_size, asked.pages_per_block) {
        (BlockSize::Bytes(_), _) | (_, Some(_)) => pages_per_block..=pages_per_block,
        (BlockSize::Auto, None) => pages_per_block.div_ceil(2)..=pages_per_block + pages_per_block / 4,
    }
}
