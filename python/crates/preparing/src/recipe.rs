//! Recipes: what is done to rows, step by step.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use serde::{Deserialize, Serialize};

use crate::PrepareError;
use crate::picture::{self, Filter, MAX_SIDE, Size};

/// One thing that is done to rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Pictures, JPEG or PNG in a column of bytes, become pixels: lists of rows of pixels of this many channels. Where
    /// a picture says how it is to be turned, that is left out, as Pillow and torchvision do.
    Decode {
        /// The column, in which the pixels are afterwards.
        column: String,
        /// 1 for gray, 3 for red, green and blue, 4 with opacity.
        #[serde(default = "three")]
        channels: u8,
    },
    /// Pictures get this size.
    Resize {
        /// The column of pixels.
        column: String,
        /// How many rows of pixels.
        height: u32,
        /// How many pixels in a row.
        width: u32,
        /// How pixels between pixels are made up.
        #[serde(default)]
        filter: Filter,
    },
    /// A part of each picture is left.
    Crop {
        /// The column of pixels.
        column: String,
        /// How many rows of pixels are above the part.
        top: u32,
        /// How many pixels are left of it.
        left: u32,
        /// How many rows of pixels it has.
        height: u32,
        /// How many pixels are in each.
        width: u32,
    },
    /// The middle of each picture is left.
    CenterCrop {
        /// The column of pixels.
        column: String,
        /// How many rows of pixels it has.
        height: u32,
        /// How many pixels are in each.
        width: u32,
    },
    /// A function gets the rows as arrays by the names of columns, and gives such.
    Python {
        /// Its module and its name: `package.module:function`.
        callable: String,
    },
    /// A column is left out.
    Drop {
        /// The column.
        column: String,
    },
}

fn three() -> u8 {
    3
}

impl Step {
    /// The column of pictures that it is about.
    pub(crate) fn pictures(&self) -> Option<&str> {
        match self {
            Self::Decode { column, .. }
            | Self::Resize { column, .. }
            | Self::Crop { column, .. }
            | Self::CenterCrop { column, .. } => Some(column),
            Self::Python { .. } | Self::Drop { .. } => None,
        }
    }

    fn check(&self) -> Result<(), String> {
        let side = |what: &str, length: u32| match length {
            1..=MAX_SIDE => Ok(()),
            _ => Err(format!("{what} is {length}, and can be 1 to {MAX_SIDE}")),
        };
        match self {
            Self::Decode { channels: 1 | 3 | 4, .. } | Self::Drop { .. } => Ok(()),
            Self::Decode { channels, .. } => Err(format!("channels is {channels}, and can be 1, 3 or 4")),
            Self::Resize { height, width, .. }
            | Self::Crop { height, width, .. }
            | Self::CenterCrop { height, width, .. } => side("height", *height).and_then(|()| side("width", *width)),
            Self::Python { callable } => {
                let is_name = |name: &str| {
                    let mut letters = name.chars();
                    letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
                        && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
                };
                match callable.split_once(':') {
                    Some((module, function)) if module.split('.').chain(function.split('.')).all(is_name) => Ok(()),
                    _ => Err(format!("callable is {callable:?}, and should be module:function")),
                }
            }
        }
    }
}

/// A list of steps. Two jobs whose recipes are equal get the same rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Recipe {
    steps: Vec<Step>,
}

impl Recipe {
    /// Whether functions of Python are called.
    pub fn calls(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Python { .. }))
    }

    /// The recipe that a list of objects of JSON says.
    ///
    /// # Errors
    /// What is not a recipe: an unknown step, one without a column, a size of 0.
    pub fn parse(json: &str) -> Result<Self, PrepareError> {
        let steps: Vec<Step> = serde_json::from_str(json)
            .map_err(|error| PrepareError::new(format!("the recipe cannot be read: {error}")))?;
        for (step, number) in steps.iter().zip(1..) {
            step.check().map_err(|what| PrepareError::new(format!("step {number} of the recipe: {what}")))?;
        }
        Ok(Self { steps })
    }

    /// The recipe as JSON, in which equal recipes are equal: all settings are there, in one order.
    pub fn to_json(&self) -> String {
        // There are only names and numbers, of which there is always JSON.
        serde_json::to_string(&self.steps).unwrap_or_default()
    }

    /// The steps, in their order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether nothing is done.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The columns of rows with these columns, once prepared; None if that shows only then: what a function of Python
    /// gives, and how large a picture is that nothing resizes, cannot be known.
    ///
    /// # Errors
    /// A column that is missing, or that is not a picture.
    pub fn output_schema(&self, input: &Schema) -> Result<Option<Schema>, PrepareError> {
        let mut fields: Vec<(Arc<Field>, Option<Pixels>)> =
            input.fields().iter().map(|field| (field.clone(), Pixels::of(field.data_type()))).collect();
        for (step, number) in self.steps.iter().zip(1..) {
            let failed = |what: String| PrepareError::new(format!("step {number} of the recipe: {what}"));
            let name = match step {
                Step::Python { .. } => return Ok(None),
                Step::Drop { column } => column,
                step => step.pictures().unwrap_or_default(),
            };
            let at = fields.iter().position(|(field, _)| field.name() == name);
            let at =
                at.ok_or_else(|| failed(no_column(name, fields.iter().map(|(field, _)| field.name().as_str()))))?;
            if matches!(step, Step::Drop { .. }) {
                fields.remove(at);
                continue;
            }
            let (field, pixels) = &mut fields[at];
            let now = pixels.take();
            *pixels = match (step, now) {
                (Step::Decode { channels, .. }, None) if is_bytes(field.data_type()) => {
                    Some(Pixels { channels: *channels, size: None })
                }
                (Step::Decode { .. }, _) => {
                    let of = field.data_type();
                    return Err(failed(format!(
                        "column {name:?} is of type {of}, and there are no pictures to decode"
                    )));
                }
                (_, None) => return Err(failed(no_pixels(name, field.data_type()))),
                (step, Some(Pixels { channels, size })) => {
                    Some(Pixels { channels, size: Some(picture::size_after(step, size).map_err(failed)?) })
                }
            };
        }
        if fields.iter().any(|(_, pixels)| pixels.as_ref().is_some_and(|pixels| pixels.size.is_none())) {
            return Ok(None);
        }
        let field = |(field, pixels): (Arc<Field>, Option<Pixels>)| match pixels {
            Some(Pixels { channels, size: Some(size) })
                if Pixels::of(field.data_type()) != Some(Pixels { channels, size: Some(size) }) =>
            {
                Arc::new(pixels_field(&field, channels, size))
            }
            _ => field,
        };
        let fields: Vec<Arc<Field>> = fields.into_iter().map(field).collect();
        Ok(Some(Schema::new_with_metadata(fields, input.metadata().clone())))
    }
}

/// What is known of a column of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) channels: u8,
    pub(crate) size: Option<Size>,
}

impl Pixels {
    /// What a column of this type has, if it is lists of lists of lists of bytes, all of one length.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        let DataType::FixedSizeList(rows, height) = data_type else { return None };
        let DataType::FixedSizeList(pixels, width) = rows.data_type() else { return None };
        let DataType::FixedSizeList(values, channels) = pixels.data_type() else { return None };
        let size = Size { height: u32::try_from(*height).ok()?, width: u32::try_from(*width).ok()? };
        let channels = u8::try_from(*channels).ok().filter(|channels| matches!(channels, 1 | 3 | 4))?;
        (*values.data_type() == DataType::UInt8).then_some(Self { channels, size: Some(size) })
    }
}

/// The type of pixels of pictures of one size.
pub(crate) fn pixels_type(channels: u8, size: Size) -> DataType {
    [u32::from(channels), size.width, size.height].into_iter().fold(DataType::UInt8, |of, length| {
        // No length is above MAX_SIDE.
        DataType::FixedSizeList(Arc::new(Field::new_list_field(of, false)), length as i32)
    })
}

/// The field of a column of pictures after they became such pixels.
pub(crate) fn pixels_field(field: &Field, channels: u8, size: Size) -> Field {
    field.clone().with_data_type(pixels_type(channels, size)).with_nullable(false)
}

pub(crate) fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

pub(crate) fn no_pixels(name: &str, of: &DataType) -> String {
    format!("column {name:?} is of type {of}, and there are no pixels of 1, 3 or 4 bytes; decode pictures first")
}

pub(crate) fn no_column<'a>(name: &str, columns: impl Iterator<Item = &'a str>) -> String {
    let columns: Vec<&str> = columns.collect();
    format!("there is no column {name:?}; the columns are: {}", columns.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("image", DataType::Binary, true),
            Field::new("pixels", pixels_type(3, Size { height: 8, width: 6 }), false),
        ])
    }

    fn output(json: &str) -> Result<Option<Schema>, PrepareError> {
        Recipe::parse(json).unwrap().output_schema(&schema())
    }

    #[test]
    fn equal_recipes_are_equal_however_they_are_written() {
        let one = Recipe::parse(
            r#"[{"step": "decode", "column": "image"}, {"height": 4, "width": 5, "step": "resize", "column": "image"}]"#,
        );
        let other = Recipe::parse(
            r#"[{"column":"image","channels":3,"step":"decode"},
                {"step":"resize","column":"image","width":5,"height":4,"filter":"bilinear"}]"#,
        );
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!(one, other);
        assert_eq!(one.to_json(), other.to_json());
        let canonical = r#"[{"step":"decode","column":"image","channels":3},{"step":"resize","column":"image","height":4,"width":5,"filter":"bilinear"}]"#;
        assert_eq!(one.to_json(), canonical);
    }

    #[test]
    fn what_is_no_recipe_is_told() {
        for (json, what) in [
            ("", "the recipe cannot be read"),
            ("{}", "the recipe cannot be read"),
            (r#"[{"step":"shrink","column":"x"}]"#, "unknown variant `shrink`, expected one of `decode`, `resize`"),
            (r#"[{"step":"resize","column":"x","height":3}]"#, "missing field `width`"),
            (r#"[{"step":"decode","column":"x","colour":3}]"#, "unknown field `colour`"),
            (
                r#"[{"step":"decode","column":"x","channels":2}]"#,
                "step 1 of the recipe: channels is 2, and can be 1, 3",
            ),
            (r#"[{"step":"resize","column":"x","height":0,"width":3}]"#, "height is 0, and can be 1 to"),
            (r#"[{"step":"resize","column":"x","height":9,"width":99999}]"#, "width is 99999, and can be 1 to"),
            (r#"[{"step":"resize","column":"x","height":9,"width":-1}]"#, "the recipe cannot be read"),
            (
                r#"[{"step":"drop","column":"x"},{"step":"python","callable":"os"}]"#,
                "step 2 of the recipe: callable is",
            ),
            (r#"[{"step":"python","callable":"os.path:a b"}]"#, "and should be module:function"),
        ] {
            let error = Recipe::parse(json).unwrap_err().to_string();
            assert!(error.contains(what), "{json}: {error}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Recipe::parse(&deep).is_err());
    }

    #[test]
    fn the_columns_afterwards_are_known_where_they_can_be() {
        let known = output(
            r#"[{"step":"decode","column":"image","channels":1},{"step":"resize","column":"image","height":4,"width":5},
                {"step":"center_crop","column":"image","height":2,"width":3},{"step":"drop","column":"pixels"}]"#,
        );
        let known = known.unwrap().unwrap();
        assert_eq!(known.fields().len(), 2);
        assert_eq!(*known.field(1).data_type(), pixels_type(1, Size { height: 2, width: 3 }));
        assert!(!known.field(1).is_nullable());
        assert_eq!(output("[]").unwrap().unwrap(), schema());
        assert_eq!(output(r#"[{"step":"decode","column":"image"}]"#).unwrap(), None);
        let dropped = output(r#"[{"step":"decode","column":"image"},{"step":"drop","column":"image"}]"#);
        assert_eq!(dropped.unwrap().unwrap().fields().len(), 2);
        let cropped = r#"[{"step":"decode","column":"image"},{"step":"crop","column":"image","top":1,"left":1,"height":2,"width":2}]"#;
        assert!(output(cropped).unwrap().is_some());
        assert_eq!(output(r#"[{"step":"python","callable":"a:b"},{"step":"drop","column":"new"}]"#).unwrap(), None);
    }

    #[test]
    fn steps_that_do_not_fit_the_columns_are_told() {
        for (json, what) in [
            (
                r#"[{"step":"drop","column":"x"}]"#,
                "step 1 of the recipe: there is no column \"x\"; the columns are: id,",
            ),
            (r#"[{"step":"decode","column":"id"}]"#, "column \"id\" is of type Int64, and there are no pictures"),
            (r#"[{"step":"resize","column":"image","height":4,"width":5}]"#, "decode pictures first"),
            (
                r#"[{"step":"decode","column":"image"},{"step":"decode","column":"image"}]"#,
                "step 2 of the recipe: column",
            ),
            (
                r#"[{"step":"center_crop","column":"pixels","height":9,"width":5}]"#,
                "9 by 5 pixels cannot be cut out of 8 by 6",
            ),
            (
                r#"[{"step":"crop","column":"pixels","top":4294967295,"left":0,"height":2,"width":2}]"#,
                "cannot be cut out of 8 by 6",
            ),
        ] {
            let error = output(json).unwrap_err().to_string();
            assert!(error.contains(what), "{json}: {error}");
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        let column = "[a-zäö\"\\\\ ]{0,5}";
        let side = 1..=MAX_SIDE;
        let filter = prop::sample::select(vec![Filter::Nearest, Filter::Bilinear, Filter::Lanczos]);
        prop_oneof![
            (column, prop::sample::select(vec![1, 3, 4]))
                .prop_map(|(column, channels)| Step::Decode { column, channels }),
            (column, side.clone(), side.clone(), filter).prop_map(|(column, height, width, filter)| Step::Resize {
                column,
                height,
                width,
                filter
            }),
            (column, any::<u32>(), any::<u32>(), side.clone(), side.clone())
                .prop_map(|(column, top, left, height, width)| Step::Crop { column, top, left, height, width }),
            (column, side.clone(), side).prop_map(|(column, height, width)| Step::CenterCrop { column, height, width }),
            "[a-z]{1,3}(\\.[a-z]{1,3})?:[a-z_]{1,5}".prop_map(|callable| Step::Python { callable }),
            column.prop_map(|column| Step::Drop { column }),
        ]
    }

    proptest! {
        #[test]
        fn recipes_come_back_from_their_json(steps in prop::collection::vec(step(), 0..5)) {
            let recipe = Recipe { steps };
            prop_assert_eq!(Recipe::parse(&recipe.to_json()).unwrap(), recipe);
        }
    }
}
