//! What jobs, operators and servers say to each other: the messages of proto/joader.proto and proto/leader.proto.

#![allow(missing_docs, clippy::all, clippy::pedantic)]

tonic::include_proto!("joader");

use joader::{ElementSet, SamplerError};

impl Elements {
    pub(crate) fn of(set: &ElementSet) -> Elements {
        Elements { ranges: set.ranges().iter().map(|range| Range { start: range.start, end: range.end }).collect() }
    }

    pub(crate) fn set(&self) -> Result<ElementSet, SamplerError> {
        ElementSet::from_ranges(self.ranges.iter().map(|range| range.start..range.end))
    }
}
