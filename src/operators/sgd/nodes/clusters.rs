//! How clustered tables are that lie on other servers: each node goes through its blocks, and the coordinator adds up.

use super::choice::Rows;
use super::cluster::Cluster;
use super::messages::{Order, Start};
use crate::errors::{Errand, Result};
use crate::operators::decoder::Decoder;
use crate::operators::wanted::Wanted;
use crate::options::nodes::Nodes;
use sgd::{ClusterFactor, ModelKind};

/// Measures blocks where they are, if that was asked for and can be; that it cannot is told. The decoder knows then
/// what all rows have.
///
/// # Errors
/// [`NodeError`](crate::errors::NodeError); what the servers say is raised.
pub fn clusters_there(nodes: &Nodes, rows: &Rows, decoder: &mut Decoder) -> Result<Option<ClusterFactor>> {
    let cluster = rows.open(nodes, Errand::Measurement, None)?;
    cluster.map(|mut cluster| cluster.clusters(rows.spec.kind, decoder)).transpose()
}

impl Cluster {
    fn clusters(&mut self, kind: ModelKind, decoder: &mut Decoder) -> Result<ClusterFactor> {
        // classes and categories have the same numbers everywhere
        self.prepare(decoder, Wanted::NOTHING)?;
        let (dim, outputs, sparse) = (decoder.dim(), decoder.labels().outputs(), decoder.is_sparse());
        self.order(|_| {
            let (decoder, points) = (decoder.state_with_groups(), Vec::new());
            let (groups, whose, saved) = (0, Vec::new(), None);
            Order::Start(Box::new(Start { decoder, kind, points, groups, dim, outputs, sparse, whose, saved }))
        });
        self.order(|_| Order::Clusters);
        let mut factor = ClusterFactor::new(kind);
        for answer in self.ask()? {
            factor.add_sums(&answer.clusters.ok_or_else(|| self.nonsense())?)?;
        }
        Ok(factor)
    }
}
