//! Features that are parts of dates and of JSON, or what texts say, where predictions get the dates, JSON and texts.
//!
//! The columns of what is given are followed by the parts that the model needs, as if they were given, too. So anyone
//! who reads features need not know that there are such parts.

use model::{FeatureKind, Model};
use pg::catalog::types::base_type;
use pg::values::number::number_of_text;
use pg::values::part::{Part, TypedPart};
use pg::values::record::{NumberColumns, RecordColumn, RecordValues};
use pg::values::typed::TypedDatum;
use pgrx::pg_sys;

/// The values that a call gives, one by one or as a row.
pub struct GivenValues<'a> {
    pub values: RecordValues<'a>,
    pub parts: &'a AddedParts,
    /// which attributes are texts where the model has numbers
    pub texts: &'a [usize],
}

impl<'a> GivenValues<'a> {
    /// The value of an attribute; None if it is NULL.
    #[inline]
    pub fn get(&self, attribute: usize) -> Option<TypedDatum<'a>> {
        self.parts.value(attribute, |i| {
            let value = self.values.get(i)?;
            Some(if self.texts.contains(&i) { number_of_text(value).unwrap_or(value) } else { value })
        })
    }

    /// Copies numbers to `out`, as [`RecordValues::copy_numbers`] does; false if some are given in another form, too.
    #[inline]
    pub fn copy_numbers(&self, columns: &NumberColumns, out: &mut [f32]) -> bool {
        self.parts.parts.is_empty() && self.texts.is_empty() && self.values.copy_numbers(columns, out)
    }
}

/// Parts that follow the columns of what is given.
pub struct AddedParts {
    /// which attribute the first of them is
    first: usize,
    parts: Vec<AddedPart>,
}

struct AddedPart {
    attribute: usize,
    part: TypedPart,
}

impl AddedParts {
    /// Adds the parts that the model needs to the columns; a column that has a feature's name is that feature.
    pub fn new(model: &Model, columns: &mut Vec<RecordColumn>) -> AddedParts {
        let first = columns.iter().map(|column| column.attribute + 1).max().unwrap_or_default();
        let mut added = AddedParts { first, parts: Vec::new() };
        let given = columns.len();
        for feature in model.features.iter().filter(|_| matches!(model.feature_kind, FeatureKind::Columns(_))) {
            let is_given = columns[..given].iter().any(|column| column.name == *feature);
            let Some((name, part)) = Part::split(feature).filter(|_| !is_given) else { continue };
            let Some(column) = columns[..given].iter().find(|column| column.name == name) else { continue };
            let Some(part) = part.of_type(base_type(column.type_oid)) else { continue };
            let attribute = column.attribute;
            columns.push(RecordColumn {
                name: feature.clone(),
                attribute: first + added.parts.len(),
                type_oid: part.type_of_value(),
                collation: if part.is_category() { pg_sys::DEFAULT_COLLATION_OID } else { pg_sys::Oid::INVALID },
            });
            added.parts.push(AddedPart { attribute, part });
        }
        added
    }

    /// The value of an attribute, one of those that `value` gives, or a part of one.
    #[inline]
    pub fn value<'a>(
        &self,
        attribute: usize,
        value: impl Fn(usize) -> Option<TypedDatum<'a>>,
    ) -> Option<TypedDatum<'a>> {
        match attribute.checked_sub(self.first) {
            None => value(attribute),
            Some(i) => self.parts[i].of(value),
        }
    }
}

impl AddedPart {
    fn of<'a>(&self, value: impl Fn(usize) -> Option<TypedDatum<'a>>) -> Option<TypedDatum<'a>> {
        self.part.of(value(self.attribute))
    }
}
