//! Memory contexts: what is allocated in one goes with it, and not when a value is dropped.
//!
//! The current one may go sooner than what is made in it: a node empties it after a row, SPI deletes it with the
//! connection. So a value has the lifetime of the [`Context`] that it was allocated in, or an [`OwnContext`].

use crate::values::varlena::Value;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::CStr;
use std::marker::PhantomData;

/// A memory context that is neither emptied nor deleted for `'m`.
///
/// What is allocated in that of a connection does not outlive the connection:
///
/// ```compile_fail,E0505
/// # use pg::{call::spi::Connection, values::varlena::Bytes};
/// let connection = Connection::open();
/// let bytes = Bytes::new(connection.context(), b"x").unwrap();
/// connection.close();
/// println!("{}", bytes.len());
/// ```
#[derive(Clone, Copy)]
pub struct Context<'m>(pg_sys::MemoryContext, PhantomData<&'m ()>);

impl<'m> Context<'m> {
    /// The current one.
    ///
    /// # Safety
    /// It is neither emptied nor deleted for `'m`.
    #[inline(always)]
    pub(crate) unsafe fn current() -> Context<'m> {
        // SAFETY: reads a variable.
        Context(unsafe { pg_sys::CurrentMemoryContext }, PhantomData)
    }

    /// Runs `f`, which allocates in this context.
    #[inline]
    pub(crate) fn enter<R>(self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the context is there. An ERROR in f resets the current one anyway.
        unsafe {
            let caller = pg_sys::MemoryContextSwitchTo(self.0);
            let result = f();
            pg_sys::MemoryContextSwitchTo(caller);
            result
        }
    }

    /// What a function returns: the value that `f` makes in this context.
    #[inline]
    pub(crate) fn value(self, f: impl FnOnce() -> pg_sys::Datum) -> Value<'m> {
        Value(self.enter(f), PhantomData)
    }
}

/// A memory context that goes with this value.
pub(crate) struct OwnContext(Cell<pg_sys::MemoryContext>);

impl OwnContext {
    /// An empty one.
    pub fn new(name: &'static CStr) -> OwnContext {
        // SAFETY: below a context that never goes.
        OwnContext(Cell::new(unsafe {
            pg_sys::AllocSetContextCreateInternal(
                pg_sys::TopMemoryContext,
                name.as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            )
        }))
    }

    /// The context.
    pub fn context(&self) -> Context<'_> {
        Context(self.0.get(), PhantomData)
    }

    /// Frees what is in it.
    pub fn reset(&mut self) {
        // SAFETY: no one borrows from it.
        unsafe { pg_sys::MemoryContextReset(self.0.get()) }
    }

    /// Leaves it to the current (sub)transaction, at whose end it goes.
    ///
    /// # Safety
    /// Nothing is done with self afterwards but to drop it.
    pub unsafe fn leave(&self) {
        // SAFETY: a link is set, which raises nothing. Outside of transactions there is no such context, and no one who
        // would still look at what is in this one.
        unsafe {
            if !pg_sys::CurTransactionContext.is_null() {
                pg_sys::MemoryContextSetParent(self.0.replace(std::ptr::null_mut()), pg_sys::CurTransactionContext);
            }
        }
    }
}

impl Drop for OwnContext {
    /// While an ERROR unwinds, PostgreSQL may still be in it, or look at what is in it when it cleans up.
    fn drop(&mut self) {
        // SAFETY: dropped once; deleted once, unless it was left to somebody.
        unsafe {
            if !self.0.get().is_null() && std::thread::panicking() {
                self.leave();
            }
            if !self.0.get().is_null() {
                pg_sys::MemoryContextDelete(self.0.get());
            }
        }
    }
}
