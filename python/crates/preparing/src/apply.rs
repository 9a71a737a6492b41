//! Recipes at work.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, RecordBatch, RecordBatchOptions, UInt8Array};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Schema, UInt8Type};
use fast_image_resize::Resizer;
use source::Cancel;

use crate::picture::{Picture, Size, size_after};
use crate::recipe::{Pixels, Recipe, Step, is_bytes, no_column, no_pixels, pixels_field, pixels_type};
use crate::{Callables, PrepareError, Prepared};

impl Recipe {
    /// Prepares rows. Damaged pictures are reported, so that who does not want them has the others: unless a
    /// function of Python would see what is in their places, or there are no others.
    ///
    /// # Errors
    /// What is wrong with a column or a function, or with a row that cannot be told; that there is no one to call
    /// functions of Python; that preparing was cancelled.
    pub fn apply(
        &self,
        mut batch: RecordBatch,
        python: Option<&dyn Callables>,
        cancel: &Cancel,
    ) -> Result<Prepared, PrepareError> {
        let steps = self.steps();
        let mut done = HashSet::new();
        let mut damaged: Vec<PrepareError> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            if done.contains(&number) {
                continue;
            }
            cancel.check().map_err(|_| PrepareError::cancelled())?;
            batch = match step {
                Step::Drop { column } => drop_column(&batch, column)?,
                Step::Python { callable } => call(&batch, callable, python, cancel)?,
                step => {
                    // What is done to the pictures of this column before anybody else sees them is done picture by
                    // picture: not all of them are in memory undone.
                    let column = step.pictures().unwrap_or_default();
                    let until = steps[number..].iter().position(|step| sees(step, column));
                    let until = until.map_or(steps.len(), |until| number + until);
                    let chain: Vec<usize> =
                        (number..until).filter(|&step| steps[step].pictures() == Some(column)).collect();
                    let work: Vec<&Step> = chain.iter().map(|&step| &steps[step]).collect();
                    done.extend(chain);
                    pictures(&batch, column, &work, cancel, &mut damaged)?
                }
            };
            // of a row that is damaged in two columns, what was found first
            damaged.sort_by_key(|error| error.row);
            damaged.dedup_by_key(|error| error.row);
            let is_lost = damaged.len() >= batch.num_rows() || self.calls();
            if is_lost && !damaged.is_empty() {
                return Err(damaged.swap_remove(0));
            }
        }
        Ok(Prepared { batch, damaged })
    }
}

/// Whether a step looks at a column of pictures in another way.
fn sees(step: &Step, column: &str) -> bool {
    match step {
        Step::Python { .. } => true,
        Step::Drop { column: dropped } => dropped == column,
        _ => false,
    }
}

fn find(batch: &RecordBatch, column: &str) -> Result<usize, PrepareError> {
    batch.schema_ref().index_of(column).map_err(|_| {
        let schema = batch.schema_ref();
        PrepareError::new(no_column(column, schema.fields().iter().map(|field| field.name().as_str())))
    })
}

fn drop_column(batch: &RecordBatch, column: &str) -> Result<RecordBatch, PrepareError> {
    let mut left = batch.clone();
    left.remove_column(find(batch, column)?);
    Ok(left)
}

fn call(
    batch: &RecordBatch,
    callable: &str,
    python: Option<&dyn Callables>,
    cancel: &Cancel,
) -> Result<RecordBatch, PrepareError> {
    let nobody = || PrepareError::new(format!("{callable}: there is no Python that could call it"));
    let result = python.ok_or_else(nobody)?.call(callable, batch, cancel)?;
    if result.num_rows() != batch.num_rows() {
        let (given, taken) = (result.num_rows(), batch.num_rows());
        return Err(PrepareError::new(format!("{callable}: it gave {given} rows for {taken}")));
    }
    Ok(result)
}

fn bytes_of(size: Size, channels: u8) -> usize {
    size.height as usize * size.width as usize * usize::from(channels)
}

/// Where pictures come from.
enum Origin<'a> {
    Bytes(Box<dyn Fn(usize) -> &'a [u8] + 'a>),
    Pixels { of: Pixels, size: Size, values: &'a [u8] },
}

impl Origin<'_> {
    fn picture(&self, row: usize, channels: u8) -> Result<Picture, String> {
        match self {
            Self::Bytes(bytes) => Picture::decode(bytes(row), channels),
            Self::Pixels { of, size, values } => {
                let length = bytes_of(*size, of.channels);
                let pixels = values[row * length..(row + 1) * length].to_vec();
                Ok(Picture { size: *size, channels: of.channels, pixels })
            }
        }
    }
}

/// The values of nested lists of fixed lengths.
fn leaves(array: &ArrayRef) -> ArrayRef {
    match array.as_fixed_size_list_opt() {
        Some(list) => leaves(list.values()),
        None => array.clone(),
    }
}

/// Does some steps to each picture of a column, and tells which are damaged.
fn pictures(
    batch: &RecordBatch,
    column: &str,
    steps: &[&Step],
    cancel: &Cancel,
    damaged: &mut Vec<PrepareError>,
) -> Result<RecordBatch, PrepareError> {
    let at = find(batch, column)?;
    let array = batch.column(at);
    let (decodes, rest) = match steps {
        [Step::Decode { channels, .. }, rest @ ..] => (Some(*channels), rest),
        rest => (None, rest),
    };
    if rest.iter().any(|step| matches!(step, Step::Decode { .. })) {
        return Err(PrepareError::new(format!("column {column:?}: its pictures are decoded already")));
    }
    let pixels = Pixels::of(array.data_type());
    let values = leaves(array);
    let from = match (decodes, pixels) {
        (Some(_), _) if is_bytes(array.data_type()) => Origin::Bytes(match array.data_type() {
            DataType::Binary => Box::new(|row| array.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Box::new(|row| array.as_binary::<i64>().value(row)),
            _ => Box::new(|row| array.as_binary_view().value(row)),
        }),
        (Some(_), _) => {
            let of = array.data_type();
            let what = format!("column {column:?} is of type {of}, and there are no pictures to decode");
            return Err(PrepareError::new(what));
        }
        (None, Some(of @ Pixels { size: Some(size), .. })) => {
            Origin::Pixels { of, size, values: values.as_primitive::<UInt8Type>().values() }
        }
        (None, _) => return Err(PrepareError::new(no_pixels(column, array.data_type()))),
    };
    let mut gathered = Gathered::new(batch.num_rows(), decodes.or(pixels.map(|of| of.channels)).unwrap_or(3));
    let mut resizer = Resizer::new();
    for row in 0..batch.num_rows() {
        cancel.check().map_err(|_| PrepareError::cancelled())?;
        let picture = if array.is_null(row) {
            Err("there is no picture".to_owned())
        } else {
            let picture = from.picture(row, gathered.channels);
            picture.and_then(|picture| rest.iter().try_fold(picture, |picture, step| picture.after(step, &mut resizer)))
        };
        if let Err(what) = picture.and_then(|picture| gathered.push(picture)) {
            gathered.leave_out();
            damaged.push(PrepareError::in_row(row, format!("column {column:?}: {what}")));
        }
    }
    if gathered.size.is_none() && !damaged.is_empty() {
        return Err(damaged.swap_remove(0));
    }
    let size = match gathered.size {
        Some(size) => size,
        // Of no rows, what is known is what the steps say. Where they do not, any size will do.
        None => {
            let before = pixels.and_then(|pixels| pixels.size);
            let after = rest.iter().try_fold(before, |size, step| size_after(step, size).map(Some));
            let after = after.map_err(|what| PrepareError::new(format!("column {column:?}: {what}")))?;
            after.unwrap_or(Size { height: 1, width: 1 })
        }
    };
    gathered.into_column(batch, at, size)
}

/// Pictures of one size, one behind the other.
struct Gathered {
    rows: usize,
    channels: u8,
    size: Option<Size>,
    pixels: Vec<u8>,
    /// those that were left out before there was one
    left_out: usize,
}

impl Gathered {
    fn new(rows: usize, channels: u8) -> Self {
        Self { rows, channels, size: None, pixels: Vec::new(), left_out: 0 }
    }

    /// Black pixels in the place of the next picture.
    fn leave_out(&mut self) {
        match self.size {
            None => self.left_out += 1,
            Some(size) => self.pixels.resize(self.pixels.len() + bytes_of(size, self.channels), 0),
        }
    }

    fn push(&mut self, picture: Picture) -> Result<(), String> {
        match self.size {
            None => {
                let all = picture.pixels.len().checked_mul(self.rows);
                let reserved = all.is_some_and(|all| self.pixels.try_reserve_exact(all).is_ok());
                if !reserved {
                    return Err(format!("there is no memory for {} pictures of {} pixels", self.rows, picture.size));
                }
                self.size = Some(picture.size);
                self.pixels.resize(self.left_out * picture.pixels.len(), 0);
            }
            Some(size) if size != picture.size => {
                let now = picture.size;
                return Err(format!("the picture has {now} pixels and those before it have {size}; resize them"));
            }
            Some(_) => {}
        }
        self.pixels.extend_from_slice(&picture.pixels);
        Ok(())
    }

    /// The rows with these pictures in a column.
    fn into_column(self, batch: &RecordBatch, at: usize, size: Size) -> Result<RecordBatch, PrepareError> {
        let told = |error: arrow::error::ArrowError| PrepareError::new(error.to_string());
        let mut array: ArrayRef = Arc::new(UInt8Array::new(ScalarBuffer::from(self.pixels), None));
        let mut types = vec![pixels_type(self.channels, size)];
        while let Some(DataType::FixedSizeList(field, _)) = types.last() {
            types.push(field.data_type().clone());
        }
        for of in types.iter().rev() {
            if let DataType::FixedSizeList(field, length) = of {
                let list = FixedSizeListArray::try_new(field.clone(), *length, array, None);
                array = Arc::new(list.map_err(told)?);
            }
        }
        let schema = batch.schema_ref();
        let field = |(i, field): (usize, &Arc<Field>)| {
            if i == at { Arc::new(pixels_field(field, self.channels, size)) } else { field.clone() }
        };
        let fields: Vec<Arc<Field>> = schema.fields().iter().enumerate().map(field).collect();
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        let mut columns = batch.columns().to_vec();
        columns[at] = array;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(schema), columns, &options).map_err(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BinaryArray, BinaryViewArray, Int64Array, LargeBinaryArray};
    use std::sync::Mutex;

    const RGB_JPEG: &[u8] = include_bytes!("test_pictures/rgb.jpg");
    const PROGRESSIVE: &[u8] = include_bytes!("test_pictures/progressive.jpg");
    const CMYK: &[u8] = include_bytes!("test_pictures/cmyk.jpg");
    const GRAY: &[u8] = include_bytes!("test_pictures/gray.jpg");
    const RGB_PNG: &[u8] = include_bytes!("test_pictures/rgb.png");
    const PALETTE: &[u8] = include_bytes!("test_pictures/palette.png");
    const ALPHA: &[u8] = include_bytes!("test_pictures/alpha.png");
    const DEEP: &[u8] = include_bytes!("test_pictures/deep.png");
    /// `rgb.png`, resized to 7 rows of 11 pixels by Pillow's bilinear filter.
    const SMALL: &[u8] = include_bytes!("test_pictures/small.png");

    fn batch(pictures: &[&[u8]]) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..pictures.len() as i64));
        let pictures: ArrayRef = Arc::new(BinaryArray::from_iter_values(pictures));
        RecordBatch::try_from_iter([("id", ids), ("image", pictures)]).unwrap()
    }

    fn prepare(json: &str, batch: RecordBatch) -> Result<Prepared, PrepareError> {
        Recipe::parse(json).unwrap().apply(batch, None, &Cancel::default())
    }

    /// The rows if none is damaged; what is wrong with the first that is.
    fn apply(json: &str, batch: RecordBatch) -> Result<RecordBatch, PrepareError> {
        let Prepared { batch, mut damaged } = prepare(json, batch)?;
        if damaged.is_empty() { Ok(batch) } else { Err(damaged.swap_remove(0)) }
    }

    /// The size and the pixels of a column.
    fn pixels(batch: &RecordBatch) -> (Size, Vec<u8>) {
        let array = batch.column_by_name("image").unwrap();
        let of = Pixels::of(array.data_type()).unwrap();
        (of.size.unwrap(), leaves(array).as_primitive::<UInt8Type>().values().to_vec())
    }

    /// What the test's pictures were made of: 24 rows of 32 pixels.
    fn original() -> Vec<u8> {
        let pixel = |x: i32, y: i32| [x * 8, y * 10, 255 - x * 4 - y * 4];
        (0..24).flat_map(|y| (0..32).flat_map(move |x| pixel(x, y).map(|value| value.clamp(0, 255) as u8))).collect()
    }

    fn gray(rgb: &[u8]) -> Vec<u8> {
        let weigh = |p: &[u8]| 0.299 * f64::from(p[0]) + 0.587 * f64::from(p[1]) + 0.114 * f64::from(p[2]);
        rgb.chunks(3).map(|pixel| weigh(pixel).round() as u8).collect()
    }

    fn furthest(one: &[u8], other: &[u8]) -> u8 {
        assert_eq!(one.len(), other.len());
        one.iter().zip(other).map(|(one, other)| one.abs_diff(*other)).max().unwrap()
    }

    #[test]
    fn pictures_of_all_sorts_become_the_channels_that_are_asked_for() {
        let in_gray: Vec<u8> = gray(&original()).into_iter().flat_map(|value| [value; 3]).collect();
        for (name, bytes, expected, bound) in [
            ("rgb.png", RGB_PNG, original(), 0),
            ("alpha.png", ALPHA, original(), 0),
            ("rgb.jpg", RGB_JPEG, original(), 12),
            ("progressive.jpg", PROGRESSIVE, original(), 12),
            ("cmyk.jpg", CMYK, original(), 20),
            ("gray.jpg", GRAY, in_gray.clone(), 8),
            ("deep.png", DEEP, in_gray, 1),
            ("palette.png", PALETTE, original(), 60),
        ] {
            for channels in [1, 3, 4] {
                let json = format!(r#"[{{"step":"decode","column":"image","channels":{channels}}}]"#);
                let (size, pixels) = pixels(&apply(&json, batch(&[bytes])).unwrap());
                assert_eq!(size, Size { height: 24, width: 32 }, "{name}");
                let opaque = if name == "alpha.png" { 128 } else { 255 };
                let expected = match channels {
                    1 => gray(&expected),
                    3 => expected.clone(),
                    _ => expected.chunks(3).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], opaque]).collect(),
                };
                let furthest = furthest(&pixels, &expected);
                assert!(furthest <= bound.max(1), "{name} with {channels} channels is off by {furthest}");
            }
        }
    }

    #[test]
    fn resizing_is_that_of_pillow() {
        let json = r#"[{"step":"decode","column":"image"},{"step":"resize","column":"image","height":7,"width":11}]"#;
        let (size, resized) = pixels(&apply(json, batch(&[RGB_PNG])).unwrap());
        assert_eq!(size, Size { height: 7, width: 11 });
        let (_, expected) = pixels(&apply(r#"[{"step":"decode","column":"image"}]"#, batch(&[SMALL])).unwrap());
        let furthest = furthest(&resized, &expected);
        assert!(furthest <= 1, "off by {furthest}");
    }

    #[test]
    fn a_part_is_where_it_should_be() {
        let decode = r#"{"step":"decode","column":"image"}"#;
        let part = |top: usize, left: usize| -> Vec<u8> {
            let rows = original();
            let rows = rows.chunks(32 * 3).skip(top).take(5);
            rows.flat_map(|row| row[left * 3..(left + 4) * 3].to_vec()).collect()
        };
        let crop = r#"{"step":"crop","column":"image","top":3,"left":2,"height":5,"width":4}"#;
        let (size, cropped) = pixels(&apply(&format!("[{decode},{crop}]"), batch(&[RGB_PNG, RGB_PNG])).unwrap());
        assert_eq!(size, Size { height: 5, width: 4 });
        assert_eq!(cropped, [part(3, 2), part(3, 2)].concat());
        // 19 rows are left over, of which torchvision cuts round(9.5) = 10 above
        let center = r#"{"step":"center_crop","column":"image","height":5,"width":4}"#;
        let (_, cropped) = pixels(&apply(&format!("[{decode},{center}]"), batch(&[RGB_PNG])).unwrap());
        assert_eq!(cropped, part(10, 14));
        // and a picture that was decoded before is the same
        let decoded = apply(&format!("[{decode}]"), batch(&[SMALL, RGB_PNG]).slice(1, 1)).unwrap();
        let (_, cropped) = pixels(&apply(&format!("[{center}]"), decoded).unwrap());
        assert_eq!(cropped, part(10, 14));
    }

    #[test]
    fn steps_on_one_column_work_across_those_on_others() {
        let rows = batch(&[RGB_PNG, SMALL]);
        let twice = vec![rows.column(0).clone(), rows.column(1).clone(), rows.column(1).clone()];
        let rows = RecordBatch::try_from_iter(["id", "image", "other"].into_iter().zip(twice)).unwrap();
        let json = r#"[{"step":"decode","column":"image"},{"step":"decode","column":"other","channels":1},
            {"step":"resize","column":"image","height":4,"width":4},{"step":"drop","column":"id"},
            {"step":"resize","column":"other","height":2,"width":2}]"#;
        let prepared = apply(json, rows.clone()).unwrap();
        let known = Recipe::parse(json).unwrap().output_schema(rows.schema_ref()).unwrap().unwrap();
        assert_eq!(*prepared.schema_ref().as_ref(), known);
        assert_eq!(prepared.num_columns(), 2);
        assert_eq!(pixels(&prepared).1.len(), 2 * 4 * 4 * 3);
    }

    #[test]
    fn bytes_of_every_type_of_column_are_decoded() {
        let arrays: [ArrayRef; 3] = [
            Arc::new(BinaryArray::from_iter_values([RGB_PNG])),
            Arc::new(LargeBinaryArray::from_iter_values([RGB_PNG])),
            Arc::new(BinaryViewArray::from_iter_values([RGB_PNG])),
        ];
        for array in arrays {
            let rows = RecordBatch::try_from_iter([("image", array)]).unwrap();
            assert_eq!(pixels(&apply(r#"[{"step":"decode","column":"image"}]"#, rows).unwrap()).1, original());
        }
    }

    #[test]
    fn no_rows_have_the_type_that_all_have() {
        let json = r#"[{"step":"decode","column":"image"},{"step":"resize","column":"image","height":9,"width":8},
            {"step":"center_crop","column":"image","height":7,"width":8}]"#;
        let (none, some) = (apply(json, batch(&[])).unwrap(), apply(json, batch(&[CMYK])).unwrap());
        assert_eq!(none.schema(), some.schema());
        assert_eq!(none.num_rows(), 0);
    }

    #[test]
    fn what_is_wrong_with_a_picture_names_row_and_column() {
        let decode = r#"[{"step":"decode","column":"image"}]"#;
        let cut = &RGB_PNG[..RGB_PNG.len() / 2];
        let huge = {
            // The header says 32000 by 32000, with the checksum of that.
            let mut bytes = RGB_PNG.to_vec();
            bytes[16..24].copy_from_slice(&[0, 0, 0x7d, 0, 0, 0, 0x7d, 0]);
            let sum = checksum(&bytes[12..29]);
            bytes[29..33].copy_from_slice(&sum.to_be_bytes());
            bytes
        };
        let huge_jpeg = {
            let mut bytes = RGB_JPEG.to_vec();
            let frame = bytes.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
            bytes[frame + 5..frame + 9].copy_from_slice(&[0x7d, 0, 0x7d, 0]);
            bytes
        };
        for (bytes, what) in [
            (&b""[..], "row 1: column \"image\": there is neither a JPEG nor a PNG"),
            (b"GIF89a", "row 1: column \"image\": there is neither a JPEG nor a PNG"),
            (cut, "row 1: column \"image\": the picture cannot be decoded"),
            (&huge, "row 1: column \"image\": the picture has 32000 by 32000 pixels, and may have"),
            (&huge_jpeg, "row 1: column \"image\": the picture has 32000 by 32000 pixels, and may have"),
            (
                SMALL,
                "row 1: column \"image\": the picture has 7 by 11 pixels and those before it have 24 by 32; resize",
            ),
        ] {
            let error = apply(decode, batch(&[RGB_PNG, bytes])).unwrap_err();
            assert!(error.to_string().starts_with(what), "{error}");
            assert_eq!(error.row, Some(1));
        }
        let missing: ArrayRef = Arc::new(BinaryArray::from_iter([Some(RGB_PNG), None]));
        let error = apply(decode, RecordBatch::try_from_iter([("image", missing)]).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "row 1: column \"image\": there is no picture");
        let crop =
            r#"[{"step":"decode","column":"image"},{"step":"center_crop","column":"image","height":20,"width":20}]"#;
        let error = apply(crop, batch(&[RGB_PNG, RGB_PNG, SMALL])).unwrap_err();
        assert_eq!(error.to_string(), "row 2: column \"image\": 20 by 20 pixels cannot be cut out of 7 by 11");
        let error = apply(r#"[{"step":"drop","column":"colour"}]"#, batch(&[])).unwrap_err();
        assert_eq!(error.to_string(), "there is no column \"colour\"; the columns are: id, image");
    }

    #[test]
    fn what_is_damaged_is_told_and_the_others_are_there() {
        let decode = r#"[{"step":"decode","column":"image"}]"#;
        let of = |pictures: &[&[u8]]| prepare(decode, batch(pictures));
        let rows = |prepared: &Prepared| prepared.damaged.iter().map(|error| error.row.unwrap()).collect::<Vec<_>>();
        for (pictures, damaged) in [
            (vec![b"", RGB_PNG, b"GIF", RGB_PNG, SMALL], vec![0, 2, 4]),
            (vec![b"", b"", RGB_PNG], vec![0, 1]),
            (vec![RGB_PNG, b""], vec![1]),
            (vec![RGB_PNG], vec![]),
        ] {
            let prepared = of(&pictures).unwrap();
            assert_eq!(rows(&prepared), damaged);
            let (size, pixels) = pixels(&prepared.batch);
            assert_eq!((size, prepared.batch.num_rows()), (Size { height: 24, width: 32 }, pictures.len()));
            for (row, picture) in pixels.chunks(24 * 32 * 3).enumerate().filter(|(row, _)| !damaged.contains(row)) {
                assert_eq!(picture, original(), "row {row}");
            }
        }
        assert_eq!(of(&[b"", b""]).unwrap_err().row, Some(0));
        assert_eq!(of(&[b""]).unwrap_err().behind(40).row, Some(40));
        // a function would be given what is not a picture
        let recipe = r#"[{"step":"decode","column":"image"},{"step":"python","callable":"a:b"}]"#;
        let recipe = Recipe::parse(recipe).unwrap();
        let same = Fewer(Mutex::default(), 0);
        let error = recipe.apply(batch(&[RGB_PNG, b""]), Some(&same), &Cancel::default()).unwrap_err();
        assert_eq!(error.row, Some(1));
        assert!(same.0.lock().unwrap().is_empty());
        // a row with two damaged pictures is reported once
        let rows = batch(&[RGB_PNG, b""]);
        let twice = [("image", rows.column(1).clone()), ("other", rows.column(1).clone())];
        let both = r#"[{"step":"decode","column":"other"},{"step":"decode","column":"image"}]"#;
        let prepared = prepare(both, RecordBatch::try_from_iter(twice).unwrap()).unwrap();
        assert_eq!(prepared.damaged.len(), 1);
        assert!(prepared.damaged[0].what.starts_with("column \"other\""));
    }

    /// The checksum of a part of a PNG.
    fn checksum(bytes: &[u8]) -> u32 {
        let step = |sum: u32, byte: &u8| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 })
        };
        !bytes.iter().fold(u32::MAX, step)
    }

    #[test]
    fn damage_anywhere_in_a_picture_is_an_error_or_another_picture() {
        let json = r#"[{"step":"decode","column":"image"},{"step":"resize","column":"image","height":3,"width":3}]"#;
        for picture in [RGB_JPEG, PROGRESSIVE, CMYK, GRAY, RGB_PNG, PALETTE] {
            for place in (0..picture.len()).step_by(7) {
                let mut bytes = picture.to_vec();
                bytes[place] ^= 0x5a;
                let _ = apply(json, batch(&[&bytes]));
                let _ = apply(json, batch(&[&picture[..place]]));
            }
        }
    }

    #[test]
    fn a_cancelled_recipe_ends() {
        let cancel = Cancel::default();
        cancel.cancel();
        let recipe = Recipe::parse(r#"[{"step":"decode","column":"image"}]"#).unwrap();
        assert_eq!(recipe.apply(batch(&[RGB_PNG]), None, &cancel), Err(PrepareError::cancelled()));
    }

    /// A Python that leaves some rows out.
    struct Fewer(Mutex<Vec<String>>, usize);

    impl Callables for Fewer {
        fn at_a_time(&self) -> usize {
            1
        }

        fn call(&self, callable: &str, batch: &RecordBatch, _: &Cancel) -> Result<RecordBatch, PrepareError> {
            self.0.lock().unwrap().push(callable.into());
            Ok(batch.slice(0, batch.num_rows() - self.1))
        }
    }

    #[test]
    fn functions_of_python_are_called_and_keep_the_number_of_rows() {
        let recipe = Recipe::parse(r#"[{"step":"python","callable":"a.b:c"},{"step":"drop","column":"id"}]"#).unwrap();
        let call = |fewer: &Fewer| recipe.apply(batch(&[RGB_PNG, SMALL]), Some(fewer), &Cancel::default());
        let same = Fewer(Mutex::default(), 0);
        assert_eq!(call(&same).unwrap().batch.num_columns(), 1);
        assert_eq!(*same.0.lock().unwrap(), ["a.b:c"]);
        assert_eq!(call(&Fewer(Mutex::default(), 1)).unwrap_err().to_string(), "a.b:c: it gave 1 rows for 2");
        let error = recipe.apply(batch(&[]), None, &Cancel::default()).unwrap_err();
        assert_eq!(error.to_string(), "a.b:c: there is no Python that could call it");
    }
}
