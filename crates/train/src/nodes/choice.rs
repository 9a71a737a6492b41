//! Whether a training is one where its rows are, and what else speaks for that its rows are fetched here.

use super::cluster::Cluster;
use super::messages::NodeTask;
use crate::model_rows::PlannedRows;
use decode::{DecoderSpec, OwnedSpec};
use errors::{Errand, Error, NodeError, PgError, Result};
use options::nodes::Nodes;
use options::request::Request;
use options::shuffling::Shuffling;
use pg::executor::query::{Column, Planned};
use pg::executor::remote_rows::{ForeignRows, NotForeign, is_server};
use pg::snapshot::{has_written, may_be_of_earlier_statement};
use std::borrow::Cow;

/// Where the rows are trained on.
pub enum Place {
    /// Here, and no one has asked for another place.
    Here,
    /// Here, although it was asked that they are trained on where they are.
    HereBecause(String),
    There(Box<There>),
}

/// Rows that are trained on where they are.
pub struct There {
    pub rows: Vec<ForeignRows>,
    /// names and types of the columns
    pub columns: Vec<(String, String)>,
    /// may the rows be in another order each time if they are fetched here?
    pub order_varies_here: bool,
}

impl Place {
    /// Decides by the request and the plan of its source.
    pub fn new(request: &Request, spec: &DecoderSpec, planned: &Planned) -> Result<Place> {
        let nodes = &request.options.servers;
        if *nodes == Nodes::Off {
            return Ok(Place::Here);
        }
        match rows_of_nodes(request, planned) {
            Ok(rows) => {
                let (columns, order_varies_here) = (columns(spec, planned), planned.has_extension_nodes());
                Ok(Place::There(Box::new(There { rows, columns, order_varies_here })))
            }
            Err(why) if *nodes == Nodes::Auto => Ok(Place::HereBecause(why.into_owned())),
            Err(why) => Err(NodeError::Unfit(Errand::Training, why.into_owned()).into()),
        }
    }
}

fn rows_of_nodes(request: &Request, planned: &Planned) -> std::result::Result<Vec<ForeignRows>, NotForeign> {
    let unfit = [
        ("a search", request.search.is_some()),
        ("several workers", request.workers > 1),
        ("option shared_scan", request.options.shared_scan == Some(true)),
    ];
    if let Some((what, _)) = unfit.into_iter().find(|(_, applies)| *applies) {
        return Err(format!("other servers cannot train with {what}").into());
    }
    foreign_rows(&request.options.servers, planned)
}

/// The rows of each server that has some of a source, if they are nowhere else, and the servers are those that were
/// named.
pub fn foreign_rows(nodes: &Nodes, planned: &Planned) -> std::result::Result<Vec<ForeignRows>, NotForeign> {
    if has_written() {
        return Err("the transaction has written data, which sessions on other servers would not see".into());
    }
    if may_be_of_earlier_statement() {
        return Err(
            "the transaction sees rows as of its first statement, which sessions on other servers would not".into()
        );
    }
    let Nodes::Servers(names) = nodes else { return planned.foreign_rows(&[]) };
    if let Some(unknown) = names.iter().find(|name| !is_server(name)) {
        return Err(format!("server \"{unknown}\" does not exist").into());
    }
    let rows = planned.foreign_rows(names)?;
    if let Some(other) = rows.iter().find(|rows| !names.contains(&rows.server)) {
        return Err(format!("some rows are on server \"{}\", which is not named", other.server).into());
    }
    if let Some(other) = names.iter().find(|name| !rows.iter().any(|rows| rows.server == **name)) {
        return Err(format!("server \"{other}\" is named, but has no rows").into());
    }
    Ok(rows)
}

/// Rows that something other than a training reads.
pub struct Rows<'a> {
    pub spec: &'a DecoderSpec,
    /// of the source
    pub columns: &'a [Column],
    pub planned: &'a Planned,
    pub shuffling: &'a Shuffling,
}

impl Rows<'_> {
    /// Opens a session on each server that has some of the rows, if that was asked for. None if it was not, or if
    /// something speaks against it and the rows may be fetched here instead, which is reported; `unfit` does.
    pub fn open(&self, nodes: &Nodes, errand: Errand, unfit: Option<String>) -> Result<Option<Cluster>> {
        if *nodes == Nodes::Off {
            return Ok(None);
        }
        let found = match unfit {
            Some(why) => Err(why),
            None => foreign_rows(nodes, self.planned).map_err(Cow::into_owned),
        };
        let opened = match found {
            Ok(rows) => {
                let columns = columns(self.spec, self.planned);
                Cluster::open(&rows, &columns, |rows| task(rows, self.spec, self.columns, self.shuffling))
            }
            Err(why) => Err(NodeError::Unfit(errand, why).into()),
        };
        opened_or_told(opened, matches!(nodes, Nodes::Auto), errand)
    }
}

/// What was opened. None if something speaks against it and the rows may be fetched here instead, which is reported.
pub(super) fn opened_or_told(opened: Result<Cluster>, may_be_here: bool, errand: Errand) -> Result<Option<Cluster>> {
    let why = match opened {
        Ok(cluster) => return Ok(Some(cluster)),
        Err(error) if may_be_here && is_obstacle(&error) => match error {
            Error::Node(NodeError::Unfit(_, why)) => why,
            error => error.to_string(),
        },
        Err(error) => return Err(error),
    };
    notice_rows_come(errand, &why);
    Ok(None)
}

/// Tells why rows are fetched here, although it was asked that they do not.
pub(super) fn notice_rows_come(errand: Errand, why: &str) {
    let hint = match errand {
        Errand::Training => {
            "To get an error instead, name servers in option servers; EXPLAIN shows where rows are trained on."
        }
        Errand::Evaluation | Errand::Measurement => "To get an error instead, name servers in argument servers.",
    };
    pg::notice(format!("the rows are fetched to this server to be {errand}: {why}"), hint);
}

/// Is it something that only speaks against training there, so that the rows can be fetched here instead?
fn is_obstacle(error: &Error) -> bool {
    match error {
        Error::Pg(error) => matches!(error, PgError::NoDblink | PgError::NoPassword(_)),
        Error::Node(error) => matches!(
            error,
            NodeError::Unfit(..)
                | NodeError::NoExtension(_)
                | NodeError::OtherVersion { .. }
                | NodeError::OtherEncoding(..)
                | NodeError::OtherType { .. }
        ),
        _ => false,
    }
}

/// Opens sessions for rows that are planned, and come to a node as they lie there; see [`Rows::open`].
pub fn open_for(
    rows: &PlannedRows,
    spec: &DecoderSpec,
    nodes: &Nodes,
    (errand, unfit): (Errand, Option<String>),
) -> Result<Option<Cluster>> {
    let (columns, planned, shuffling) = (rows.source.columns(), &rows.planned, &Shuffling::none());
    Rows { spec, columns, planned, shuffling }.open(nodes, errand, unfit)
}

/// Names and types of the columns that are read.
fn columns(spec: &DecoderSpec, planned: &Planned) -> Vec<(String, String)> {
    spec.columns().map(str::to_owned).zip(planned.column_types()).collect()
}

pub fn task(rows: &ForeignRows, spec: &DecoderSpec, columns: &[Column], shuffling: &Shuffling) -> NodeTask {
    let shuffling = Shuffling { share: None, ..shuffling.clone() };
    NodeTask { sql: rows.sql.clone(), spec: OwnedSpec::new(spec, columns), shuffling }
}
