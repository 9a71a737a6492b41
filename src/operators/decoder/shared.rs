//! Pages of decoded tuples for other decoders that would make the same of them, as words.
//!
//! What is written are tuples as the rows have them: not yet weighted by their classes, taken by logarithms, or
//! standardized, which whoever takes them does as if they had just been decoded. So decoders share pages whatever each
//! scales by, and labels, of which two decoders may have the signs the other way round.

use super::features::FeatureColumns;
use super::tuple_decoder::Decoder;
use crate::errors::Result;
use tuples::{Batch, RecordHeader};

/// How the words of a page begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    record: RecordHeader,
    /// Rows of the page that a snapshot sees; those that have not become tuples were left out for a NULL, or by the
    /// filter.
    pub rows: u32,
    /// Bytes that were read for them.
    pub bytes: u32,
}

/// What a decoder counts beside tuples and rows that are left out. A page that has changed it is not for others, in
/// whose counts it would be missing.
#[derive(Debug, PartialEq, Eq)]
pub struct SideEffects {
    unseen: u64,
    imputed: u64,
}

impl PageHeader {
    const WORDS: usize = RecordHeader::WORDS + 2;

    /// Rows that the filter has left out.
    pub fn filtered(&self) -> u64 {
        u64::from(self.rows.saturating_sub(self.record.tuples + self.record.skipped))
    }
}

impl Decoder {
    /// What tuples depend on beside the row, the columns and what is said in the same words of any decoder of them, as
    /// text; None as long as they depend on which rows were met before, or have no form that others could take.
    pub fn description(&self) -> Option<String> {
        let features = match &self.features {
            FeatureColumns::Array { dim, .. } => format!("{}", (*dim)?),
            FeatureColumns::Columns { types, .. } => format!("{} numbers", types.len()),
            FeatureColumns::Sparse(columns) if columns.lack_dim() => return None,
            FeatureColumns::Sparse(columns) => {
                format!("{} {} {:?}", columns.base(), columns.limit(), columns.fixed_dim())
            }
            FeatureColumns::Mixed(_) if self.preparing => return None,
            FeatureColumns::Mixed(columns) => {
                let categories = serde_json::to_string(&columns.categories()).ok()?;
                format!("{categories} {} {} {:?}", columns.dim(), columns.numbers(), columns.hashing())
            }
            FeatureColumns::Compressed(_) => return None,
        };
        if self.is_exact {
            return None; // labels are written in single precision
        }
        let labels = self.labels.meaning()?;
        let tags = match &self.row_groups {
            Some(row_groups) => Some(row_groups.description()?),
            None => None,
        };
        let weight = self.weight.as_ref().map(|weight| weight.place);
        Some(format!("{features}|{labels}|{weight:?}|{tags:?}|{:?}|{}", self.nulls, self.imputation.is_some()))
    }

    /// Leaves the tuples of the page that comes next as the rows have them, until
    /// [`finish_page`](Decoder::finish_page).
    pub fn begin_page(&mut self) {
        self.finishes_later = true;
        self.begin_columns();
    }

    /// Weighs and standardizes the tuples of the page, which were appended from `first` on.
    pub fn finish_page(&mut self, batch: &mut Batch, first: usize) {
        self.finishes_later = false;
        self.finish(batch, first);
    }

    /// The page was not decoded to its end.
    pub fn give_up_page(&mut self) {
        self.finishes_later = false;
    }

    /// What was counted so far beside tuples.
    pub fn side_effects(&self) -> SideEffects {
        let imputed = self.imputation.as_ref().map_or(0, |imputation| imputation.counts().rows);
        SideEffects { unseen: self.unseen, imputed }
    }

    /// The header of the page whose tuples were appended from `first` on, of `rows` rows, of which `skipped` were left
    /// out for a NULL.
    pub fn header_of_page(&self, batch: &Batch, first: usize, rows: usize, skipped: u64, bytes: u64) -> PageHeader {
        let record = RecordHeader::new(batch, first..batch.len(), skipped as u32);
        PageHeader { record, rows: rows as u32, bytes: bytes.min(u32::MAX.into()) as u32 }
    }

    /// Words of a page with this header.
    pub fn words_of_page(&self, batch: &Batch, header: PageHeader) -> usize {
        let columns = 1 + usize::from(self.weight.is_some()) + usize::from(self.row_groups.is_some());
        PageHeader::WORDS + columns * header.record.tuples as usize + header.record.features(batch)
    }

    /// Writes the page whose tuples were appended from `first` on, and are not yet [finished](Decoder::finish_page), to
    /// as many words as it has.
    ///
    /// # Panics
    /// If it has more words.
    pub fn write_page(&self, batch: &Batch, first: usize, header: PageHeader, words: &mut [u32]) {
        let (head, words) = words.split_at_mut(PageHeader::WORDS);
        let RecordHeader { tuples, entries, skipped } = header.record;
        head.copy_from_slice(&[tuples, entries, skipped, header.rows, header.bytes]);
        let (to_labels, mut words) = words.split_at_mut(tuples as usize);
        let sign = self.labels.sign();
        for (to, label) in to_labels.iter_mut().zip(&batch.labels()[first..]) {
            *to = (label * sign).to_bits();
        }
        if self.weight.is_some() {
            let to = words.split_off_mut(..tuples as usize).unwrap_or_default();
            to.iter_mut().zip(&self.row_weights).for_each(|(to, weight)| *to = weight.to_bits());
        }
        if self.row_groups.is_some() {
            let to = words.split_off_mut(..tuples as usize).unwrap_or_default();
            to.copy_from_slice(&self.group_tags);
        }
        batch.write_features(first..batch.len(), words);
    }

    /// Appends the tuples of a page that another decoder of the same [description](Decoder::description) has written,
    /// as if they had been decoded here.
    ///
    /// # Errors
    /// [`PgError::OutOfMemory`](crate::errors::PgError::OutOfMemory)
    ///
    /// # Panics
    /// If the decoder has another description.
    pub fn read_page(&mut self, batch: &mut Batch, words: &[u32]) -> Result<PageHeader> {
        let (head, words) = words.split_at(PageHeader::WORDS);
        let header = PageHeader { record: RecordHeader::read(head), rows: head[3], bytes: head[4] };
        let tuples = header.record.tuples as usize;
        self.skipped += u64::from(header.record.skipped);
        if tuples == 0 {
            return Ok(header);
        }
        self.begin_page();
        self.shape(batch);
        let first = batch.len();
        let (labels, words) = words.split_at(tuples);
        let (weights, words) = words.split_at(if self.weight.is_some() { tuples } else { 0 });
        let (tags, words) = words.split_at(if self.row_groups.is_some() { tuples } else { 0 });
        self.row_weights.extend(weights.iter().map(|bits| f32::from_bits(*bits)));
        self.group_tags.extend_from_slice(tags);
        if let Err(error) = batch.read_features(labels, words) {
            self.give_up_page();
            return Err(error.into());
        }
        if self.labels.sign() < 0.0 {
            batch.labels_mut()[first..].iter_mut().for_each(|label| *label = -*label);
        }
        self.finish_page(batch, first);
        Ok(header)
    }
}
