//! A row whose columns are arguments of a call, as [`spread_rows`](crate::executor::spread_rows) makes them.

use crate::values::array::AnyArray;
use crate::values::record::RecordColumn;
use crate::values::typed::TypedDatum;
use crate::values::varlena::with_content;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

/// Which argument the row would be: the names of its columns are in its place.
pub(crate) const ROW: usize = 1;

/// The columns of such a row.
pub(crate) struct SpreadRow {
    /// the argument that is the first column; those before it are as declared
    pub first: usize,
    pub columns: Vec<RecordColumn>,
    /// as [`Record::type_identifier`](crate::values::record::Record::type_identifier)
    pub identifier: u64,
}

impl SpreadRow {
    /// The row of a call of this function, if it has more arguments than the function is declared with. `column` gives
    /// type and collation of an argument.
    ///
    /// # Safety
    /// `row` is what is given for [`ROW`], an array of text.
    pub unsafe fn of_call(
        function: pg_sys::Oid,
        given: usize,
        row: pg_sys::NullableDatum,
        column: impl Fn(usize) -> (pg_sys::Oid, pg_sys::Oid),
    ) -> Option<SpreadRow> {
        let first = declared_arguments(function).filter(|declared| *declared < given && !row.isnull)?;
        // SAFETY: the caller's promise.
        let names = unsafe { TypedDatum::new(row.value, pg_sys::TEXTARRAYOID) };
        let names = AnyArray::new(pg_sys::TEXTARRAYOID)?.with_elements(names, |names| {
            // SAFETY: the elements are texts.
            let name = |name: &TypedDatum<'_>| unsafe {
                with_content(name.datum(), |bytes| String::from_utf8_lossy(bytes).into_owned())
            };
            names.iter().flatten().map(name).collect::<Vec<_>>()
        });
        let columns = names.ok()?.into_iter().enumerate().map(|(attribute, name)| {
            let (type_oid, collation) = column(first + attribute);
            RecordColumn { name, attribute, type_oid, collation }
        });
        let columns = columns.collect::<Vec<_>>();
        let identifier = identifier_of(&columns);
        Some(SpreadRow { first, columns, identifier })
    }
}

/// How many arguments a function is declared with; None of one that takes any number.
pub(crate) fn declared_arguments(function: pg_sys::Oid) -> Option<usize> {
    // SAFETY: catalog lookups.
    unsafe {
        let takes_any_number = pg_sys::get_func_variadictype(function) != pg_sys::Oid::INVALID;
        (!takes_any_number).then(|| pg_sys::get_func_nargs(function) as usize)
    }
}

/// A number for rows with these columns, which no row type has: theirs count from 1. The last ones are remembered, so
/// that the next execution of a statement finds what was planned for the one before.
fn identifier_of(columns: &[RecordColumn]) -> u64 {
    const REMEMBERED: usize = 8;
    thread_local! {
        static LAST: Cell<u64> = const { Cell::new(1 << 63) };
        static KNOWN: RefCell<Vec<(Vec<RecordColumn>, u64)>> = const { RefCell::new(Vec::new()) };
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some((_, identifier)) = known.iter().find(|(of, _)| of == columns) {
            return *identifier;
        }
        LAST.set(LAST.get() + 1);
        known.truncate(REMEMBERED - 1);
        known.insert(0, (columns.to_vec(), LAST.get()));
        LAST.get()
    })
}
