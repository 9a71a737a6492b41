//! Data sets are opened and put into the hub.

use super::hub::{Hub, already, other_rows};
use super::remembering::Remembered;
use crate::dataset::{DataSet, Opener};
use crate::proto;
use source::SourceError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tonic::Status;

/// What a server opens data sets by.
#[derive(Clone)]
pub(super) struct DataSets {
    pub(super) hub: Arc<Hub>,
    pub(super) opener: Arc<dyn Opener>,
    /// None if a server that starts again has none, or its leader's
    pub(super) remembered: Option<Arc<Remembered>>,
    /// held while both the hub and what is remembered change, so that they agree on which change was the last
    changing: Arc<Mutex<()>>,
    /// why data sets of before could not be opened when that was last tried
    failed: Arc<Mutex<HashMap<String, String>>>,
}

impl DataSets {
    pub(super) fn new(hub: Arc<Hub>, opener: Arc<dyn Opener>, remembered: Option<Arc<Remembered>>) -> DataSets {
        DataSets { hub, opener, remembered, changing: Arc::default(), failed: Arc::default() }
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new data set, or another one of a name that exists, as `replaces` says.
    pub(super) async fn put(&self, message: proto::DataSet, replaces: bool) -> Result<proto::DataSetInfo, Status> {
        if message.name.is_empty() {
            return Err(Status::invalid_argument("name: a data set needs one"));
        }
        let of = self.clone();
        apart(move || {
            // one that could not be opened again is there, and may be given another source
            let is_lost = || match of.lost(&message.name) {
                Some(_) if !replaces => Err(already(&message.name)),
                lost => Ok(lost.is_some()),
            };
            is_lost()?;
            let data_set = of.open(&message)?;
            let _one = of.change();
            let is_lost = is_lost()?;
            let info = of.hub.create(message.clone(), data_set, replaces && !is_lost)?;
            let written = of.remembered.as_ref().map_or(Ok(()), |remembered| remembered.put(&message));
            written.map(|()| info).map_err(|error| forgetful(&message.name, &error))
        })
        .await
    }

    /// Forgets a data set on which no job trains.
    pub(super) async fn drop(&self, name: String) -> Result<(), Status> {
        let of = self.clone();
        apart(move || {
            let _one = of.change();
            if of.lost(&name).is_none() {
                of.hub.drop_data_set(&name)?;
            }
            let written = of.remembered.as_ref().map_or(Ok(false), |remembered| remembered.forget(&name));
            written.map(drop).map_err(|error| forgetful(&name, &error))
        })
        .await
    }

    /// Opens all that the server had before it was started again, and says which cannot be opened. Those are tried
    /// again when they are asked for.
    pub(super) fn restore(&self) {
        for message in self.remembered.iter().flat_map(|remembered| remembered.all()) {
            let name = message.name.clone();
            match self.open(&message).and_then(|data_set| self.hub.create(message, data_set, false)) {
                Ok(info) => tracing::info!(data_set = name, rows = info.rows, "a data set of before"),
                Err(error) => {
                    tracing::warn!(data_set = name, error = error.message(), "a data set of before cannot be opened");
                    self.failed().insert(name, error.message().to_owned());
                }
            }
        }
    }

    /// Opens a data set that could not be opened when the server was started again; nothing if it was, or is unknown.
    pub(super) async fn find_again(&self, name: &str) -> Result<(), Status> {
        let Some(message) = self.lost(name) else { return Ok(()) };
        let of = self.clone();
        apart(move || {
            let again = |status: Status| {
                let what = format!("dataset: {:?} was there before the server was started again: ", message.name);
                Status::new(status.code(), what + status.message())
            };
            let data_set = of.open(&message).inspect_err(|error| {
                of.failed().insert(message.name.clone(), error.message().to_owned());
            });
            let data_set = data_set.map_err(again)?;
            let _one = of.change();
            if of.lost(&message.name).as_ref() != Some(&message) {
                // somebody has opened, changed or dropped it meanwhile
                return Ok(());
            }
            of.hub.create(message, data_set, false).map(std::mem::drop)
        })
        .await
    }

    /// All data sets, also those of before that cannot be opened.
    pub(super) fn list(&self) -> proto::DataSets {
        let mut data_sets = self.hub.list();
        for message in self.remembered.iter().flat_map(|remembered| remembered.all()) {
            if self.lost(&message.name).is_some() {
                let error = self.failed().get(&message.name).cloned().unwrap_or_default();
                data_sets.push(proto::DataSetInfo { data_set: Some(message), error, ..Default::default() });
            }
        }
        data_sets.sort_by(|one, other| name_of(one).cmp(name_of(other)));
        proto::DataSets { data_sets }
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered of a data set that is not open.
    fn lost(&self, name: &str) -> Option<proto::DataSet> {
        self.remembered.as_ref()?.get(name).filter(|_| self.hub.data_set(name).is_err())
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

fn name_of(info: &proto::DataSetInfo) -> &str {
    info.data_set.as_ref().map_or("", |message| &message.name)
}

/// What is there, and will not be once the server is started again, or the other way round.
fn forgetful(name: &str, error: &std::io::Error) -> Status {
    Status::failed_precondition(format!("name: it was done, but {name:?} cannot be remembered so: {error}"))
}

/// What a job or an operator gets of a source that cannot be read.
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
