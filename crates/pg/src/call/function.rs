//! The call of a function by PostgreSQL: arguments as they lie, what is remembered from call to call, and results.

use super::arguments::Arguments;
use super::spread_row::{ROW, SpreadRow};
use crate::catalog::types::{base_type, is_varlena};
use crate::compat::attributes;
use crate::context::Context;
use crate::declared::declared_by_hand;
use crate::errors::{Error, raise};
use crate::executor::query::Running;
use crate::memory::Owned;
use crate::values::array::type_of_array;
use crate::values::output::{OutputValue, datum_of};
use crate::values::record::is_citext;
use crate::values::typed::TypedDatum;
use crate::values::varlena::{Bytes, Value};
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_int};

/// A call of a C function, with as little done per call as there is to do.
///
/// A function has it for its argument: pgrx hands it over, and no one else can make one.
#[derive(Clone, Copy)]
pub struct Call<'a>(pg_sys::FunctionCallInfo, Context<'a>);

/// What is remembered from call to call of the same place in a query.
struct Memory {
    arguments: Box<[ArgumentType]>,
    /// the row that argument 1 is, if its columns are behind all arguments
    row: Option<SpreadRow>,
    value: RefCell<Option<Box<dyn Any>>>,
    of_constant: RefCell<Option<Box<dyn Any>>>,
}

/// The type of an argument: that of its expression, or the one with which the function is declared.
struct ArgumentType {
    oid: pg_sys::Oid,
    is_varlena: bool,
    /// is it a constant of the query?
    is_constant: bool,
}

impl ArgumentType {
    /// The type of this value of the argument. Who calls without an expression, as Citus does for each row of a part of
    /// an aggregate, leaves nothing but the declaration, which may be that of any array: then the array says it.
    ///
    /// # Safety
    /// The datum is a value of the argument.
    #[inline(always)]
    unsafe fn of_value(&self, value: pg_sys::Datum) -> pg_sys::Oid {
        // SAFETY: the caller's promise: it is an array.
        if self.is_any_array() { unsafe { type_of_array(value) } } else { self.oid }
    }

    #[inline(always)]
    fn is_any_array(&self) -> bool {
        matches!(self.oid, pg_sys::ANYARRAYOID | pg_sys::ANYCOMPATIBLEARRAYOID)
    }
}

// SAFETY: a virtual argument, as pgrx's own of this kind: the information of the call that is under way.
unsafe impl<'fcx> ArgAbi<'fcx> for Call<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the virtual argument is there in any call. Nothing has run yet: the current context is the one in
        // which PostgreSQL calls, and wants the result.
        unsafe { Call(<pg_sys::FunctionCallInfo as ArgAbi<'fcx>>::unbox_arg_unchecked(arg), Context::current()) }
    }

    fn is_virtual_arg() -> bool {
        true
    }
}

declared_by_hand!(Call<'_>);

impl<'a> Call<'a> {
    /// How many arguments there are, of which a row is one, however it is given.
    pub fn len(self) -> usize {
        self.spread_row().map_or_else(|| self.slots().len(), |row| row.first)
    }

    /// The arguments, and the columns of a row that was spread.
    #[inline(always)]
    pub(crate) fn slots(self) -> &'a [pg_sys::NullableDatum] {
        // SAFETY: the information of a call, whose nargs says how many arguments there are; they stay for the call.
        unsafe { (*self.0).args.as_slice((*self.0).nargs as usize) }
    }

    /// The row that argument 1 is, if the call has its columns in place of it.
    #[inline(always)]
    pub(crate) fn spread_row(self) -> Option<&'a SpreadRow> {
        self.memory().row.as_ref()
    }

    /// Is argument `i` NULL?
    ///
    /// # Panics
    /// If the function has fewer.
    #[inline(always)]
    pub fn is_null(self, i: usize) -> bool {
        self.slots()[i].isnull
    }

    /// Argument `i`; None if it is NULL.
    ///
    /// # Panics
    /// If the function has fewer.
    #[inline(always)]
    pub fn argument(self, i: usize) -> Option<TypedDatum<'a>> {
        let known = &self.memory().arguments[i];
        let argument = self.slots()[i];
        // SAFETY: there are as many arguments as types, each of the type that its expression has, or that the function
        // is declared with; they stay for the call.
        (!argument.isnull).then(|| unsafe { TypedDatum::new(argument.value, known.of_value(argument.value)) })
    }

    /// Argument `i` as a value of Rust's own. An ERROR if it has another type.
    pub fn get<T: FromDatum + IntoDatum>(self, i: usize) -> Option<T> {
        self.argument(i).and_then(TypedDatum::to_rust)
    }

    /// Argument `i`, a double. Of another type it is some number.
    #[inline(always)]
    pub fn double(self, i: usize) -> Option<f64> {
        self.argument(i).map(|value| f64::from_bits(value.bits()))
    }

    /// Is argument `i` a constant of the query?
    pub fn is_constant(self, i: usize) -> bool {
        self.memory().arguments[i].is_constant
    }

    /// A copy of argument `i`, a value of our own type, to be changed.
    pub fn bytes(self, i: usize) -> Option<Bytes<'a>> {
        let value = self.varlena(i)?;
        // SAFETY: the type is one of variable length.
        Some(unsafe { Bytes::copy_of(self.1, value.datum()) })
    }

    /// Argument 0, the state of an aggregate, to be changed: in place if an aggregate calls, whose own it is then, else
    /// a copy.
    #[inline(always)]
    pub fn state(self) -> Option<Bytes<'a>> {
        let value = self.varlena(0)?;
        // SAFETY: the type is one of variable length. The transition value of an aggregate is its own: PostgreSQL
        // allows its transition and combine functions to change it (xaggr, "in place").
        Some(unsafe {
            let datum = value.datum();
            if self.is_in_aggregate() { Bytes::in_place(self.1, datum) } else { Bytes::copy_of(self.1, datum) }
        })
    }

    /// Argument `i`, of variable length. An ERROR if its type is not.
    #[inline(always)]
    fn varlena(self, i: usize) -> Option<TypedDatum<'a>> {
        if !self.memory().arguments[i].is_varlena {
            error!("argument {} of the function is not a value of bytes", i + 1);
        }
        self.argument(i)
    }

    /// Is this the call of an aggregate's transition or combine function (AggCheckCallContext, inline)? Its final
    /// function is not to ask for the state.
    #[inline(always)]
    fn is_in_aggregate(self) -> bool {
        // SAFETY: the context, if there is one, is a node.
        unsafe {
            let context = (*self.0).context;
            !context.is_null()
                && matches!((*context).type_, pg_sys::NodeTag::T_AggState | pg_sys::NodeTag::T_WindowAggState)
        }
    }

    /// The collation of argument `i`, which need not be that of the others: that of its expression.
    pub fn collation_of(self, i: usize) -> pg_sys::Oid {
        // SAFETY: the information of a call.
        unsafe {
            argument_expression((*self.0).flinfo, i)
                .map_or((*self.0).fncollation, |argument| pg_sys::exprCollation(argument))
        }
    }

    /// The type of argument `i`; a domain is given as such. Of a NULL that may be any array it is one of them: no one
    /// reads it.
    pub fn type_of(self, i: usize) -> pg_sys::Oid {
        if i == ROW && self.spread_row().is_some() {
            return pg_sys::RECORDOID;
        }
        let known = &self.memory().arguments[i];
        if !known.is_any_array() {
            return known.oid;
        }
        self.argument(i).map_or(pg_sys::FLOAT4ARRAYOID, TypedDatum::type_oid)
    }

    /// Shows `f` what an earlier call from the same place of the query has remembered, or what `make` makes now. A
    /// function remembers one thing; another type of it replaces what was. Nothing is remembered where an argument may
    /// be any array: the next one may be of another type.
    #[inline(always)]
    pub fn remembering<T: 'static, R, E>(
        self,
        make: impl FnOnce() -> Result<T, E>,
        f: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut value = self.memory().value.borrow_mut();
        if let Some(known) = value.as_mut().and_then(|value| value.downcast_mut()) {
            return f(known);
        }
        let mut made = Box::new(make()?);
        let result = f(&mut made);
        if !self.memory().arguments.iter().any(ArgumentType::is_any_array) {
            *value = Some(made);
        }
        result
    }

    /// What an earlier call from the same place of the query has made of argument `i` for this key, if the argument is
    /// a constant; else, and for another key, what `make` makes of it now. One argument of a function is remembered so.
    #[inline(always)]
    pub fn made_of_constant<K: PartialEq + 'static, T: Clone + 'static, E>(
        self,
        i: usize,
        key: K,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let memory = self.memory();
        if !memory.arguments[i].is_constant {
            return make();
        }
        let mut made = memory.of_constant.borrow_mut();
        if let Some((known, value)) = made.as_ref().and_then(|made| made.downcast_ref::<(K, T)>())
            && *known == key
        {
            return Ok(value.clone());
        }
        let value = make()?;
        *made = Some(Box::new((key, value.clone())));
        Ok(value)
    }

    /// What is remembered, made by the first call.
    #[inline(always)]
    fn memory(self) -> &'a Memory {
        // SAFETY: fn_extra belongs to the function, whose only use of it this is; it is dropped with the memory context
        // of the function's information, which outlives the call.
        unsafe {
            let info = (*self.0).flinfo;
            if info.is_null() || (*info).fn_extra.is_null() {
                self.remember();
            }
            &*(*info).fn_extra.cast::<Memory>()
        }
    }

    #[cold]
    fn remember(self) {
        // SAFETY: the information of a call; nargs says how many arguments there are. What is made is dropped with the
        // context in which the function's information lies.
        unsafe {
            let info = (*self.0).flinfo;
            if info.is_null() {
                error!("the function was called without information about it");
            }
            let arguments: Box<[ArgumentType]> = (0..(*self.0).nargs as usize)
                .map(|i| {
                    let oid = type_of_argument(info, i);
                    if matches!(oid, pg_sys::ANYOID | pg_sys::ANYCOMPATIBLEOID) {
                        error!("argument {} may have any type, but the caller does not say which", i + 1);
                    }
                    ArgumentType { oid, is_varlena: is_varlena(oid), is_constant: is_constant(info, i) }
                })
                .collect();
            let column = |i: usize| (arguments[i].oid, self.collation_of(i));
            // Without an expression, an input function has more arguments than it is declared with, too.
            let are_names = |names: &ArgumentType| names.is_constant && names.oid == pg_sys::TEXTARRAYOID;
            let row = arguments.get(ROW).filter(|names| are_names(names)).map(|_| self.slots()[ROW]);
            let row = row.and_then(|row| SpreadRow::of_call((*info).fn_oid, arguments.len(), row, column));
            let nothing = || RefCell::new(None);
            let memory = Memory { arguments, row, value: nothing(), of_constant: nothing() };
            (*info).fn_extra =
                pgrx::PgMemoryContexts::For((*info).fn_mcxt).leak_and_drop_on_delete(Owned::new(memory)).cast();
        }
    }

    /// Argument 0 as a C string, for the input function of a type.
    pub fn text(self) -> Option<&'a CStr> {
        let value = self.argument(0)?.of_type(pg_sys::CSTRINGOID);
        // SAFETY: the type is cstring, and the argument stays for the call.
        Some(unsafe { CStr::from_ptr(value.cast_mut_ptr()) })
    }

    /// What argument 0 points to, of type internal.
    pub(crate) fn pointer(self) -> Option<*mut pg_sys::Node> {
        self.argument(0).map(|value| value.of_type(pg_sys::INTERNALOID).cast_mut_ptr())
    }

    /// What is left of the message that argument 0 is, of a type's receive function.
    pub fn message(self) -> Option<&'a [u8]> {
        let value = self.argument(0)?.of_type(pg_sys::INTERNALOID);
        let message: *mut pg_sys::StringInfoData = value.cast_mut_ptr();
        // SAFETY: SQL cannot call a function of type internal; PostgreSQL calls that of a type with a StringInfo, and
        // wants it to take all that is left of it.
        unsafe {
            let len = (*message).len - (*message).cursor;
            let bytes = pg_sys::pq_getmsgbytes(message, len);
            Some(std::slice::from_raw_parts(bytes.cast(), len as usize))
        }
    }

    /// The memory context of the call, where its result lies.
    pub fn context(self) -> Context<'a> {
        self.1
    }

    /// PostgreSQL's own information of the call.
    pub(super) fn info(self) -> pg_sys::FunctionCallInfo {
        self.0
    }

    /// The arguments.
    pub fn arguments(self) -> Arguments<'a> {
        let arguments = &self.memory().arguments;
        Arguments::new((0..self.len()).map(|i| (arguments[i].oid, self.argument(i))).collect())
    }

    /// A row as the function's result, for a function with several OUT parameters.
    /// An ERROR if a value is not of its column's type.
    pub fn row(self, values: &[OutputValue]) -> Value<'a> {
        // SAFETY: the declaration says which columns there are; they are counted before the row is made, and each value
        // is made one of its column's type.
        self.1.value(|| unsafe {
            let mut descriptor = std::ptr::null_mut();
            let class = pg_sys::get_call_result_type(self.0, std::ptr::null_mut(), &mut descriptor);
            if class != pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE || (*descriptor).natts as usize != values.len() {
                error!("the function does not return {} columns", values.len());
            }
            let descriptor = pg_sys::BlessTupleDesc(descriptor);
            let columns = &attributes(descriptor)[..values.len()];
            let datums = columns.iter().zip(values).map(|(column, value)| value.datum_for(column.atttypid));
            let (mut datums, mut nulls) = split(datums);
            let tuple = pg_sys::heap_form_tuple(descriptor, datums.as_mut_ptr(), nulls.as_mut_ptr());
            pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data)
        })
    }

    /// Returns rows as the function's result, all at once. An older declaration of the function in SQL may have fewer
    /// columns: it gets the first ones. An ERROR if a value is not of its column's type, or if the caller expects
    /// rows of more columns.
    pub fn return_rows<const COLUMNS: usize>(self, rows: impl IntoIterator<Item = [OutputValue; COLUMNS]>) {
        let result = ResultRows::new(self, COLUMNS);
        for row in rows {
            result.put(result.types().iter().zip(&row).map(|(declared, value)| value.datum_for(*declared)));
        }
    }

    /// Returns the rows of a query as the function's result, all at once: of each these columns, None for NULL. An
    /// ERROR if the caller expects rows of more columns.
    pub fn return_query(self, query: &Running, columns: &[Option<usize>]) {
        let rows = ResultRows::new(self, columns.len());
        query.run_rows(|| {
            while let Some(slot) = query.row() {
                slot.with_row(|row| {
                    let value = |column: &Option<usize>, declared| Some(datum_of(row.get((*column)?)?, declared));
                    rows.put(rows.types().iter().zip(columns).map(|(declared, column)| value(column, *declared)));
                });
            }
        });
    }
}

/// The type of argument `i`: that of its expression, or the one with which the function is declared.
///
/// # Safety
/// The information is that of a function with this many arguments.
unsafe fn type_of_argument(info: *mut pg_sys::FmgrInfo, i: usize) -> pg_sys::Oid {
    // SAFETY: fn_expr is NULL or an expression that calls the function; the declaration is palloced.
    unsafe {
        let of_expression = pg_sys::get_fn_expr_argtype(info, i as c_int);
        // a function of a text takes a citext for one, whose upper and lower case still are the same
        if of_expression == pg_sys::TEXTOID
            && let Some(expression) = argument_expression(info, i)
            && (*expression).type_ == pg_sys::NodeTag::T_RelabelType
            && let cast = pg_sys::exprType((*expression.cast::<pg_sys::RelabelType>()).arg.cast())
            && is_citext(base_type(cast))
        {
            return cast;
        }
        if of_expression != pg_sys::Oid::INVALID {
            return of_expression;
        }
        let (mut types, mut n) = (std::ptr::null_mut(), 0);
        pg_sys::get_func_signature((*info).fn_oid, &mut types, &mut n);
        if i < n as usize { *types.add(i) } else { pg_sys::Oid::INVALID }
    }
}

/// Is argument `i` a constant where the function is called? A parameter is not one: a variable of PL/pgSQL is one,
/// which changes between calls from the same place.
///
/// # Safety
/// As [`type_of_argument`].
unsafe fn is_constant(info: *mut pg_sys::FmgrInfo, i: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { argument_expression(info, i).is_some_and(|argument| (*argument).type_ == pg_sys::NodeTag::T_Const) }
}

/// The expression of argument `i` of a plain function, if there is one.
///
/// # Safety
/// As [`type_of_argument`].
unsafe fn argument_expression(info: *mut pg_sys::FmgrInfo, i: usize) -> Option<*mut pg_sys::Node> {
    // SAFETY: fn_expr is NULL or an expression; that of a plain function has a list of arguments.
    unsafe {
        let expression = (*info).fn_expr;
        if expression.is_null() || (*expression).type_ != pg_sys::NodeTag::T_FuncExpr {
            return None;
        }
        pgrx::PgList::<pg_sys::Node>::from_pg((*expression.cast::<pg_sys::FuncExpr>()).args).get_ptr(i)
    }
}

/// Values, and whether they are NULL.
fn split(values: impl Iterator<Item = Option<pg_sys::Datum>>) -> (Vec<pg_sys::Datum>, Vec<bool>) {
    values.map(|value| (value.unwrap_or(pg_sys::Datum::null()), value.is_none())).unzip()
}

/// Where rows go that are a function's result.
struct ResultRows {
    store: *mut pg_sys::Tuplestorestate,
    descriptor: pg_sys::TupleDesc,
    types: Vec<pg_sys::Oid>,
}

impl ResultRows {
    /// For rows of at most this many columns.
    fn new(call: Call<'_>, columns: usize) -> ResultRows {
        // SAFETY: InitMaterializedSRF checks the context and makes the tuplestore, both of which outlive the call.
        unsafe {
            pg_sys::InitMaterializedSRF(call.0, 0);
            let result = (*call.0).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            let (store, descriptor) = ((*result).setResult, (*result).setDesc);
            let wanted = (*descriptor).natts as usize;
            if wanted > columns {
                raise(&Error::NotARowType);
            }
            let types = attributes(descriptor)[..wanted].iter().map(|column| column.atttypid).collect();
            ResultRows { store, descriptor, types }
        }
    }

    fn types(&self) -> &[pg_sys::Oid] {
        &self.types
    }

    /// Puts a row, whose values were made for these types.
    fn put(&self, values: impl Iterator<Item = Option<pg_sys::Datum>>) {
        let (mut values, mut nulls) = split(values);
        assert_eq!(values.len(), self.types.len());
        // SAFETY: there are as many values as the tuplestore's descriptor has attributes, and they are copied.
        unsafe {
            pg_sys::tuplestore_putvalues(self.store, self.descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
        }
    }
}
