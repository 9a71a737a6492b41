//! Sessions on other servers, by dblink: over foreign servers and user mappings, so that connections, passwords and
//! privileges are PostgreSQL's own.
//!
//! A session ends when it is dropped, and at the latest with the memory context in which it began: with the statement,
//! whatever ends that. What a server says, it says as an error of its own: its SQLSTATE, message, detail and hint, with
//! its name.

use crate::call::spi::{Connection, Sees};
use crate::catalog::names::quote_identifier;
use crate::compat::{may_execute, may_use_server};
use crate::errors::{Error, Result};
use crate::interrupts::check_for_interrupts;
use pgrx::PgTryBuilder;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// The functions of dblink that a session needs, as fmgr knows them.
struct Functions {
    connect: pg_sys::Oid,
    send: pg_sys::FmgrInfo,
    is_busy: pg_sys::FmgrInfo,
    result: pg_sys::FmgrInfo,
    message: pg_sys::FmgrInfo,
    disconnect: pg_sys::FmgrInfo,
}

/// Their names and arguments, in the sequence of the fields.
const NEEDED: [&str; 6] = [
    "dblink_connect(text,text)",
    "dblink_send_query(text,text)",
    "dblink_is_busy(text)",
    "dblink_get_result(text)",
    "dblink_error_message(text)",
    "dblink_disconnect(text)",
];

/// A session on another server.
pub struct Session {
    server: String,
    /// PostgreSQL's, which ends with its memory context
    held: *mut Held,
}

/// What a session has of PostgreSQL: all of it in one memory context.
struct Held {
    context: pg_sys::MemoryContext,
    callback: pg_sys::MemoryContextCallback,
    functions: Functions,
    /// the connection's name
    name: [c_char; 64],
    /// what is made for a call and its result
    scratch: pg_sys::MemoryContext,
    is_open: bool,
}

/// How long to wait between two looks at whether a server has answered: at first barely, then longer.
const PAUSES: std::ops::Range<Duration> = Duration::from_micros(20)..Duration::from_millis(2);

/// Looks that follow one upon the other before the first pause.
const LOOKS: u32 = 50;

impl Session {
    /// Connects to this foreign server, as the current user's mapping says.
    ///
    /// # Errors
    /// [`Error::NoDblink`], [`Error::NoUsage`], [`Error::NoMapping`], [`Error::NoPassword`]; dblink's own are raised.
    pub fn connect(server: &str) -> Result<Session> {
        let oids = functions()?;
        check_mapping(server)?;
        // SAFETY: the context is a child of the current one; what is in it is there as long as the context.
        unsafe {
            for oid in oids {
                let verdict = may_execute(oid);
                if verdict != pg_sys::AclResult::ACLCHECK_OK {
                    let name = pg_sys::get_func_name(oid);
                    pg_sys::aclcheck_error(verdict, pg_sys::ObjectType::OBJECT_FUNCTION, name);
                }
            }
            let context = context(pg_sys::CurrentMemoryContext, c"corgipile session");
            let held = pg_sys::MemoryContextAllocZero(context, size_of::<Held>()).cast::<Held>();
            let info = |oid| {
                let mut info = pg_sys::FmgrInfo::default();
                pg_sys::fmgr_info_cxt(oid, &mut info, context);
                info
            };
            let [connect, send, is_busy, result, message, disconnect] = oids;
            let functions = Functions {
                connect,
                send: info(send),
                is_busy: info(is_busy),
                result: info(result),
                message: info(message),
                disconnect: info(disconnect),
            };
            (&raw mut (*held).functions).write(functions);
            (*held).context = context;
            (*held).scratch = self::context(context, c"corgipile answer");
            // a name that no other connection of the session has
            let name = format!("corgipile_{:016x}", crate::random_seed());
            (*held).name.iter_mut().zip(name.bytes()).for_each(|(place, byte)| *place = byte as c_char);
            (*held).callback.func = Some(context_ends);
            (*held).callback.arg = held.cast();
            pg_sys::MemoryContextRegisterResetCallback(context, &raw mut (*held).callback);
            let session = Session { server: server.to_owned(), held };
            let of_server = server.to_owned();
            session.call(|held| {
                let arguments = [name_of(held), text_of(of_server.as_bytes())];
                pg_sys::OidFunctionCall2Coll(
                    (*held).functions.connect,
                    pg_sys::Oid::INVALID,
                    arguments[0],
                    arguments[1],
                );
                (*held).is_open = true;
            });
            Ok(session)
        }
    }

    /// The server's name.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Sends statements, and does not wait for the answer.
    pub fn send(&self, sql: &[u8]) {
        // SAFETY: what is there is there as long as the session; dblink's functions get what they are declared with.
        let refused = self.call(|held| unsafe {
            let (functions, name) = (&raw mut (*held).functions, name_of(held));
            let none = pg_sys::Oid::INVALID;
            let sent = pg_sys::FunctionCall2Coll(&raw mut (*functions).send, none, name, text_of(sql));
            if sent.value() as i32 != 0 {
                return None;
            }
            let message = pg_sys::FunctionCall1Coll(&raw mut (*functions).message, none, name);
            let message = pg_sys::text_to_cstring(message.cast_mut_ptr());
            Some(CStr::from_ptr(message).to_string_lossy().trim().to_owned())
        });
        if let Some(message) = refused {
            let message = format!("server \"{}\": {message}", self.server);
            ErrorReport::new(PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE, message, "corgipile")
                .report(PgLogLevel::ERROR);
        }
    }

    /// Waits for the answer to what was sent: the only column of the last row that it gives, and the word that ends a
    /// statement without rows. None if it returns nothing.
    pub fn answer(&self) -> Option<String> {
        let mut last = None;
        loop {
            self.wait();
            match self.call(result) {
                Some(value) => last = value,
                None => return last,
            }
        }
    }

    /// Waits until there is an answer, or a part of it.
    fn wait(&self) {
        let mut looks = 0;
        let mut pause = PAUSES.start;
        loop {
            check_for_interrupts();
            // SAFETY: as in send().
            let is_busy = self.call(|held| unsafe {
                let name = name_of(held);
                let function = &raw mut (*held).functions.is_busy;
                pg_sys::FunctionCall1Coll(function, pg_sys::Oid::INVALID, name).value() as i32 != 0
            });
            if !is_busy {
                return;
            }
            looks += 1;
            if looks <= LOOKS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(pause);
                pause = (pause * 2).min(PAUSES.end);
            }
        }
    }

    /// Calls functions of dblink in memory of the call's own. Their errors are raised as those of the server.
    fn call<R>(&self, f: impl FnOnce(*mut Held) -> R) -> R {
        let held = self.held;
        // SAFETY: the session's own context, emptied after each call; an ERROR leaves the caller's context as it was,
        // as pgrx's guards do.
        unsafe {
            let scratch = (*held).scratch;
            let caller = pg_sys::MemoryContextSwitchTo(scratch);
            let result = PgTryBuilder::new(AssertUnwindSafe(|| f(held)))
                .catch_others(|error| {
                    pg_sys::MemoryContextSwitchTo(caller);
                    raise_of_server(&self.server, error)
                })
                .execute();
            pg_sys::MemoryContextSwitchTo(caller);
            pg_sys::MemoryContextReset(scratch);
            result
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // While an ERROR unwinds, nothing may call PostgreSQL: the session ends with the memory of its statement.
        if !std::thread::panicking() {
            // SAFETY: made in connect(), and no one has it any more; the callback disconnects.
            unsafe { pg_sys::MemoryContextDelete((*self.held).context) };
        }
    }
}

/// The context of a session is emptied or goes: the connection ends. The server notices that it has no one to answer,
/// within a second.
#[pg_guard]
unsafe extern "C-unwind" fn context_ends(held: *mut c_void) {
    // SAFETY: registered with what it gets, which is still there; nothing is raised from here.
    unsafe {
        let held = held.cast::<Held>();
        if std::mem::replace(&mut (*held).is_open, false) {
            let disconnect = || {
                let name = name_of(held);
                let function = &raw mut (*held).functions.disconnect;
                pg_sys::FunctionCall1Coll(function, pg_sys::Oid::INVALID, name);
            };
            PgTryBuilder::new(AssertUnwindSafe(disconnect)).catch_others(|_| ()).execute();
        }
    }
}

/// May the user connect to a server? Also refuses what postgres_fdw lets pass and dblink does not: a superuser may have
/// said that a user needs no password.
fn check_mapping(server: &str) -> Result<()> {
    let name = CString::new(server).expect("PostgreSQL's names have no zeros");
    // SAFETY: a server's name; its mapping has a list of DefElem nodes. What is not there is an ERROR.
    let needs = unsafe {
        let user = pg_sys::GetUserId();
        let id = (*pg_sys::GetForeignServerByName(name.as_ptr(), false)).serverid;
        if !may_use_server(id) {
            let role = CStr::from_ptr(pg_sys::GetUserNameFromId(user, false)).to_string_lossy();
            return Err(Error::NoUsage { server: server.to_owned(), role: quote_identifier(&role) });
        }
        if ![user, pg_sys::Oid::INVALID].into_iter().any(|user| has_mapping(user, id)) {
            return Err(Error::NoMapping(server.to_owned()));
        }
        let mapping = pg_sys::GetUserMapping(user, id);
        let options = pgrx::PgList::<pg_sys::DefElem>::from_pg((*mapping).options);
        let option = |name: &CStr| options.iter_ptr().find(|option| CStr::from_ptr((**option).defname) == name);
        let is_free = option(c"password_required").is_some_and(|option| !pg_sys::defGetBoolean(option));
        is_free && option(c"password").is_none() && !pg_sys::superuser()
    };
    if needs { Err(Error::NoPassword(server.to_owned())) } else { Ok(()) }
}

/// Is there a mapping of this user, or of the public, for a server?
///
/// # Safety
/// In a transaction.
unsafe fn has_mapping(user: pg_sys::Oid, server: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup; what is found is given back.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::USERMAPPINGUSERSERVER as c_int;
        let tuple = pg_sys::SearchSysCache2(cache, user.into(), server.into());
        let is_there = !tuple.is_null();
        if is_there {
            pg_sys::ReleaseSysCache(tuple);
        }
        is_there
    }
}

/// An empty memory context.
///
/// # Safety
/// The parent is a context.
unsafe fn context(parent: pg_sys::MemoryContext, name: &'static CStr) -> pg_sys::MemoryContext {
    // SAFETY: the caller's promise; the name is static.
    unsafe {
        pg_sys::AllocSetContextCreateInternal(
            parent,
            name.as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        )
    }
}

/// The name of a session's connection, as a text in the current memory context.
///
/// # Safety
/// The session has not ended.
unsafe fn name_of(held: *mut Held) -> pg_sys::Datum {
    // SAFETY: the caller's promise; the name ends in a zero.
    text_of(unsafe { CStr::from_ptr((*held).name.as_ptr()) }.to_bytes())
}

/// A text in the current memory context.
fn text_of(bytes: &[u8]) -> pg_sys::Datum {
    // SAFETY: copies this many bytes; more than a text can have are an ERROR.
    let text = unsafe { pg_sys::cstring_to_text_with_len(bytes.as_ptr().cast(), bytes.len() as c_int) };
    pg_sys::Datum::from(text)
}

/// The functions of extension dblink, wherever it is installed.
fn functions() -> Result<[pg_sys::Oid; 6]> {
    const OF_EXTENSION: &str = "SELECT p.oid FROM pg_catalog.pg_proc AS p
          JOIN pg_catalog.pg_depend AS d
            ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
           AND d.objid OPERATOR(pg_catalog.=) p.oid
           AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
           AND d.deptype OPERATOR(pg_catalog.=) 'e'
          JOIN pg_catalog.pg_extension AS e ON e.oid OPERATOR(pg_catalog.=) d.refobjid
         WHERE e.extname OPERATOR(pg_catalog.=) 'dblink'
           AND pg_catalog.format('%s(%s)', p.proname,
                                 pg_catalog.replace(pg_catalog.oidvectortypes(p.proargtypes), ', ', ','))
               OPERATOR(pg_catalog.=) ";
    let connection = Connection::open();
    let mut oids = [pg_sys::Oid::INVALID; 6];
    for (oid, needed) in oids.iter_mut().zip(NEEDED) {
        let rows = connection.run(&format!("{OF_EXTENSION} '{needed}'"), Sees::Statement)?;
        *oid = if rows.len() == 1 { rows.get(0, 0).unwrap_or(pg_sys::Oid::INVALID) } else { pg_sys::Oid::INVALID };
    }
    connection.close();
    if oids.contains(&pg_sys::Oid::INVALID) { Err(Error::NoDblink) } else { Ok(oids) }
}

/// The next result of what was sent: its last value. None at the end.
///
/// dblink_get_result() gives a set of rows, whose columns its caller says: here one of type text.
#[expect(ffi_unwind_calls, reason = "behind a barrier")]
fn result(held: *mut Held) -> Option<Option<String>> {
    // SAFETY: the function is dblink's, called as PostgreSQL's executor calls a function in FROM: with a place for a
    // set of rows, whose columns are said. All that it makes is in the session's memory of a call.
    unsafe {
        let descriptor = pg_sys::CreateTemplateTupleDesc(1);
        pg_sys::TupleDescInitEntry(descriptor, 1, c"value".as_ptr(), pg_sys::TEXTOID, -1, 0);
        let econtext = pg_sys::CreateStandaloneExprContext();
        (*econtext).ecxt_per_query_memory = (*held).scratch;
        let mut set = pg_sys::ReturnSetInfo {
            type_: pg_sys::NodeTag::T_ReturnSetInfo,
            econtext,
            expectedDesc: descriptor,
            allowedModes: pg_sys::SetFunctionReturnMode::SFRM_Materialize as c_int,
            returnMode: pg_sys::SetFunctionReturnMode::SFRM_ValuePerCall,
            ..Default::default()
        };
        let size = size_of::<pg_sys::FunctionCallInfoBaseData>() + size_of::<pg_sys::NullableDatum>();
        let call = pg_sys::palloc0(size).cast::<pg_sys::FunctionCallInfoBaseData>();
        (*call).flinfo = &raw mut (*held).functions.result;
        (*call).resultinfo = (&raw mut set).cast();
        (*call).nargs = 1;
        let argument = (*call).args.as_mut_ptr();
        (*argument).value = name_of(held);
        if let Some(function) = (*held).functions.result.fn_addr {
            pg_sys::ffi::pg_guard_ffi_boundary(|| function(call));
        }
        let mut last = None;
        if !set.setResult.is_null() {
            let slot = pg_sys::MakeSingleTupleTableSlot(set.setDesc, &raw const pg_sys::TTSOpsMinimalTuple);
            while pg_sys::tuplestore_gettupleslot(set.setResult, true, false, slot) {
                pg_sys::slot_getsomeattrs_int(slot, 1);
                let is_null = *(*slot).tts_isnull;
                last = Some((!is_null).then(|| {
                    let text = pg_sys::text_to_cstring((*(*slot).tts_values).cast_mut_ptr());
                    CStr::from_ptr(text).to_string_lossy().into_owned()
                }));
            }
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            pg_sys::tuplestore_end(set.setResult);
        }
        pg_sys::FreeExprContext(econtext, true);
        last
    }
}

/// Raises what dblink says of a server, with the server's name.
fn raise_of_server(server: &str, error: CaughtError) -> ! {
    if let CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) = &error {
        let message = format!("server \"{server}\": {}", report.message());
        let mut of_server = ErrorReport::new(report.sql_error_code(), message, "corgipile");
        if let Some(detail) = report.detail() {
            of_server = of_server.set_detail(detail.to_owned());
        }
        if let Some(hint) = report.hint() {
            of_server = of_server.set_hint(hint.to_owned());
        }
        of_server.report(PgLogLevel::ERROR);
    }
    error.rethrow()
}
