//! DVI: every entry as an index into a table of the distinct values.

use tuples::pause::pausing;

use crate::bytes::{Layout, Reader, put_packed};
use crate::csr::products_by_rows;
use crate::dense::all_entries;
use crate::index::Index;
use crate::kernels::{add_scaled, combine};
use crate::operations::Form;
use crate::stored;
use crate::table::Table;
use crate::values::{Summary, Values};
use crate::{Encoding, Error, Info, Number, Rows};

/// The bytes of DVI.
pub(crate) fn encode(rows: &Rows, layout: Layout) -> Result<Vec<u8>, Error> {
    let mut table = Table::default();
    let codes: Vec<u32> = allocation::collect(pausing(all_entries(rows)?).map(|value| table.place(value)));
    let values = table.values();
    let kind = Summary::from_values(values.iter().copied()).kind();
    let mut out = stored::begin(Encoding::Dvi, rows.len(), rows.columns(), kind);
    kind.put(&mut out, values);
    put_packed(&mut out, layout.width((values.len() as u32).saturating_sub(1)), codes.into_iter());
    Ok(stored::seal(out))
}

/// A place in the table for each entry, and the table.
#[derive(Debug)]
pub(crate) struct Dvi<T, C> {
    rows: usize,
    columns: usize,
    codes: Vec<C>,
    values: Vec<T>,
}

impl<T: Number, C: Index> Dvi<T, C> {
    /// What follows the header and the values of DVI.
    pub(crate) fn read(info: &Info, values: Values<'_>, mut reader: Reader<'_>) -> Result<Dvi<T, C>, Error> {
        let codes = reader.packed(info.entries() as usize)?;
        reader.end()?;
        let codes = codes.below(values.len() as u64, "a value that does not exist")?;
        let codes = allocation::collect(codes.into_iter().map(C::from_place));
        Ok(Dvi { rows: info.rows, columns: info.columns, codes, values: values.to_vec() })
    }

    #[inline(always)]
    fn row(&self, i: usize) -> impl Iterator<Item = (T, usize)> + Clone {
        let codes = &self.codes[i * self.columns..(i + 1) * self.columns];
        codes.iter().enumerate().map(|(column, code)| (self.values[code.at()], column))
    }

    /// All entries.
    pub(crate) fn into_values(self) -> Vec<T> {
        allocation::collect(self.codes.iter().map(|code| self.values[code.at()]))
    }
}

impl<T: Number, C: Index> Form<T> for Dvi<T, C> {
    products_by_rows!();

    fn heap_bytes(&self) -> usize {
        self.codes.capacity() * size_of::<C>() + self.values.capacity() * size_of::<T>()
    }

    fn all_finite(&self) -> bool {
        self.values.iter().all(|value| value.is_finite())
    }

    fn get(&self, i: usize, j: usize) -> T {
        self.values[self.codes[i * self.columns + j].at()]
    }

    fn each_entry_of_row(&self, i: usize, f: &mut dyn FnMut(u32, T)) {
        self.row(i)
            .filter(|(value, _)| value.to_f64().to_bits() != 0)
            .for_each(|(value, column)| f(column as u32, value));
    }
}
