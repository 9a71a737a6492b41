//! The column of the rows' weights.

use crate::errors::RowFault;
use pg::values::number::{NumberFault, NumberType, narrow};
use pg::values::typed::TypedDatum;

/// The column of weights.
pub struct Weight {
    pub number: NumberType,
    /// which of the row's columns it is
    pub place: usize,
}

impl Weight {
    #[inline]
    pub fn read(&self, value: TypedDatum<'_>) -> std::result::Result<f32, Box<RowFault>> {
        let weight = narrow(self.number.read(value)).map_err(|fault| {
            Box::new(match fault {
                NumberFault::NotFinite(value) => RowFault::WeightNotFinite(value),
                NumberFault::OutOfRange(value) => RowFault::WeightOutOfRange(value),
            })
        })?;
        if weight < 0.0 { Err(Box::new(RowFault::NegativeWeight(weight.into()))) } else { Ok(weight) }
    }
}
