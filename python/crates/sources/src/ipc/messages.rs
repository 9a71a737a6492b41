//! Where the messages of a file or stream are: its schema, its dictionaries, its record batches.

use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::ipc::convert::try_fb_to_schema;
use arrow::ipc::{Block, Message, MessageHeader, MetadataVersion, root_as_footer, root_as_message};
use source::{Cancel, SourceError};

use super::bytes::Bytes;
use crate::files::DataFile;

const MAGIC: &[u8; 6] = b"ARROW1";
const CONTINUATION: [u8; 4] = [0xff; 4];

/// What a file or stream has.
pub(super) struct Contents {
    pub(super) schema: SchemaRef,
    pub(super) version: MetadataVersion,
    pub(super) dictionaries: Vec<Block>,
    pub(super) batches: Vec<Block>,
}

/// Reads what the footer says, or looks through a stream.
pub(super) fn contents(file: &DataFile, bytes: &Bytes, cancel: &Cancel) -> Result<Contents, SourceError> {
    let start = bytes.get(file, 0, file.size.min(8) as usize)?;
    if start.starts_with(MAGIC) {
        return footer(file, bytes);
    }
    if start.starts_with(b"FEA1") {
        return Err(file.damaged(0, "is a Feather file of version 1; write it again with a later pyarrow or pandas"));
    }
    if !start.starts_with(&CONTINUATION) {
        return Err(file.damaged(0, "is neither a file of Arrow's format nor a stream of it"));
    }
    stream(file, bytes, cancel)
}

fn footer(file: &DataFile, bytes: &Bytes) -> Result<Contents, SourceError> {
    // Magic and padding in front; behind the footer its length and the magic.
    let end = file.size.checked_sub(10).filter(|&end| end >= 8);
    let end = end.ok_or_else(|| file.damaged(file.size, "the file is cut off"))?;
    let tail = bytes.get(file, end, 10)?;
    if &tail[4..] != MAGIC {
        return Err(file.damaged(end, "the file does not end as one of Arrow's format does: it is cut off"));
    }
    let length = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    let start = end.checked_sub(u64::from(length)).ok_or_else(|| file.damaged(end, "the footer's length is wrong"))?;
    let footer = bytes.get(file, start, length as usize)?;
    let damaged = |what: &str| file.damaged(start, format!("the footer is damaged: {what}"));
    let footer = root_as_footer(&footer).map_err(|error| damaged(&error.to_string()))?;
    let schema = footer.schema().ok_or_else(|| damaged("it has no schema"))?;
    let blocks = |blocks: Option<_>| blocks.into_iter().flatten().copied().collect::<Vec<Block>>();
    let contents = Contents {
        schema: try_fb_to_schema(schema).map_err(|error| damaged(&error.to_string()))?.into(),
        version: footer.version(),
        dictionaries: blocks(footer.dictionaries().map(|blocks| blocks.iter())),
        batches: blocks(footer.recordBatches().map(|blocks| blocks.iter())),
    };
    for block in contents.dictionaries.iter().chain(&contents.batches) {
        check(file, block)?;
    }
    Ok(contents)
}

/// Whether the file has the bytes of a message.
fn check(file: &DataFile, block: &Block) -> Result<(), SourceError> {
    let (offset, metadata, body) = (block.offset(), i64::from(block.metaDataLength()), block.bodyLength());
    let end = offset.checked_add(metadata).and_then(|end| end.checked_add(body));
    let inside = offset >= 0 && metadata >= 8 && body >= 0 && end.is_some_and(|end| end <= file.size as i64);
    if inside {
        Ok(())
    } else {
        Err(file.damaged(offset.max(0) as u64, "a message is said to be where the file has ended"))
    }
}

/// The bytes of a message's header, which say what it is.
pub(super) fn header(file: &DataFile, bytes: &Bytes, block: &Block) -> Result<Buffer, SourceError> {
    let header = bytes.get(file, block.offset() as u64, block.metaDataLength() as usize)?;
    // Before version 0.15 there was nothing before the length.
    Ok(header.slice(if header.starts_with(&CONTINUATION) { 8 } else { 4 }))
}

pub(super) fn message<'a>(file: &DataFile, block: &Block, header: &'a Buffer) -> Result<Message<'a>, SourceError> {
    root_as_message(header)
        .map_err(|error| file.damaged(block.offset() as u64, format!("a message's header is damaged: {error}")))
}

fn stream(file: &DataFile, bytes: &Bytes, cancel: &Cancel) -> Result<Contents, SourceError> {
    let mut contents: Option<Contents> = None;
    let mut at = 0;
    while let Some(block) = next(file, bytes, at)? {
        cancel.check()?;
        let header = header(file, bytes, &block)?;
        let message = message(file, &block, &header)?;
        let block = Block::new(block.offset(), block.metaDataLength(), message.bodyLength());
        check(file, &block)?;
        let damaged = |what: &str| file.damaged(at, what);
        match (message.header_type(), &mut contents) {
            (MessageHeader::Schema, None) => {
                let schema = message.header_as_schema().ok_or_else(|| damaged("the schema is damaged"))?;
                let schema = try_fb_to_schema(schema).map_err(|error| damaged(&error.to_string()))?.into();
                contents = Some(Contents { schema, version: message.version(), dictionaries: vec![], batches: vec![] });
            }
            (MessageHeader::DictionaryBatch, Some(contents)) if contents.batches.is_empty() => {
                contents.dictionaries.push(block)
            }
            (MessageHeader::DictionaryBatch, Some(_)) => {
                return Err(damaged(
                    "a dictionary changes in the middle of the stream; write it again as an Arrow file",
                ));
            }
            (MessageHeader::RecordBatch, Some(contents)) => contents.batches.push(block),
            (MessageHeader::Schema, Some(_)) => return Err(damaged("there is a second schema")),
            _ => return Err(damaged("there is a message that is not a record batch, or before the schema")),
        }
        at = (block.offset() + i64::from(block.metaDataLength()) + block.bodyLength()) as u64;
    }
    contents.ok_or_else(|| file.damaged(0, "the stream has no schema"))
}

/// The message at a place, its body not yet known; none at the end of the stream.
fn next(file: &DataFile, bytes: &Bytes, at: u64) -> Result<Option<Block>, SourceError> {
    let left = file.size - at;
    if left == 0 {
        return Ok(None);
    }
    if left < 8 {
        return Err(file.damaged(at, "the stream is cut off"));
    }
    let start = bytes.get(file, at, 8)?;
    if start[..4] != CONTINUATION {
        return Err(file.damaged(at, "there is no message"));
    }
    let length = u32::from_le_bytes([start[4], start[5], start[6], start[7]]);
    if length == 0 {
        return Ok(None);
    }
    if u64::from(length) + 8 > left || length > i32::MAX as u32 - 8 {
        return Err(file.damaged(at, "the stream is cut off"));
    }
    Ok(Some(Block::new(at as i64, length as i32 + 8, 0)))
}
