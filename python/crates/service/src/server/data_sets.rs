//! Data sets are opened and put into the hub.

use super::hub::{Hub, other_rows};
use crate::dataset::{DataSet, Opener};
use crate::proto;
use source::SourceError;
use std::sync::Arc;
use tonic::Status;

/// What a server opens data sets by.
#[derive(Clone)]
pub(super) struct DataSets {
    pub(super) hub: Arc<Hub>,
    pub(super) opener: Arc<dyn Opener>,
}

impl DataSets {
    /// A new data set, or another one of a name that exists, as `replaces` says.
    pub(super) async fn put(&self, message: proto::DataSet, replaces: bool) -> Result<proto::DataSetInfo, Status> {
        if message.name.is_empty() {
            return Err(Status::invalid_argument("name: a data set needs one"));
        }
        let of = self.clone();
        apart(move || of.hub.create(message.clone(), of.open(&message)?, replaces)).await
    }

    /// A data set of the leader, opened on this machine unless it is already.
    pub(super) async fn follow(&self, of_leader: proto::DataSetInfo) -> Result<(), Status> {
        let message = of_leader.data_set.unwrap_or_default();
        let old = self.hub.data_set(&message.name).ok();
        let is_same = |(data_set, known): &(Arc<DataSet>, proto::DataSet)| {
            *known == message && data_set.fingerprint() == of_leader.fingerprint
        };
        if old.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let (of, replaces) = (self.clone(), old.is_some());
        apart(move || {
            let data_set = of.open(&message)?;
            if data_set.fingerprint() != of_leader.fingerprint {
                return Err(other_rows(&message.name));
            }
            of.hub.create(message, data_set, replaces).map(drop)
        })
        .await
    }

    fn open(&self, message: &proto::DataSet) -> Result<DataSet, Status> {
        let opened = self.opener.open(&message.source).map_err(status_of)?;
        DataSet::new(opened, message.columns.clone(), &message.element_size).map_err(status_of)
    }
}

/// What a job or an operator is told of a source that cannot be read.
pub(super) fn status_of(error: SourceError) -> Status {
    match error {
        SourceError::Invalid(what) => Status::invalid_argument(what),
        SourceError::Cancelled => Status::cancelled("the server ends"),
        error => Status::failed_precondition(error.to_string()),
    }
}

/// What is said about a request, of which a user's condition or the names of all data sets may be a part: an answer has
/// no more room than this.
const MAX_SAID: usize = 2000;

/// The beginning and the end of what is said, if that is long.
pub(super) fn short(status: Status) -> Status {
    let said = status.message();
    if said.len() <= MAX_SAID {
        return status;
    }
    let all = said.chars().count();
    let begin: String = said.chars().take(MAX_SAID / 4).collect();
    let end: String = said.chars().skip(all.saturating_sub(MAX_SAID / 8)).collect();
    Status::new(status.code(), format!("{begin} … {end}"))
}

/// Does what may take long outside of the threads that answer.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(short),
        Err(error) => Err(Status::internal(format!("the server's thread ended: {error}"))),
    }
}
