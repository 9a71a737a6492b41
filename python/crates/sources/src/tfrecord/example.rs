//! Reads a `tf.train.Example` where it lies: of Protocol Buffers only what that message is made of.
//!
//! An example is its features (field 1), these are a map (field 1: key 1, value 2) to a feature, which is a list of
//! bytes (1), of floats (2) or of integers (3), whose values are all in field 1: one by one, or packed.

/// The values of a feature, as they lie in the message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Values<'a> {
    Bytes(&'a [u8]),
    Floats(&'a [u8]),
    Integers(&'a [u8]),
    None,
}

/// A field of a message.
enum Field<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed32(&'a [u8]),
    Fixed64,
}

/// The fields of a message, one after the other, with their numbers.
struct Message<'a>(&'a [u8]);

impl<'a> Message<'a> {
    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or("a number is cut off")?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number has more than ten bytes".into())
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let length = usize::try_from(length).map_err(|_| "a field is too long")?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or("a field is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    fn next(&mut self) -> Result<Option<(u64, Field<'a>)>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => {
                self.take(8)?;
                Field::Fixed64
            }
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Fixed32(self.take(4)?),
            other => return Err(format!("a field is of the unknown wire type {other}")),
        };
        Ok(Some((tag >> 3, field)))
    }
}

/// Calls `each` with the name and the values of each feature.
pub(super) fn features<'a>(
    example: &'a [u8],
    each: &mut dyn FnMut(&'a str, Values<'a>) -> Result<(), String>,
) -> Result<(), String> {
    let mut example = Message(example);
    while let Some((number, field)) = example.next()? {
        let Field::Bytes(features) = field else { return Err("the record is not a tf.train.Example".into()) };
        if number != 1 {
            return Err(
                "the record is not a tf.train.Example (a SequenceExample, perhaps); read it with decode=\"raw\"".into(),
            );
        }
        let mut features = Message(features);
        while let Some((number, field)) = features.next()? {
            let (1, Field::Bytes(entry)) = (number, field) else {
                return Err("the record is not a tf.train.Example".into());
            };
            let (name, values) = feature(entry)?;
            each(name, values)?;
        }
    }
    Ok(())
}

fn feature(entry: &[u8]) -> Result<(&str, Values<'_>), String> {
    let (mut name, mut values) = ("", Values::None);
    let mut entry = Message(entry);
    while let Some((number, field)) = entry.next()? {
        match (number, field) {
            (1, Field::Bytes(text)) => {
                name = str::from_utf8(text).map_err(|_| "a feature's name is not valid UTF-8")?
            }
            (2, Field::Bytes(feature)) => {
                let mut feature = Message(feature);
                while let Some((number, field)) = feature.next()? {
                    values = match (number, field) {
                        (1, Field::Bytes(list)) => Values::Bytes(list),
                        (2, Field::Bytes(list)) => Values::Floats(list),
                        (3, Field::Bytes(list)) => Values::Integers(list),
                        _ => return Err(format!("feature {name:?} has values of an unknown kind")),
                    };
                }
            }
            _ => return Err("the record is not a tf.train.Example".into()),
        }
    }
    Ok((name, values))
}

/// Hands out the strings of a list, and says how many there are.
pub(super) fn strings<'a>(list: &'a [u8], each: &mut dyn FnMut(&'a [u8])) -> Result<usize, String> {
    let (mut list, mut count) = (Message(list), 0);
    while let Some((number, field)) = list.next()? {
        let (1, Field::Bytes(value)) = (number, field) else { return Err("is not a list of bytes".into()) };
        each(value);
        count += 1;
    }
    Ok(count)
}

/// Hands out the bytes of floats, 4 for each, and says how many there are.
fn each_float_bytes(list: &[u8], each: &mut dyn FnMut(&[[u8; 4]])) -> Result<usize, String> {
    let (mut list, mut count) = (Message(list), 0);
    while let Some((number, field)) = list.next()? {
        let bytes = match (number, field) {
            (1, Field::Bytes(packed)) if packed.len().is_multiple_of(4) => packed,
            (1, Field::Fixed32(value)) => value,
            _ => return Err("is not a list of floats".into()),
        };
        let (bytes, _) = bytes.as_chunks::<4>();
        each(bytes);
        count += bytes.len();
    }
    Ok(count)
}

/// Appends the numbers of a list of floats.
pub(super) fn floats(list: &[u8], into: &mut Vec<f32>) -> Result<usize, String> {
    each_float_bytes(list, &mut |bytes| into.extend(bytes.iter().map(|&value| f32::from_le_bytes(value))))
}

/// Hands out the numbers of a list of integers, and says how many there are.
pub(super) fn integers(list: &[u8], each: &mut dyn FnMut(i64)) -> Result<usize, String> {
    let (mut list, mut count) = (Message(list), 0);
    let mut one = |value: u64| {
        each(value.cast_signed());
        count += 1;
    };
    while let Some((number, field)) = list.next()? {
        match (number, field) {
            (1, Field::Varint(value)) => one(value),
            (1, Field::Bytes(packed)) => {
                let mut packed = Message(packed);
                while !packed.0.is_empty() {
                    one(packed.varint()?);
                }
            }
            _ => return Err("is not a list of integers".into()),
        }
    }
    Ok(count)
}

/// How many values there are, and whether all of them can be read.
pub(super) fn count(values: Values<'_>) -> Result<usize, String> {
    match values {
        Values::None => Ok(0),
        Values::Bytes(list) => strings(list, &mut |_| {}),
        Values::Floats(list) => each_float_bytes(list, &mut |_| {}),
        Values::Integers(list) => integers(list, &mut |_| {}),
    }
}
