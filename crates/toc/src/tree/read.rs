//! The stored tree, read and believed only after it was checked; and Algorithm 2, which builds C′ of it.

use crate::bytes::Reader;
use crate::csr::check_backed;
use crate::values::Values;
use crate::{Error, Info, limits};

/// I and D.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) values: Values<'a>,
    /// Columns of the pairs of the first layer.
    pub(crate) columns: Vec<u32>,
    /// Their values: places in `values`.
    pub(crate) places: Vec<u32>,
    /// Codes of each row: where they begin in `codes`, and where the last end.
    pub(crate) starts: Vec<u32>,
    /// The codes, nodes from 0.
    pub(crate) codes: Vec<u32>,
}

/// C′ without the first layer: parents come before children.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// Parent of each node.
    pub(crate) parents: Vec<u32>,
    /// Node of the first layer that has the same key.
    pub(crate) keys: Vec<u32>,
    /// Entries of all rows.
    pub(crate) entries: u64,
}

impl<'a> Stored<'a> {
    /// What follows the header of TOC. Codes are not checked here, but by [`nodes`](Stored::nodes).
    pub(crate) fn read(info: &Info, mut reader: Reader<'a>) -> Result<Stored<'a>, Error> {
        let values = Values::read(info, &mut reader)?;
        let first_layer = reader.u32()? as usize;
        let columns = reader.packed(first_layer)?;
        let places = reader.packed(first_layer)?;
        if columns.width() + places.width() == 0 && first_layer > 1 {
            return Err(Error::Malformed("a pair that occurs twice"));
        }
        let columns = columns.below(info.columns as u64, "a column that does not exist")?;
        let places = places.below(values.len() as u64, "a value that does not exist")?;
        let starts = reader.packed(info.rows)?.starts()?;
        let codes = reader.packed(starts[info.rows] as usize)?;
        check_backed(&codes, info.rows)?;
        let codes = codes.map(|code| code);
        reader.end()?;
        Ok(Stored { values, columns, places, starts, codes })
    }

    /// Codes of each row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).map(|ends| &self.codes[ends[0] as usize..ends[1] as usize])
    }

    /// Builds the tree (Algorithm 2). Then each code is of a node that its row could know, the columns of each row
    /// ascend, and the rows together have not too many entries.
    pub(crate) fn nodes(&self, info: &Info) -> Result<Nodes, Error> {
        let mut nodes = Nodes::default();
        allocation::reserve(&mut nodes.parents, self.codes.len());
        allocation::reserve(&mut nodes.keys, self.codes.len());
        // of each node: the nodes of the first layer where its sequence begins and ends, and how long that is
        let mut spans: Vec<Span> = allocation::with_capacity(self.columns.len() + self.codes.len());
        spans.extend((0..self.columns.len() as u32).map(|node| Span { first: node, last: node, length: 1 }));
        let unknown = Error::Malformed("a code of a node that does not exist yet");
        let mut entries = 0;
        for row in self.rows() {
            let Some((&first, others)) = row.split_first() else { continue };
            let mut before = first;
            let mut span = *spans.get(before as usize).ok_or(unknown)?;
            entries += u64::from(span.length);
            for &code in others {
                let next = *spans.get(code as usize).ok_or(unknown)?;
                if self.columns[span.last as usize] >= self.columns[next.first as usize] {
                    return Err(Error::Malformed("columns of a row that are not ascending"));
                }
                entries += u64::from(next.length);
                nodes.parents.push(before);
                nodes.keys.push(next.first);
                spans.push(Span { first: span.first, last: next.first, length: span.length + 1 });
                (before, span) = (code, next);
            }
        }
        limits::check(info.rows, info.columns, entries)?;
        nodes.entries = entries;
        Ok(nodes)
    }
}

#[derive(Clone, Copy)]
struct Span {
    first: u32,
    last: u32,
    length: u32,
}
