//! Rows in the order of `corgipile_shuffle`: the server shuffles, and sends an epoch as one stream.
//!
//! That serves views, queries and joins, which have no pages to read ranges of. All epochs are read under one snapshot,
//! each in an order of its own. To begin in the middle, the server makes the order again and leaves out what was
//! before.

use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::postgres::{CancelToken, Client, SimpleQueryMessage};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use source::{Cancel, Source, SourceError, Unit};

use super::columns::{Column, Columns};
use super::connect::{Connections, WITH_VIEWS, refused};
use super::table::{one_condition, select};
use super::tls::Tls;
use super::{Options, copy, with_fixed_lists};
use crate::columns::conform;
use crate::files::{DataFile, Fingerprint};
use crate::indexed::memory;

/// The view of the rows, which each connection makes for itself.
const VIEW: &str = "pg_temp.corgipile_rows";

/// How many rows are looked at to see whether arrays have the same length.
const LOOKED_AT: usize = 1000;

/// About this many bytes of rows are sent on together, and this many times that may wait to be taken.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNKS_AHEAD: usize = 4;

/// How long somebody who waits does not look whether he is still to.
const PATIENCE: Duration = Duration::from_millis(50);

/// How the server shuffles: what `corgipile_shuffle` takes.
#[derive(Clone, Debug)]
pub struct Shuffle {
    /// The strategy.
    pub strategy: String,
    /// The size of a block.
    pub block_size: String,
    /// The size of the buffer.
    pub buffer_size: String,
}

/// Rows that the server shuffles.
pub struct Shuffled {
    connections: Connections,
    /// `corgipile_shuffle` with its schema.
    function: String,
    /// What makes the view.
    create: String,
    columns: Vec<Column>,
    schema: SchemaRef,
    rows: u64,
    bytes: u64,
    print: u64,
}

impl Shuffled {
    /// Opens a table, a view or a query.
    ///
    /// # Errors
    /// What the database refuses; a database without the extension; a column of a type that has no array.
    pub fn open(options: &Options, cancel: &Cancel) -> Result<Self, SourceError> {
        let connections = Connections::open(&options.connection, options.snapshot.as_deref(), cancel)?;
        let mut client = connections.join(WITH_VIEWS)?;
        let function = function(&mut client)?;
        let (from, told) = rows_of(&mut client, &options.table)?;
        let columns = select(&mut client, &from, &told, options.columns.as_deref())?;
        let mut create = format!("CREATE TEMPORARY VIEW corgipile_rows AS SELECT {} FROM {from}", named(&columns));
        if let Some(filter) = &options.filter {
            client.prepare(&format!("SELECT FROM {from} WHERE ({filter}\n)")).map_err(refused)?;
            one_condition(&mut client, &from, filter)?;
            create += &format!(" WHERE ({filter}\n)");
        }
        client.execute(create.as_str(), &[]).map_err(refused)?;
        cancel.check()?;
        let schema = Arc::new(Schema::new(columns.iter().map(Column::field).collect::<Vec<_>>()));
        let mut opened = Self { connections, function, create, columns, schema, rows: 0, bytes: 0, print: 0 };
        opened.look(&mut client, options, cancel)?;
        Ok(opened)
    }

    /// The snapshot's name, for others who should read the same rows.
    pub fn snapshot(&self) -> &str {
        self.connections.snapshot()
    }

    /// Counts the rows, and finds out what they are.
    fn look(&mut self, client: &mut Client, options: &Options, cancel: &Cancel) -> Result<(), SourceError> {
        let mut print = Fingerprint::new("postgres, shuffled by the server");
        print.text(&format!("{} {:?} {:?} {}", options.table, options.columns, options.filter, options.fixed_lists));
        // The rows in the order in which they come, from which that of the epochs is made.
        let query = format!(
            "SELECT count(*), coalesce(sum(hashtextextended(corgipile_row::text, n)), 0)::text, \
                 coalesce(sum(pg_column_size(corgipile_row)), 0)::bigint \
             FROM (SELECT row_number() OVER () AS n, corgipile_row FROM {VIEW} corgipile_row) s"
        );
        let row = client.query_one(query.as_str(), &[]).map_err(refused)?;
        let (rows, hash, bytes): (i64, String, i64) = (row.get(0), row.get(1), row.get(2));
        print.text(&hash);
        print.number(size_of_tables(client)?);
        self.rows = rows as u64;
        self.bytes = bytes as u64;
        self.print = print.finish();
        cancel.check()?;
        let query = format!("COPY (SELECT * FROM {VIEW} LIMIT {LOOKED_AT}) TO STDOUT (FORMAT binary)");
        let sample = self.decoded(&copy::read(client, &query, cancel)?)?;
        if sample.num_rows() > 0 {
            self.bytes = (memory(&sample) / sample.num_rows()) as u64 * self.rows;
        }
        if options.fixed_lists {
            self.schema = with_fixed_lists(&self.schema, &[sample]);
        }
        Ok(())
    }

    fn decoded(&self, bytes: &[u8]) -> Result<RecordBatch, SourceError> {
        let mut columns = Columns::new(&self.columns, 0);
        copy::each_row(bytes, &mut |fields| columns.push(fields)).map_err(SourceError::Database)?;
        columns.finish().map_err(|error| SourceError::Database(error.to_string()))
    }

    /// The rows in the order of an epoch, from 0.
    pub fn epoch(self: &Arc<Self>, shuffle: &Shuffle, seed: i64, epoch: u64) -> Epoch {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        // the first epoch of the function is 1
        let call = format!(
            "{}(NULL::{VIEW}, seed => {seed}, block_size => {}, buffer_size => {}, shuffle => {}, epoch => {})",
            self.function,
            quoted(&shuffle.block_size),
            quoted(&shuffle.buffer_size),
            quoted(&shuffle.strategy),
            epoch + 1,
        );
        let mut print = Fingerprint::new("epoch");
        print.number(self.print);
        print.text(&format!("{shuffle:?}"));
        let units = [Unit { rows: self.rows, bytes: self.bytes.max(self.rows) }];
        Epoch { of: self.clone(), call, units, print: print.finish(), stream: Mutex::default() }
    }
}

/// The function of the extension, as SQL has it.
fn function(client: &mut Client) -> Result<String, SourceError> {
    let query = "SELECT format('%I.%I', n.nspname, p.proname)
                 FROM pg_extension e JOIN pg_depend d ON d.refobjid = e.oid AND d.deptype = 'e'
                     JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                     JOIN pg_namespace n ON n.oid = p.pronamespace
                 WHERE e.extname = 'corgipile' AND p.proname = 'corgipile_shuffle'";
    let found = client.query_opt(query, &[]).map_err(refused)?;
    found.map(|row| row.get(0)).ok_or_else(|| {
        let what = "server_shuffle: this database has not the extension corgipile; CREATE EXTENSION corgipile";
        SourceError::Invalid(what.into())
    })
}

/// What stands in FROM, and how it is called in messages.
fn rows_of(client: &mut Client, table: &str) -> Result<(String, String), SourceError> {
    let first = table.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    if table.trim_start().starts_with('(')
        || ["select", "with", "values", "table"].contains(&first.to_lowercase().as_str())
    {
        // by itself, before it stands between brackets
        client.prepare(table).map_err(refused)?;
        return Ok((format!("({table}\n) AS rows"), "the query".into()));
    }
    let row = client.query_one("SELECT $1::text::regclass::text", &[&table]).map_err(refused)?;
    let name: String = row.get(0);
    Ok((name.clone(), name))
}

fn named(columns: &[Column]) -> String {
    columns.iter().map(Column::named).collect::<Vec<_>>().join(", ")
}

/// How large the tables are from which the rows come. The server's blocks depend on that.
fn size_of_tables(client: &mut Client) -> Result<u64, SourceError> {
    let explained = client.simple_query(&format!("EXPLAIN (VERBOSE, FORMAT JSON) SELECT * FROM {VIEW}"));
    let plan = explained.map_err(refused)?.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    let query = "SELECT coalesce(sum(pg_relation_size(format('%I.%I', p->>'Schema', p->>'Relation Name')::regclass)), 0)::bigint
                 FROM jsonb_path_query($1::text::jsonb, '$.** ? (exists(@.\"Relation Name\"))') p";
    let row = client.query_one(query, &[&plan.unwrap_or_else(|| "[]".into())]).map_err(refused)?;
    Ok(row.get::<_, i64>(0) as u64)
}

/// The rows in the order of an epoch. They are cheap to read one after the other only.
pub struct Epoch {
    of: Arc<Shuffled>,
    call: String,
    units: [Unit; 1],
    print: u64,
    stream: Mutex<Option<Stream>>,
}

impl Source for Epoch {
    fn schema(&self) -> SchemaRef {
        self.of.schema.clone()
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn read(&self, rows: Range<u64>, cancel: &Cancel) -> Result<RecordBatch, SourceError> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        if stream.as_ref().is_none_or(|stream| stream.next != rows.start) {
            *stream = None; // the server need not finish it
            *stream = Some(Stream::begin(&self.of, &self.call, rows.start)?);
        }
        let taken = match &mut *stream {
            Some(stream) => stream.take(rows, self.of.rows, &self.of.schema, cancel),
            None => Err(SourceError::Cancelled),
        };
        if taken.is_err() {
            *stream = None;
        }
        taken
    }

    fn fingerprint(&self) -> u64 {
        self.print
    }
}

type Sent = Result<RecordBatch, SourceError>;

fn other_rows(came: &str, counted: u64) -> SourceError {
    SourceError::Database(format!(
        "the server gave {came} rows, and {counted} when they were counted: is the query volatile?"
    ))
}

/// What a thread receives of the server.
struct Stream {
    batches: Receiver<Sent>,
    /// Rows that came and were not yet asked for.
    rest: Option<RecordBatch>,
    next: u64,
    cancel: Arc<Cancel>,
    server: (CancelToken, Tls),
}

impl Stream {
    fn begin(of: &Arc<Shuffled>, call: &str, first: u64) -> Result<Self, SourceError> {
        let mut client = of.connections.join(WITH_VIEWS)?;
        let server = (client.cancel_token(), of.connections.tls());
        let (send, batches) = sync_channel(CHUNKS_AHEAD);
        let (cancel, of) = (Arc::new(Cancel::default()), of.clone());
        let query = format!("COPY (SELECT * FROM {call} OFFSET {first}) TO STDOUT (FORMAT binary)");
        let mine = cancel.clone();
        let thread = move || {
            if let Err(error) = pump(&of, &mut client, &query, &send, &mine) {
                let _ = send.send(Err(error)); // no one may be there any more
            }
        };
        let begun = std::thread::Builder::new().name("corgipile stream".to_owned()).spawn(thread);
        begun.map_err(|error| SourceError::Invalid(format!("the system gives no thread: {error}")))?;
        Ok(Self { batches, rest: None, next: first, cancel, server })
    }

    /// The rows, which are the next.
    fn take(&mut self, rows: Range<u64>, all: u64, schema: &SchemaRef, cancel: &Cancel) -> Sent {
        let wanted = (rows.end - rows.start) as usize;
        let (mut parts, mut there) = (Vec::new(), 0);
        while there < wanted {
            let Some(batch) = self.rest.take().map(Ok).or_else(|| self.receive(cancel).transpose()).transpose()? else {
                return Err(other_rows(&(self.next + there as u64).to_string(), all));
            };
            let taken = batch.num_rows().min(wanted - there);
            parts.push(batch.slice(0, taken));
            there += taken;
            if taken < batch.num_rows() {
                self.rest = Some(batch.slice(taken, batch.num_rows() - taken));
            }
        }
        if rows.end == all && (self.rest.is_some() || self.receive(cancel)?.is_some()) {
            return Err(other_rows("more", all));
        }
        self.next = rows.end;
        concat_batches(schema, &parts).map_err(|error| SourceError::Database(error.to_string()))
    }

    /// The next rows; none behind the last.
    fn receive(&self, cancel: &Cancel) -> Result<Option<RecordBatch>, SourceError> {
        loop {
            cancel.check()?;
            match self.batches.recv_timeout(PATIENCE) {
                Ok(sent) => return sent.map(Some),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.cancel.cancel();
        // The server may be busy for long before it sends a row. If it has ended, it does not mind.
        let (token, tls) = &self.server;
        let _ = token.cancel_query(tls.clone());
    }
}

/// Sends the rows of a query on, as they come.
fn pump(
    of: &Shuffled,
    client: &mut Client,
    query: &str,
    send: &SyncSender<Sent>,
    cancel: &Cancel,
) -> Result<(), SourceError> {
    client.execute(of.create.as_str(), &[]).map_err(refused)?;
    let place = DataFile { path: "the rows that the server shuffles".into(), size: 0, modified: 0 };
    let mut decoder = copy::Decoder::default();
    let mut pending = Vec::new();
    let mut flush = |pending: &mut Vec<u8>| -> Result<bool, SourceError> {
        let mut columns = Columns::new(&of.columns, 0);
        let used = decoder.whole_rows(pending, &mut |fields| columns.push(fields)).map_err(SourceError::Database)?;
        pending.drain(..used);
        let batch = columns.finish().map_err(|error| SourceError::Database(error.to_string()))?;
        Ok(batch.num_rows() == 0 || send.send(conform(&batch, &of.schema, 0, &place)).is_ok())
    };
    let mut wanted = true;
    copy::each_chunk(client, query, cancel, &mut |bytes| {
        pending.extend(bytes);
        if pending.len() >= CHUNK_BYTES {
            wanted = flush(&mut pending)?;
        }
        if wanted { Ok(()) } else { Err(SourceError::Cancelled) }
    })?;
    flush(&mut pending)?;
    if decoder.has_ended() { Ok(()) } else { Err(SourceError::Database("what the database sent is cut off".into())) }
}
