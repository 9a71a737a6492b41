//! Values that are bags of words: the lexemes of a `tsvector`, the elements of an array of texts.
//!
//! A `tsvector` is read in place. Its lengths and offsets are compared with how many bytes there are before anything is
//! read by them, so that a damaged value is a fault and no more.

use super::array::{AnyArray, ArrayFault};
use super::record::CategoryType;
use super::typed::TypedDatum;
use super::vector::with_bytes_of;
use crate::catalog::types::base_type;
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

/// What a bag consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BagKind {
    /// of a tsvector
    Lexemes,
    /// of an array of texts or enums
    Elements,
}

/// Reads bags of one type.
#[derive(Debug, Clone, Copy)]
pub enum BagReader {
    /// a tsvector, of this declared type
    Lexemes(pg_sys::Oid),
    /// an array of such texts
    Elements(AnyArray, CategoryType),
}

/// Bytes of the entry of a lexeme, and of the length of its list of positions.
const ENTRY: usize = 4;
const COUNT: usize = 2;

impl BagReader {
    /// A reader for values of this type, which may be a domain, if they are bags.
    pub fn new(type_oid: pg_sys::Oid, collation: pg_sys::Oid) -> Option<BagReader> {
        if base_type(type_oid) == pg_sys::TSVECTOROID {
            return Some(BagReader::Lexemes(type_oid));
        }
        let array = AnyArray::new(type_oid)?;
        CategoryType::new(array.element(), collation).map(|element| BagReader::Elements(array, element))
    }

    /// What its bags consist of.
    pub fn kind(&self) -> BagKind {
        match self {
            BagReader::Lexemes(_) => BagKind::Lexemes,
            BagReader::Elements(..) => BagKind::Elements,
        }
    }

    /// Gives each word of a bag, None for an element that is NULL, and how often it is there: the positions of a
    /// lexeme, 1 where they were stripped. An element that is there twice comes twice.
    ///
    /// # Errors
    /// [`ArrayFault::Dimensions`], [`ArrayFault::Damaged`], after some words perhaps.
    pub fn read(&self, bag: TypedDatum<'_>, mut word: impl FnMut(Option<&[u8]>, u16)) -> Result<(), ArrayFault> {
        match self {
            BagReader::Lexemes(type_oid) => {
                with_bytes_of(bag, *type_oid, |bytes| read_lexemes(bytes, |lexeme, count| word(Some(lexeme), count)))
            }
            BagReader::Elements(array, element) => array.with_elements(bag, |elements| {
                for value in elements {
                    match value {
                        Some(value) => element.with_text(*value, |text| word(Some(text), 1)),
                        None => word(None, 1),
                    }
                }
            }),
        }
    }
}

/// Gives each lexeme of a tsvector, and how many positions it has.
fn read_lexemes(bytes: &[u8], mut word: impl FnMut(&[u8], u16)) -> Result<(), ArrayFault> {
    use ArrayFault::Damaged;
    let (size, rest) = bytes.split_first_chunk::<4>().ok_or(Damaged)?;
    let size = usize::try_from(i32::from_le_bytes(*size)).map_err(|_| Damaged)?;
    let entries = size.checked_mul(ENTRY).filter(|entries| *entries <= rest.len()).ok_or(Damaged)?;
    let (entries, texts) = rest.split_at(entries);
    for entry in entries.as_chunks::<ENTRY>().0 {
        // bit fields of the C structure WordEntry
        let entry = u32::from_le_bytes(*entry);
        let (has_positions, len, at) = (entry & 1 == 1, (entry >> 1 & 0x7FF) as usize, (entry >> 12) as usize);
        let lexeme = texts.get(at..at + len).ok_or(Damaged)?;
        let positions = match has_positions {
            true => {
                let at = (at + len).next_multiple_of(COUNT);
                let count = texts.get(at..).and_then(|rest| rest.first_chunk::<COUNT>()).ok_or(Damaged)?;
                u16::from_le_bytes(*count).max(1)
            }
            false => 1,
        };
        word(lexeme, positions);
    }
    Ok(())
}
