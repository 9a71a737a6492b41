//! What a call does with NULLs, and with what the model has not seen: as the model says,
//! unless the call says something else.

use super::model::Model;
use errors::{PredictError, Result};
use options::parse::argument_choice;
use options::rows::{Nulls, Unseen};
use serde::{Deserialize, Serialize};

/// What to do with NULLs, and with what the model has not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policies {
    pub nulls: Nulls,
    pub unseen: Unseen,
}

impl Policies {
    pub fn of_model(model: &Model) -> Policies {
        Policies { nulls: model.nulls, unseen: model.unseen }
    }

    /// Those of the arguments `nulls` and `handle_unknown` of a call. None is as the model says.
    pub fn of_call(model: &Model, [nulls, unseen]: [Option<&str>; 2]) -> Result<Policies> {
        let of_model = Policies::of_model(model);
        let policies = Policies {
            nulls: nulls.map_or(Ok(of_model.nulls), |word| argument_choice("nulls", word))?,
            unseen: unseen.map_or(Ok(of_model.unseen), |word| argument_choice("handle_unknown", word))?,
        };
        if nulls.is_some() && policies.nulls == Nulls::Impute && model.nulls != Nulls::Impute {
            return Err(PredictError::NothingToImpute(model.in_error()).into());
        }
        Ok(policies)
    }
}
