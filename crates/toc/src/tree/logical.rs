//! Sparse and logical encoding: rows become sequences of pairs of column and value, and these become codes of nodes of
//! a prefix tree that grows as the rows are read.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use tuples::pause::{Pauses, pausing};

use crate::Rows;
use crate::table::{Table, make_room};

/// What the tree was made of: all that is stored. Codes count nodes from 0, without the root: first those of the
/// first layer, in the order of I, then the others in the order in which encoding adds them.
#[derive(Debug, Default)]
pub(crate) struct Logical {
    /// I: column, and place of the value in `table`, of the distinct pairs.
    pub(crate) first_layer: Vec<(u32, u32)>,
    /// The distinct values.
    pub(crate) table: Table,
    /// Codes of each row: where they begin in `codes`, and where the last end.
    pub(crate) starts: Vec<u32>,
    /// D: the codes of all rows, one after the other.
    pub(crate) codes: Vec<u32>,
    /// Nodes of the whole tree, without the root.
    pub(crate) nodes: u32,
}

impl Logical {
    /// Encodes rows.
    pub(crate) fn new(rows: &Rows) -> Logical {
        let mut logical = Logical { starts: vec![0], ..Logical::default() };
        let pairs = logical.number_pairs(rows);
        logical.nodes = logical.first_layer.len() as u32;
        let mut children: HashMap<u64, u32> = HashMap::new();
        allocation::grow(pairs.len() * size_of::<(u64, u32)>(), || children.try_reserve(pairs.len() / 2));
        allocation::reserve(&mut logical.starts, rows.len());
        let mut rest = &pairs[..];
        let mut pauses = Pauses::default();
        for (indices, _) in rows.iter() {
            let (row, after) = rest.split_at(indices.len());
            rest = after;
            if let Some((&first, others)) = row.split_first() {
                // the longest sequence that is in the tree so far
                let mut node = first;
                for &pair in others {
                    pauses.after(1);
                    make_room(&mut children);
                    match children.entry(u64::from(node) << 32 | u64::from(pair)) {
                        Entry::Occupied(child) => node = *child.get(),
                        Entry::Vacant(vacant) => {
                            vacant.insert(logical.nodes);
                            logical.nodes += 1;
                            allocation::push(&mut logical.codes, node);
                            node = pair;
                        }
                    }
                }
                allocation::push(&mut logical.codes, node);
            }
            logical.starts.push(logical.codes.len() as u32);
        }
        logical
    }

    /// Fills the first layer; returns the node of each entry in it.
    fn number_pairs(&mut self, rows: &Rows) -> Vec<u32> {
        let mut numbers: HashMap<(u32, u64), u32> = HashMap::new();
        let pairs = rows.indices().iter().zip(rows.values());
        let number = |(&column, &value): (&u32, &f64)| {
            make_room(&mut numbers);
            match numbers.entry((column, value.to_bits())) {
                Entry::Occupied(number) => *number.get(),
                Entry::Vacant(vacant) => {
                    let number = self.first_layer.len() as u32;
                    allocation::push(&mut self.first_layer, (column, self.table.place(value)));
                    *vacant.insert(number)
                }
            }
        };
        allocation::collect(pausing(pairs).map(number))
    }

    /// Codes of each row.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = u32> {
        self.starts.windows(2).map(|ends| ends[1] - ends[0])
    }
}
