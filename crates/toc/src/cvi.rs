//! CVI: column of every non-zero, and an index into a table of the distinct values.

use tuples::pause::pausing;

use crate::bytes::{Layout, Reader, put_packed};
use crate::csr::{Places, products_by_rows, put_places};
use crate::index::Index;
use crate::kernels::{add_scaled, combine};
use crate::operations::Form;
use crate::stored;
use crate::table::Table;
use crate::values::{Summary, Values, check_used};
use crate::{Encoding, Error, Info, Number, Rows};

/// The bytes of CVI.
pub(crate) fn encode(rows: &Rows, layout: Layout) -> Vec<u8> {
    let mut table = Table::default();
    let codes: Vec<u32> = allocation::collect(pausing(rows.values()).map(|value| table.place(*value)));
    let values = table.values();
    let kind = Summary::from_values(values.iter().copied()).kind();
    let mut out = stored::begin(Encoding::Cvi, rows.len(), rows.columns(), kind);
    kind.put(&mut out, values);
    put_places(&mut out, rows, layout);
    put_packed(&mut out, layout.width((values.len() as u32).saturating_sub(1)), codes.into_iter());
    stored::seal(out)
}

/// Columns, places in the table, the table.
#[derive(Debug)]
pub(crate) struct Cvi<T, C> {
    rows: usize,
    columns: usize,
    places: Places,
    codes: Vec<C>,
    values: Vec<T>,
}

impl<T: Number, C: Index> Cvi<T, C> {
    /// What follows the header and the values of CVI.
    pub(crate) fn read(info: &Info, values: Values<'_>, mut reader: Reader<'_>) -> Result<Cvi<T, C>, Error> {
        let places = Places::read(info, &mut reader)?;
        check_used(&values, places.len())?;
        let codes = reader.packed(places.len())?.below(values.len() as u64, "a value that does not exist")?;
        reader.end()?;
        let codes = allocation::collect(codes.into_iter().map(C::from_place));
        Ok(Cvi { rows: info.rows, columns: info.columns, places, codes, values: values.to_vec() })
    }

    /// Its entries as they are in CSR.
    pub(crate) fn into_parts(self) -> (Places, Vec<T>) {
        let values = allocation::collect(self.codes.iter().map(|code| self.values[code.at()]));
        (self.places, values)
    }

    #[inline(always)]
    fn row(&self, i: usize) -> impl Iterator<Item = (T, usize)> + Clone {
        let row = self.places.row(i);
        let columns = self.places.columns(row.clone());
        self.codes[row].iter().zip(columns).map(|(code, column)| (self.values[code.at()], *column as usize))
    }
}

impl<T: Number, C: Index> Form<T> for Cvi<T, C> {
    products_by_rows!();

    fn heap_bytes(&self) -> usize {
        self.places.bytes() + self.codes.capacity() * size_of::<C>() + self.values.capacity() * size_of::<T>()
    }

    fn all_finite(&self) -> bool {
        self.values.iter().all(|value| value.is_finite())
    }

    fn get(&self, i: usize, j: usize) -> T {
        let row = self.places.row(i);
        let found = self.places.columns(row.clone()).binary_search(&(j as u32));
        found.map_or(T::ZERO, |place| self.values[self.codes[row.start + place].at()])
    }

    fn each_entry_of_row(&self, i: usize, f: &mut dyn FnMut(u32, T)) {
        self.row(i)
            .filter(|(value, _)| value.to_f64().to_bits() != 0)
            .for_each(|(value, column)| f(column as u32, value));
    }
}
