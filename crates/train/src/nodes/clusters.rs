//! How clustered tables are that lie on other servers: each node goes through its blocks, and the coordinator adds up.

use super::choice::Rows;
use super::cluster::Cluster;
use super::messages::{ModelTask, Order, Start};
use super::models::document_of;
use decode::Decoder;
use decode::wanted::Wanted;
use errors::{Errand, Result};
use loss::ModelKind;
use model::{Model, Policies};
use options::nodes::Nodes;
use sgd::ClusterFactor;

/// Measures blocks at zero weights where they are, if that was asked for and can be; that it cannot is reported. The
/// decoder knows then what all rows have.
pub fn clusters_there(
    nodes: &Nodes,
    rows: &Rows,
    decoder: &mut Decoder,
    wanted: Wanted,
) -> Result<Option<ClusterFactor>> {
    let cluster = rows.open(nodes, Errand::Measurement, None)?;
    let clusters = |cluster: &mut Cluster| cluster.clusters(rows.spec.kind, decoder, wanted);
    cluster.map(|mut cluster| cluster.sensible(clusters)).transpose()
}

/// Adds blocks to `factor`, which is at this model, where they are, if that was asked for and can be; that it cannot is
/// reported.
pub fn clusters_at_there(
    nodes: &Nodes,
    rows: &Rows,
    (model, policies): (&Model, Policies),
    factor: &mut ClusterFactor,
) -> Result<bool> {
    if *nodes == Nodes::Off {
        return Ok(false);
    }
    let (document, unfit) = document_of(model)?;
    let Some(mut cluster) = rows.open(nodes, Errand::Measurement, unfit)? else { return Ok(false) };
    cluster.order(|_| Order::Clusters(Some(ModelTask { document: document.len(), policies })));
    cluster.attach(document.as_bytes());
    cluster.sensible(|cluster| cluster.add_clusters(factor))?;
    Ok(true)
}

impl Cluster {
    fn clusters(&mut self, kind: ModelKind, decoder: &mut Decoder, wanted: Wanted) -> Result<ClusterFactor> {
        // classes and categories have the same numbers everywhere, and features and targets the same scale
        self.prepare(decoder, wanted, false)?;
        let (dim, outputs, sparse) = (decoder.dim(), decoder.labels().outputs(), decoder.is_sparse());
        let kind = if outputs > 1 { kind.one_vs_rest().unwrap_or(kind) } else { kind };
        self.order(|_| {
            let (decoder, points) = (decoder.state_with_groups(), Vec::new());
            let (groups, whose, saved) = (0, Vec::new(), None);
            Order::Start(Box::new(Start { decoder, kind, points, groups, dim, outputs, sparse, whose, saved }))
        });
        self.order(|_| Order::Clusters(None));
        let mut factor = ClusterFactor::new(kind);
        self.add_clusters(&mut factor)?;
        Ok(factor)
    }

    /// Has the nodes do what was ordered, and adds up what they say of their blocks.
    fn add_clusters(&mut self, factor: &mut ClusterFactor) -> Result<()> {
        for sums in self.ask()? {
            factor.add_sums(&sums)?;
        }
        Ok(())
    }
}
