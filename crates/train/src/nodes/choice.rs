//! Whether a training is one where its rows are, and what else speaks for that its rows are fetched here.

use super::cluster::Cluster;
use super::messages::NodeTask;
use crate::model_rows::PlannedRows;
use crate::resume::Resume;
use decode::{DecoderSpec, OwnedSpec};
use errors::{Errand, Error, NodeError, PgError, Result};
use loss::Steps;
use options::chosen::Point;
use options::nodes::Nodes;
use options::request::Request;
use options::shuffling::Shuffling;
use pg::call::attempt::{Caught, attempt};
use pg::errors::Code;
use pg::executor::query::{Column, Planned};
use pg::executor::remote_rows::{ForeignRows, NotForeign, is_server};
use pg::snapshot::{has_written, may_be_of_earlier_statement};
use scan::Source;
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
    /// Decides by the request, the model that it goes on with, and the plan of its source.
    pub fn new(
        request: &Request,
        resume: Option<&Resume>,
        spec: &DecoderSpec,
        (source, planned): (&Source, &Planned),
    ) -> Result<Place> {
        let nodes = &request.options.servers;
        // Each server would learn by itself, whatever labels its rows have: that was looked at before the first epoch
        // only.
        let averages = |point: &Point| point.hyperparameters.steps() == Steps::ByTuple;
        let would_average_anew =
            resume.is_some_and(|resume| !resume.was_on_servers()) && request.points.iter().any(averages);
        if *nodes == Nodes::Off {
            return Ok(Place::Here);
        }
        match rows_of_nodes(request, source, planned) {
            Ok(rows) if *nodes == Nodes::Auto && rows.len() > 1 && would_average_anew => {
                Ok(Place::HereBecause("the model was trained on one server, with a step for each row".into()))
            }
            Ok(rows) => {
                let (columns, order_varies_here) = (columns(spec, planned), planned.order_varies());
                Ok(Place::There(Box::new(There { rows, columns, order_varies_here })))
            }
            Err(why) if *nodes == Nodes::Auto => Ok(Place::HereBecause(why.into_owned())),
            Err(why) => Err(NodeError::Unfit(Errand::Training, why.into_owned()).into()),
        }
    }
}

fn rows_of_nodes(
    request: &Request,
    source: &Source,
    planned: &Planned,
) -> std::result::Result<Vec<ForeignRows>, NotForeign> {
    let unfit = [
        ("a search", request.search.is_some()),
        ("several workers", request.workers > 1),
        ("option shared_scan", request.options.shared_scan == Some(true)),
    ];
    if let Some((what, _)) = unfit.into_iter().find(|(_, applies)| *applies) {
        return Err(format!("other servers cannot train with {what}").into());
    }
    foreign_rows(&request.options.servers, source, planned)
}

/// The rows of each server that has some of a source, if they are nowhere else, and the servers are those that were
/// named.
fn foreign_rows(
    nodes: &Nodes,
    source: &Source,
    planned: &Planned,
) -> std::result::Result<Vec<ForeignRows>, NotForeign> {
    if has_written() {
        return Err("the transaction has written data, which sessions on other servers would not see".into());
    }
    if source.in_distributed_transaction {
        return Err(
            "the transaction has used Citus on several nodes, and what it may have written there would not be \
                    seen by sessions on other servers"
                .into(),
        );
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
    for other in names.iter().filter(|name| !rows.iter().any(|rows| rows.server == **name)) {
        pg::notice(
            format!("server \"{other}\" has no rows of the source"),
            "The rows of the other servers are used. Leave this one out of servers.",
        );
    }
    Ok(rows)
}

/// Rows that something other than a training reads.
pub struct Rows<'a> {
    pub spec: &'a DecoderSpec,
    pub source: &'a Source,
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
            None => foreign_rows(nodes, self.source, self.planned).map_err(Cow::into_owned),
        };
        let open = || {
            let rows = found.map_err(|why| NodeError::Unfit(errand, why))?;
            let columns = columns(self.spec, self.planned);
            Cluster::open(&rows, &columns, |rows| task(rows, self.spec, self.source.columns(), self.shuffling))
        };
        opened_or_told(open, matches!(nodes, Nodes::Auto), errand)
    }
}

/// What was opened. None if something speaks against it and the rows may be fetched here instead, which is reported.
pub(super) fn opened_or_told(
    open: impl FnOnce() -> Result<Cluster>,
    may_be_here: bool,
    errand: Errand,
) -> Result<Option<Cluster>> {
    if !may_be_here {
        return open().map(Some);
    }
    let why = match attempt(is_refusal, open) {
        Ok(Ok(cluster)) => return Ok(Some(cluster)),
        Ok(Err(Error::Node(NodeError::Unfit(_, why)))) => why,
        Ok(Err(error)) if is_obstacle(&error) => error.to_string(),
        Ok(Err(error)) => return Err(error),
        Err(Caught { message, detail: Some(detail) }) => format!("{message}: {}", detail.trim()),
        Err(Caught { message, detail: None }) => message,
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
        Error::Pg(error) => matches!(
            error,
            PgError::NoDblink | PgError::NoUsage { .. } | PgError::NoMapping(_) | PgError::NoPassword(_)
        ),
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

/// Does a server, or PostgreSQL here, refuse the session or what opens it by such an error? Then the way by which the
/// rows are fetched may be open.
fn is_refusal(code: Code) -> bool {
    use Code::*;
    matches!(
        code,
        ERRCODE_CONNECTION_EXCEPTION
            | ERRCODE_CONNECTION_DOES_NOT_EXIST
            | ERRCODE_CONNECTION_FAILURE
            | ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION
            | ERRCODE_SQLSERVER_REJECTED_ESTABLISHMENT_OF_SQLCONNECTION
            | ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION
            | ERRCODE_INVALID_PASSWORD
            | ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED
            | ERRCODE_INSUFFICIENT_PRIVILEGE
            | ERRCODE_UNDEFINED_TABLE
            | ERRCODE_UNDEFINED_COLUMN
            | ERRCODE_UNDEFINED_FUNCTION
            | ERRCODE_UNDEFINED_OBJECT
            | ERRCODE_INVALID_SCHEMA_NAME
            | ERRCODE_INVALID_CATALOG_NAME
            | ERRCODE_FEATURE_NOT_SUPPORTED
            | ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            | ERRCODE_TOO_MANY_CONNECTIONS
            | ERRCODE_CANNOT_CONNECT_NOW
    )
}

/// Opens sessions for rows that are planned, and come to a node as they lie there; see [`Rows::open`].
pub fn open_for(
    rows: &PlannedRows,
    spec: &DecoderSpec,
    nodes: &Nodes,
    (errand, unfit): (Errand, Option<String>),
) -> Result<Option<Cluster>> {
    let (source, planned, shuffling) = (&rows.source, &rows.planned, &Shuffling::none());
    Rows { spec, source, planned, shuffling }.open(nodes, errand, unfit)
}

/// Names and types of the columns that are read.
fn columns(spec: &DecoderSpec, planned: &Planned) -> Vec<(String, String)> {
    spec.columns().map(str::to_owned).zip(planned.column_types()).collect()
}

pub fn task(rows: &ForeignRows, spec: &DecoderSpec, columns: &[Column], shuffling: &Shuffling) -> NodeTask {
    let shuffling = Shuffling { share: None, ..shuffling.clone() };
    NodeTask { sql: rows.sql.clone(), spec: OwnedSpec::new(spec, columns), shuffling }
}
