//! Features of rows that are measured where the rows are: each node goes through its own, and the coordinator unites
//! what they have counted.

use super::choice::open_for;
use super::messages::{FeaturesTask, Order};
use super::models::document_of;
use crate::feature_profile::{MeasuredFeatures, decoder_spec, shapes_of};
use crate::model_rows::PlannedRows;
use decode::EpochCounts;
use errors::{Errand, Result};
use model::Model;
use options::nodes::Nodes;
use sgd::profile::Profile;

/// Measures the features of the planned rows where they are, if that was asked for and can be; that it cannot is
/// reported. Rows that are left out are counted by the decoder of the rows.
pub fn features_there(
    model: &Model,
    like: Option<&Profile>,
    rows: &mut PlannedRows,
    nodes: &Nodes,
) -> Result<Option<MeasuredFeatures>> {
    if *nodes == Nodes::Off {
        return Ok(None);
    }
    let (document, unfit) = document_of(model)?;
    let cluster = open_for(rows, &decoder_spec(model), nodes, (Errand::Measurement, unfit))?;
    let Some(mut cluster) = cluster else { return Ok(None) };
    let mut measured = MeasuredFeatures::new(&shapes_of(model)?, like);
    cluster.order(|_| Order::Features(FeaturesTask { document: document.len(), like: like.cloned() }));
    cluster.attach(document.as_bytes());
    cluster.sensible(|cluster| {
        for (features, counts) in cluster.ask::<(MeasuredFeatures, EpochCounts)>()? {
            if !measured.unite(&features) {
                return Err(cluster.nonsense());
            }
            rows.decoder.count_rows_of_others(&counts);
        }
        Ok(())
    })?;
    Ok(Some(measured))
}
