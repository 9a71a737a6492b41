//! The members of a tar file: of ustar, of GNU tar with its long names, of POSIX (pax) with names and sizes in records.

use source::SourceError;

use crate::index::scan::Input;
use crate::indexed::Chunk;

const BLOCK: u64 = 512;

/// A name longer than this is damage.
const LONGEST_NAME: u64 = 1 << 20;

/// A file in a tar file.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    /// Where its first header begins.
    pub(super) start: u64,
    /// Where its contents begin.
    pub(super) data: u64,
    pub(super) size: u64,
}

impl Member {
    /// Where the next member's header is.
    pub(super) fn end(&self) -> u64 {
        self.data + self.size.next_multiple_of(BLOCK)
    }
}

/// Where blocks of a tar file come from.
pub(super) trait Blocks {
    fn position(&self) -> u64;
    fn left(&self) -> u64;
    /// Reads as many bytes as the buffer has, which are there.
    fn read(&mut self, buffer: &mut [u8]) -> Result<(), SourceError>;
    /// Passes over bytes that are there.
    fn skip(&mut self, bytes: u64) -> Result<(), SourceError>;
    fn damaged(&self, offset: u64, what: String) -> SourceError;
    /// Whether they are a part of an archive, which may end without what stands at an archive's end.
    fn is_part(&self) -> bool;
}

impl Blocks for Input {
    fn position(&self) -> u64 {
        self.position()
    }

    fn left(&self) -> u64 {
        self.left()
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), SourceError> {
        self.read(buffer)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), SourceError> {
        self.skip(bytes)
    }

    fn damaged(&self, offset: u64, what: String) -> SourceError {
        self.damaged(offset, what)
    }

    fn is_part(&self) -> bool {
        false
    }
}

/// The blocks of a chunk.
pub(super) struct Bytes<'a> {
    pub(super) chunk: &'a Chunk<'a>,
    pub(super) at: usize,
}

impl Blocks for Bytes<'_> {
    fn position(&self) -> u64 {
        self.chunk.offset + self.at as u64
    }

    fn left(&self) -> u64 {
        (self.chunk.bytes.len() - self.at) as u64
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), SourceError> {
        buffer.copy_from_slice(&self.chunk.bytes[self.at..self.at + buffer.len()]);
        self.at += buffer.len();
        Ok(())
    }

    fn skip(&mut self, bytes: u64) -> Result<(), SourceError> {
        self.at += bytes as usize;
        Ok(())
    }

    fn damaged(&self, offset: u64, what: String) -> SourceError {
        self.chunk.file.damaged(offset, what)
    }

    fn is_part(&self) -> bool {
        true
    }
}

/// The next plain file, over directories, links and what is said about the whole archive.
pub(super) fn next_member(blocks: &mut dyn Blocks) -> Result<Option<Member>, SourceError> {
    let mut start = blocks.position();
    let (mut long_name, mut long_size) = (None, None);
    loop {
        let at = blocks.position();
        let Some(header) = header(blocks)? else { return Ok(None) };
        let field = |range: std::ops::Range<usize>| number(&header[range]);
        let size = field(124..136).ok_or_else(|| blocks.damaged(at, "the size of a file is not a number".into()))?;
        match header[156] {
            b'L' => long_name = Some(text(&contents(blocks, at, size)?)),
            b'x' => (long_name, long_size) = records(&contents(blocks, at, size)?, long_name, long_size),
            b'0' | 0 | b'7' => {
                let size = long_size.unwrap_or(size);
                let name = long_name.unwrap_or_else(|| name(&header));
                let member = Member { name, start, data: blocks.position(), size };
                pass(blocks, at, size)?;
                return Ok(Some(member));
            }
            // Directories, links, global headers.
            kind => {
                pass(blocks, at, if matches!(kind, b'1'..=b'6') { 0 } else { size })?;
                (long_name, long_size) = (None, None);
                start = blocks.position();
            }
        }
    }
}

/// The next header; none at the end of the archive, which is a block of zeros. A file without one was cut off, perhaps
/// within a sample.
fn header(blocks: &mut dyn Blocks) -> Result<Option<[u8; BLOCK as usize]>, SourceError> {
    let at = blocks.position();
    if blocks.left() == 0 {
        let cut_off = "the file ends without the end of an archive (a block of zeros): it is cut off".to_owned();
        return if blocks.is_part() { Ok(None) } else { Err(blocks.damaged(at, cut_off)) };
    }
    if blocks.left() < BLOCK {
        return Err(blocks.damaged(at, "the file ends within a header".into()));
    }
    let mut header = [0; BLOCK as usize];
    blocks.read(&mut header)?;
    if header == [0; BLOCK as usize] {
        return Ok(None);
    }
    // The checksum is the sum of all bytes, those of itself counted as spaces.
    let sum: u64 = header.iter().map(|&byte| u64::from(byte)).sum();
    let own: u64 = header[148..156].iter().map(|&byte| u64::from(byte)).sum();
    if number(&header[148..156]) != Some(sum - own + 8 * u64::from(b' ')) {
        return Err(blocks.damaged(at, "there is no header of a tar file: its checksum is wrong".into()));
    }
    Ok(Some(header))
}

/// Passes over the contents of a member whose header is at `at`.
fn pass(blocks: &mut dyn Blocks, at: u64, size: u64) -> Result<(), SourceError> {
    let padded = size.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX);
    if size > blocks.left() {
        return Err(blocks.damaged(at, format!("the file ends within a member of {size} bytes")));
    }
    blocks.skip(padded.min(blocks.left()))
}

fn contents(blocks: &mut dyn Blocks, at: u64, size: u64) -> Result<Vec<u8>, SourceError> {
    let padded = size.checked_next_multiple_of(BLOCK).filter(|&padded| size <= LONGEST_NAME && padded <= blocks.left());
    let Some(padded) = padded else {
        return Err(blocks.damaged(at, format!("the file ends within a name of {size} bytes")));
    };
    let mut bytes = vec![0; padded as usize];
    blocks.read(&mut bytes)?;
    bytes.truncate(size as usize);
    Ok(bytes)
}

/// Octal digits between spaces and zeros, or, of great numbers, bytes behind one with the highest bit.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let bytes = field.last_chunk::<8>()?;
        return Some(u64::from_be_bytes(*bytes)).filter(|&number| number >> 62 == 0);
    }
    let digits = str::from_utf8(field).ok()?.trim_matches([' ', '\0']);
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

fn text(bytes: &[u8]) -> String {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn name(header: &[u8; BLOCK as usize]) -> String {
    let name = text(&header[..100]);
    let prefix = if &header[257..263] == b"ustar\0" { text(&header[345..500]) } else { String::new() };
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

/// Name and size in pax records: `LENGTH KEY=VALUE\n`, the length with itself.
fn records(mut bytes: &[u8], mut name: Option<String>, mut size: Option<u64>) -> (Option<String>, Option<u64>) {
    while let Some(space) = memchr::memchr(b' ', bytes) {
        let length = str::from_utf8(&bytes[..space]).ok().and_then(|digits| digits.parse::<usize>().ok());
        let Some(record) =
            length.filter(|&length| length > space + 1).and_then(|length| bytes.get(space + 1..length - 1))
        else {
            break;
        };
        let equals = memchr::memchr(b'=', record).unwrap_or(0);
        match &record[..equals] {
            b"path" => name = Some(String::from_utf8_lossy(&record[equals + 1..]).into_owned()),
            b"size" => size = str::from_utf8(&record[equals + 1..]).ok().and_then(|digits| digits.parse().ok()),
            _ => {}
        }
        bytes = &bytes[length.unwrap_or(bytes.len()).min(bytes.len())..];
    }
    (name, size)
}
