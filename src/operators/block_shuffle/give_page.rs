//! Common decoding: pages that are dear to decode are decoded once for all members of a reading group that make the
//! same of them.
//!
//! A member that comes to such a page takes what another has made of it, or makes it and publishes it, if others come
//! to it, too. Which pages may be taken is decided where they are kept
//! ([`SharedPages`](crate::operators::reading_groups::SharedPages)).
//!
//! As all members come to a block at about the same time, they would all come to its first page at once. So within a
//! block a member takes the pages in any sequence: those that are there first, then one that nobody is making. Only
//! when all that are left are being made elsewhere it waits, ten milliseconds at most, and then makes a page by itself.
//! Where it keeps tuples for later epochs, which it does by ascending pages, it takes them in their sequence.

use super::cache::Cache;
use super::common_decoding::CommonDecoding;
use super::pages::Pages;
use super::sharing::{Member, Sharing};
use super::state::BlockShuffle;
use crate::errors::Result;
use crate::operators::decoder::Decoder;
use joader::{JobSet, Pin, Request, Ticket};
use pg::detoasted;
use pg::executor::custom_scan::Node;
use pg::process::nap;
use pg::{PAGE_BYTES, check_for_interrupts};
use std::time::Instant;
use tuples::Batch;

/// Pages of the block under way that are looked for at once.
const WINDOW: usize = 32;

/// Milliseconds that a page is waited for which another session is making: that one may be stopped.
const NAPS: usize = 10;

impl BlockShuffle {
    /// The member that this reader is, if it may have pages in common with others.
    fn member(&mut self) -> Option<&mut Member> {
        match &mut self.sharing {
            Some(Sharing::Member(member)) if member.common.is_some() => Some(member),
            _ => None,
        }
    }

    /// Are pages decoded for other sessions, and by them?
    pub(super) fn decodes_commonly(&self) -> bool {
        match &self.sharing {
            Some(Sharing::Member(member)) => member.common.as_ref().is_some_and(CommonDecoding::is_on),
            _ => false,
        }
    }

    /// Decodes the next page of the block under way into `batch`, or takes it from another session, and returns how
    /// many rows it has.
    ///
    /// # Errors
    /// What is wrong with the rows.
    pub(super) fn give_page(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch) -> Result<usize> {
        let is_dear = !self.reads_raw() || decoder.converts();
        let Some(member) = self.member() else { return self.decode_page(node, decoder, batch) };
        if !member.decodes_commonly(decoder, is_dear) || self.block.is_empty() {
            return self.decode_here(node, decoder, batch);
        }
        let drawing = self.tell_course();
        let window = if self.cache().is_some_and(Cache::keeps_more) { 1 } else { WINDOW };
        let mut naps = NAPS;
        loop {
            let candidates: Vec<u32> = self.block.clone().take(window).map(|place| self.page_at(place)).collect();
            let Some(pages) = self.member().and_then(|member| member.pages()) else { break };
            let (i, request) = pages.choose(&candidates, drawing);
            let page = candidates[i];
            match request {
                Request::Made(pin) => {
                    if let Some(rows) = self.take_page(node, (page, pin), decoder, batch)? {
                        self.put_first(i);
                        self.block.next();
                        return Ok(rows);
                    }
                    if !self.is_all_visible(page) {
                        self.put_first(i);
                        break;
                    }
                }
                Request::Make(ticket) => {
                    self.put_first(i);
                    if !self.is_all_visible(page) {
                        self.abandon(ticket);
                        break;
                    }
                    return self.make_page(node, (page, ticket), drawing, decoder, batch);
                }
                Request::Making if naps > 0 => {
                    naps -= 1;
                    nap();
                }
                Request::Absent | Request::Making => {
                    self.put_first(i);
                    break;
                }
            }
            check_for_interrupts();
        }
        self.decode_here(node, decoder, batch)
    }

    /// Tells the others which pages this member has before it, and says who has not yet drawn the block under way.
    fn tell_course(&mut self) -> JobSet {
        let first = self.block.clone().map(|place| self.page_at(place)).min().unwrap_or_default();
        let next = self.order.get(self.position).map_or(0..0, |block| self.pages_of(block));
        let course = [first..self.block.end, next];
        let number = self.order.get(self.position - 1).map_or(0, |block| self.number_of(block));
        let Some(member) = self.member() else { return JobSet::default() };
        member.pages().into_iter().for_each(|pages| pages.set_course(course.clone()));
        member.drawing(number)
    }

    /// The page in a place of the block under way.
    pub(super) fn page_at(&self, place: u32) -> u32 {
        match self.page_order.get(place.wrapping_sub(self.page_order_from) as usize) {
            Some(page) => *page,
            None => place,
        }
    }

    /// Takes the page in place `i` of those that are left of the block first.
    fn put_first(&mut self, i: usize) {
        if i == 0 {
            return;
        }
        if self.page_order.is_empty() {
            self.page_order.extend(self.block.clone());
            self.page_order_from = self.block.start;
        }
        let first = (self.block.start - self.page_order_from) as usize;
        self.page_order.swap(first, first + i);
    }

    /// Does not make a page for others after all.
    fn abandon(&mut self, ticket: Ticket) {
        if let Some(pages) = self.member().and_then(|member| member.pages()) {
            pages.abandon(ticket);
        }
    }

    /// Does the visibility map say that everybody sees all tuples of a page?
    fn is_all_visible(&mut self, page: u32) -> bool {
        match &mut self.pages {
            Some(Pages::Heap(scan)) => scan.is_all_visible(page),
            _ => false,
        }
    }

    /// Takes a page, and returns how many rows it has; None if it is not what it was.
    fn take_page(
        &mut self,
        node: Node,
        (page, pin): (u32, Pin),
        decoder: &mut Decoder,
        batch: &mut Batch,
    ) -> Result<Option<usize>> {
        let start = self.timing.then(Instant::now);
        let (Some(Pages::Heap(scan)), Some(Sharing::Member(member))) = (&mut self.pages, &mut self.sharing) else {
            return Ok(None);
        };
        let Some(pages) = member.pages() else { return Ok(None) };
        let taken = pages.take(pin, || scan.is_all_visible(page), |words| decoder.read_page(batch, words));
        let Some(taken) = taken else { return Ok(None) };
        let header = taken?;
        if node.has_qual() {
            node.count_filtered(header.filtered());
        }
        let bytes = u64::from(PAGE_BYTES) + u64::from(header.bytes);
        member.count_taken(self.counters.blocks, bytes, &mut self.counters.share);
        if let Some(start) = start {
            self.counters.decode += start.elapsed();
        }
        Ok(Some(header.rows as usize))
    }

    /// Decodes the next page of the block under way, and publishes it if everybody sees all of it.
    fn make_page(
        &mut self,
        node: Node,
        (page, ticket): (u32, Ticket),
        drawing: JobSet,
        decoder: &mut Decoder,
        batch: &mut Batch,
    ) -> Result<usize> {
        let (first, before) = (batch.len(), (decoder.skipped(), decoder.side_effects(), detoasted::bytes_so_far()));
        decoder.begin_page();
        let result = self.decode_here(node, decoder, batch);
        let start = self.timing.then(Instant::now);
        let all_visible = matches!(&self.pages, Some(Pages::Heap(scan)) if scan.was_all_visible());
        if let Some(pages) = self.member().and_then(|member| member.pages()) {
            match &result {
                Ok(rows) if all_visible && decoder.side_effects() == before.1 => {
                    let (skipped, bytes) = (decoder.skipped() - before.0, detoasted::bytes_so_far() - before.2);
                    let header = decoder.header_of_page(batch, first, *rows, skipped, bytes);
                    let words = decoder.words_of_page(batch, header);
                    let write = |words: &mut [u32]| decoder.write_page(batch, first, header, words);
                    let published = pages.publish(ticket, page, drawing, words, write);
                    self.counters.share.pages_made += u64::from(published);
                }
                _ => pages.abandon(ticket),
            }
        }
        match &result {
            Ok(_) => decoder.finish_page(batch, first),
            Err(_) => decoder.give_up_page(),
        }
        if let Some(start) = start {
            self.counters.decode += start.elapsed();
        }
        result
    }

    /// Decodes the next page of the block under way, and finds out whether that was dear.
    fn decode_here(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch) -> Result<usize> {
        let before = detoasted::count_so_far();
        let rows = self.decode_page(node, decoder, batch)?;
        if let Some(common) = self.member().and_then(|member| member.common.as_mut()) {
            common.decoded_here(rows, detoasted::count_so_far() - before);
        }
        Ok(rows)
    }
}
