//! A column of which each value is a bag of words, each of them hashed into the buckets that hashed columns share.
//!
//! Guarantees: what a bag comes to is a function of the column's name, its words and the number of buckets. A lexeme of
//! a tsvector counts 1 + ln(its positions), as scikit-learn's `sublinear_tf` counts words, by arithmetic that is the
//! same on every machine; an element of an array counts 1, however often it is there.

use loss::logarithm::signed_log_f64;
use pg::executor::query::Column;
use pg::values::array::ArrayFault;
use pg::values::bag::{BagKind, BagReader};
use pg::values::typed::TypedDatum;
use pgrx::pg_sys::Oid;
use tuples::{HashedColumn, bucket_of};

/// How bags of a column are read.
#[derive(Debug, Clone, Copy)]
pub struct Bag {
    reader: BagReader,
    column: HashedColumn,
}

impl Bag {
    /// Of a column with this name, type and collation; None if its values are no bags.
    pub fn new(name: &str, type_oid: Oid, collation: Oid) -> Option<Bag> {
        Some(Bag { reader: BagReader::new(type_oid, collation)?, column: HashedColumn::new(name) })
    }

    pub fn of_column(column: &Column) -> Option<Bag> {
        Bag::new(&column.name, column.type_oid, column.collation)
    }

    /// What its bags consist of.
    pub fn kind(&self) -> BagKind {
        self.reader.kind()
    }

    /// Gives the hash of each word, and what it counts. `hashes` is room.
    pub fn read(
        &self,
        bag: TypedDatum<'_>,
        hashes: &mut Vec<u64>,
        mut each: impl FnMut(u64, f32),
    ) -> Result<(), ArrayFault> {
        match self.kind() {
            BagKind::Lexemes => self.reader.read(bag, |word, count| each(self.column.hash(word), value_of(count))),
            BagKind::Elements => {
                hashes.clear();
                self.reader.read(bag, |word, _| allocation::push(hashes, self.column.hash(word)))?;
                hashes.sort_unstable();
                hashes.dedup();
                hashes.iter().for_each(|hash| each(*hash, 1.0));
                Ok(())
            }
        }
    }

    /// Appends the buckets of the words, and what they count.
    pub fn push(
        &self,
        bag: TypedDatum<'_>,
        count: u32,
        hashes: &mut Vec<u64>,
        buckets: &mut Vec<(u32, f32)>,
    ) -> Result<(), ArrayFault> {
        self.read(bag, hashes, |hash, value| allocation::push(buckets, (bucket_of(hash, count), value)))
    }

    /// The bucket of NULL.
    pub fn null(&self, count: u32) -> u32 {
        self.column.bucket(None, count)
    }
}

/// What a lexeme with this many positions counts.
fn value_of(positions: u16) -> f32 {
    if positions == 1 { 1.0 } else { (1.0 + signed_log_f64(f64::from(positions) - 1.0)) as f32 }
}

#[cfg(test)]
mod tests {
    use super::value_of;

    #[test]
    fn a_lexeme_counts_one_and_the_logarithm_of_its_positions() {
        // numpy.float32(1 + numpy.log([1, 2, 3, 10, 255]))
        let expected = [1.0, 1.693_147_2, 2.098_612_3, 3.302_585, 6.541_264];
        assert_eq!([1, 2, 3, 10, 255].map(value_of), expected);
    }
}
