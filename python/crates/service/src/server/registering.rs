//! How a job comes: what it wants is checked, its elements are found, and it joins.
//!
//! It guarantees that a job which was let in leaves, whatever becomes of who has asked for it.

use super::connections::{SESSION, Sessions};
use super::data_sets::status_of;
use super::hub::{Hub, Joining, ToJob, Window};
use crate::dataset::{DataSet, Selection};
use crate::dealing::Deal;
use crate::proto;
use crate::sampling::Wanted;
use arrow::datatypes::DataType;
use joader::ElementSet;
use preparing::Recipe;
use source::{Cancel, Source};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tonic::Status;

/// Bytes of a value of this type, 0 if not all values are of one length. Pictures become much larger when they are
/// decoded.
fn bytes_of(of: &DataType) -> u64 {
    match of {
        DataType::FixedSizeList(field, length) => {
            bytes_of(field.data_type()).saturating_mul(u64::try_from(*length).unwrap_or_default())
        }
        of => of.primitive_width().unwrap_or_default() as u64,
    }
}

/// What a job wants, checked.
pub(super) struct Wish {
    pub(super) register: proto::Register,
    data_set: Arc<DataSet>,
    message: proto::DataSet,
    pub(super) fingerprint: u64,
    pub(super) recipe: Recipe,
    source: Arc<dyn Source>,
    pub(super) selection: Arc<Selection>,
    /// bytes of a prepared row, as far as they are known
    pub(super) row_bytes: u64,
    /// of this rank, if it knows them
    pub(super) share: Option<ElementSet>,
    left: Option<ElementSet>,
    window: Window,
}

impl Wish {
    /// Finds the rows that a job wants.
    pub(super) fn new(hub: &Hub, register: proto::Register, cancel: &Cancel) -> Result<Wish, Status> {
        let (data_set, message) = hub.data_set(&register.data_set)?;
        let fingerprint = data_set.fingerprint();
        if register.fingerprint.is_some_and(|known| known != fingerprint) {
            let what = format!("dataset: {:?} is another one than this job has begun with", register.data_set);
            return Err(Status::failed_precondition(what));
        }
        if register.epoch >= register.epochs {
            return Err(Status::invalid_argument("epochs: none are left"));
        }
        let recipe = match register.recipe.as_str() {
            "" => Recipe::default(),
            text => Recipe::parse(text).map_err(|error| Status::invalid_argument(format!("prepare: {error}")))?,
        };
        let source = data_set.source(&register.columns).map_err(status_of)?;
        let prepared = recipe
            .output_schema(&source.schema())
            .map_err(|error| Status::invalid_argument(format!("prepare: {error}")))?;
        let fields = prepared.iter().flat_map(|schema| schema.fields());
        let row_bytes = fields.map(|field| bytes_of(field.data_type())).sum();
        let selection = data_set.selection(&register.filter, cancel).map_err(status_of)?;
        let of_job = |elements: &Option<proto::Elements>, name: &str| {
            let Some(elements) = elements else { return Ok(None) };
            let set = elements.set().map_err(|error| Status::invalid_argument(error.to_string()))?;
            let all: BTreeSet<u32> = selection.elements.iter().collect();
            if set.span().end > data_set.elements() || set.iter().any(|element| !all.contains(&element)) {
                return Err(Status::invalid_argument(format!("{name}: there are elements that the job does not want")));
            }
            Ok(Some(set))
        };
        let (share, left) = (of_job(&register.share, "share")?, of_job(&register.left, "left")?);
        let window = match register.window.and_then(|window| window.size) {
            Some(proto::window::Size::Elements(elements)) => Window::Elements(elements),
            Some(proto::window::Size::Share(share)) if share > 0.0 && share <= 1.0 => Window::Share(share),
            _ => {
                return Err(Status::invalid_argument("buffer_size: a number of elements or a share of them is needed"));
            }
        };
        Ok(Wish { register, data_set, message, fingerprint, recipe, source, selection, row_bytes, share, left, window })
    }

    /// Rows of some of the elements.
    fn rows(&self, elements: &ElementSet) -> u64 {
        self.data_set.rows_in(&self.selection, elements)
    }

    /// What a rank gets that was dealt this.
    pub(super) fn of_deal(&self, deal: &Deal) -> Place {
        let rows = deal.shares.iter().map(|share| self.rows(share));
        let (least, most) = rows.fold((u64::MAX, 0), |(least, most), rows| (least.min(rows), most.max(rows)));
        let elements = deal.shares.get(self.register.rank as usize).cloned().unwrap_or_default();
        Place { elements, least, most, taken: None }
    }

    /// What a job gets that needs no deal: it is the only rank, or knows its elements.
    pub(super) fn alone(&self) -> Place {
        match self.share.as_ref().filter(|_| self.register.world_size > 1) {
            Some(share) => Place { elements: share.clone(), least: 0, most: 0, taken: None },
            None => {
                let rows = self.selection.rows;
                Place { elements: self.selection.elements.clone(), least: rows, most: rows, taken: None }
            }
        }
    }
}

/// The elements of a job, or of a rank of it.
pub(super) struct Place {
    elements: ElementSet,
    /// rows of the ranks that get the fewest and the most
    least: u64,
    most: u64,
    /// tells the leader what was taken
    pub(super) taken: Option<UnboundedSender<u32>>,
}

/// Ends a job when the task that listens to it ends, however that is, or when no one has waited for it to register.
pub(super) struct Leaving {
    pub(super) hub: Arc<Hub>,
    sessions: Arc<Sessions>,
    pub(super) job: u64,
    session: [u8; SESSION],
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.sessions.end(&self.session);
        self.hub.leave(self.job);
    }
}

/// Lets a job join.
pub(super) fn join(
    hub: &Arc<Hub>,
    sessions: &Arc<Sessions>,
    wish: &Wish,
    place: Place,
    process: u32,
    to_job: ToJob,
) -> Result<Leaving, Status> {
    let session = sessions.begin().map_err(|error| Status::internal(error.to_string()))?;
    let register = &wish.register;
    let Place { elements, least, most, taken } = place;
    let (memory, rows_of_job) = (hub.memory.len(), wish.rows(&elements));
    let of_job = proto::Elements::of(&elements);
    let left = wish.left.clone();
    let wanted = Wanted { elements, left, epoch: register.epoch, end: register.epochs, ahead: 1 };
    let registered = |job, window| proto::ToJob {
        message: Some(proto::to_job::Message::Registered(proto::Registered {
            job,
            session: session.to_vec().into(),
            memory,
            data_set: Some(wish.message.clone()),
            fingerprint: wish.fingerprint,
            starts: wish.data_set.starts(),
            rows: wish.data_set.rows(),
            elements: Some(of_job),
            rows_of_job,
            window,
            least_rows: least,
            most_rows: most,
            passing: wish.data_set.passing(),
        })),
    };
    let joining = Joining {
        name: register.name.clone(),
        data_set: register.data_set.clone(),
        rows: wish.data_set.clone(),
        columns: register.columns.clone(),
        recipe: wish.recipe.clone(),
        selection: wish.selection.clone(),
        row_bytes: wish.row_bytes,
        wanted,
        window: wish.window,
        to_job,
        process,
        rank: (register.rank, register.world_size.max(1)),
        taken,
    };
    let joined = hub.join(joining, wish.source.clone(), registered);
    if joined.is_err() {
        sessions.end(&session);
    }
    Ok(Leaving { hub: hub.clone(), sessions: sessions.clone(), job: joined?, session })
}
