//! In which order rows come, how they are held, and by how many processes they are learned from.

use crate::options::cache::CacheMode;
use crate::options::choices::Choice;
use crate::options::entry::{Default, Entry, Inherited, Place, Values};
use crate::options::loader::Loader;
use pg::executor::explain::Explain;
use serde_json::{Value, json};
use sgd::Range;
use shuffle::{MAX_PROCESSES, Strategy};

/// Shows how many processes there are to be, and how many there were; nothing of a single one.
pub fn explain_processes(explain: Explain, asked: u32, ran: Option<u32>) {
    if asked > 1 {
        explain.integer(c"Processes", ran.unwrap_or(asked).into());
        explain.integer(c"Workers Planned", i64::from(asked) - 1);
        ran.into_iter().for_each(|processes| explain.integer(c"Workers Launched", i64::from(processes) - 1));
    }
}

pub const ENTRIES: &[Entry] = &[
    Entry {
        record: Some(|call| call.in_blocks.then(|| json!(call.processes.unwrap_or(1)))),
        explain: Some(|call, explain| {
            let ran = call.processes.filter(|_| explain.analyze());
            explain_processes(explain, call.workers, ran);
        }),
        ..Entry::argument(
            "workers",
            "int",
            Values::Integer(1, MAX_PROCESSES as u64),
            Default::Integer(1),
            "processes that train together, the backend's own among them",
        )
    },
    Entry {
        place: Place::NamedOption("text"),
        inherited: Inherited::Never,
        record: Some(|call| call.options.nodes.to_json()),
        ..Entry::option(
            "nodes",
            Values::Other("string or array", Some("off, auto, or names of servers")),
            Default::Word("off"),
            "where rows of foreign tables of postgres_fdw are trained on. off: here, where they come as by any query. auto: on \
             their servers, if they can be, in step; else here, which is told. Names of servers, in an array or with \
             commas: there, or it is an error. The servers need this extension, and this database dblink",
        )
    },
    Entry {
        inherited: Inherited::Record,
        record: Some(|call| Some(json!(call.strategy.name()))),
        explain: Some(|call, explain| explain.text(c"Strategy", call.strategy.name())),
        ..Entry::argument(
            "shuffle",
            "text",
            Values::Words(|| Strategy::ALL.map(Strategy::name).to_vec()),
            Default::Word("corgipile"),
            "the strategy by which rows are shuffled",
        )
    },
    Entry {
        inherited: Inherited::Record,
        record: Some(|call| Some(json!(call.seed))),
        explain: Some(|call, explain| explain.integer(c"Seed", call.seed)),
        ..Entry::argument(
            "seed",
            "bigint",
            Values::Other("", None),
            Default::Depends(|_| "drawn".into()),
            "determines the order, and the first weights of mlp. One that is drawn is stored with the model",
        )
    },
    Entry {
        inherited: Inherited::Record,
        record: Some(|call| call.in_blocks.then(|| json!(call.block_size.to_string()))),
        ..Entry::argument(
            "block_size",
            "text",
            Values::Other("", Some("auto, or a size of at least one page")),
            Default::Word("auto"),
            "how much of the table is read at a place, such as 64kB; rounded down to whole pages. auto: 64kB where seeks are cheap, \
             else up to 10MB",
        )
    },
    Entry {
        inherited: Inherited::Record,
        record: Some(|call| call.in_blocks.then(|| json!(call.buffer_size.to_string()))),
        ..Entry::argument(
            "buffer_size",
            "text",
            Values::Other("", Some("auto, a share such as 25%, or a size")),
            Default::Word("auto"),
            "how much of the table is held in the buffer in which tuples are mixed. auto: all of a table of up to 64MB; of a larger \
             one 16MB where seeks are cheap, else 10% of its pages, also with a block_size, and then at least 10 blocks. At most \
             corgipile.max_buffer_memory",
        )
    },
    Entry {
        inherited: Inherited::Record,
        record: Some(|call| call.sample.map(|sample| json!(sample)).filter(|_| call.in_blocks)),
        ..Entry::argument(
            "sample",
            "float8",
            Values::Number(Range::above(0.0).to(1.0)),
            Default::None,
            "train on this part of the blocks only; which ones depends on seed, and does not change from epoch to epoch. \
             buffer_size in percent is of what is read. Not for shuffle_once and epoch_shuffle, which copy the whole source; of a \
             query that is spooled, a part of the spool is read",
        )
    },
    Entry::argument(
        "loader",
        "text",
        Values::Words(Loader::names),
        Default::Word("auto"),
        "where buffers are filled: in the training's process, in a worker beside it, or where it is faster",
    ),
    Entry {
        place: Place::NamedOption("boolean"),
        inherited: Inherited::Never,
        record: Some(|call| (call.shares && call.in_blocks).then_some(Value::Bool(true))),
        ..Entry::option(
            "share",
            Values::Boolean,
            Default::Depends(|_| "the setting corgipile.share, off by default".into()),
            "read the source together with other sessions that share it: a block that one of them has just read is drawn \
             next. The order of blocks then depends on who else reads. For shuffle corgipile and block_only",
        )
    },
    Entry {
        inherited: Inherited::Never,
        ..Entry::option(
            "cache",
            Values::Words(CacheMode::names),
            Default::Word("auto"),
            "whether decoded tuples are kept for the next epochs: in memory or if they are dear to decode, in any case, or not",
        )
    },
];
