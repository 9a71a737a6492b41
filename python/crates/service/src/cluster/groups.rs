//! The ranks of data-parallel jobs find each other.
//!
//! It guarantees that elements are distributed once for a job, when all of its ranks have come, and that the deal stays
//! as long as any of them is there: a rank that comes back gets what it had. Processes that say they are the same rank
//! are not served at the same time: one that begins is, since the older one may have died without a word; one that
//! comes back, and reads by itself meanwhile, is refused as long as another one is there.

use crate::dealing::Deal;
use crate::proto;
use joader::ElementSet;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tonic::{Code, Status};

/// How long ranks of another job of that name may take to go: the leader notices by then that a node has died.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ranks that a job may have.
const MAX_RANKS: u32 = 1 << 16;

/// A rank that registers.
#[derive(Clone, Debug)]
pub(crate) struct Coming {
    pub(crate) node: u32,
    pub(crate) name: String,
    pub(crate) rank: u32,
    pub(crate) world_size: u32,
    pub(crate) data_set: String,
    pub(crate) fingerprint: u64,
    /// of all ranks
    pub(crate) elements: ElementSet,
    /// of this rank, if it knows them already
    pub(crate) share: Option<ElementSet>,
    /// how long it waits for the others to come
    pub(crate) timeout: Duration,
}

/// The elements of all ranks, and their nodes.
#[derive(Debug)]
pub(crate) struct Dealt {
    pub(crate) ranks: Vec<u32>,
    pub(crate) deal: Deal,
}

/// A rank's place, as long as it is there.
pub(crate) struct Seat {
    /// None if the rank has said which elements it has
    pub(crate) dealt: Option<Arc<Dealt>>,
    seated: Seated,
}

impl Seat {
    /// Waits until another process takes this rank.
    pub(crate) async fn replaced(&mut self) -> Status {
        let Seated { coming, replaced, .. } = &mut self.seated;
        let _ = replaced.changed().await;
        is_there(coming)
    }
}

fn is_there(Coming { rank, name, .. }: &Coming) -> Status {
    let what = format!(
        "name: another process has registered as rank {rank} of {name:?}: jobs that run at the same time need different names"
    );
    Status::already_exists(what)
}

struct Seated {
    groups: Arc<Groups>,
    coming: Coming,
    number: u64,
    replaced: watch::Receiver<()>,
}

impl Drop for Seated {
    fn drop(&mut self) {
        self.groups.leave(&self.coming, self.number);
    }
}

struct There {
    node: u32,
    number: u64,
    share: Option<ElementSet>,
    _replaced: watch::Sender<()>,
}

struct Group {
    data_set: String,
    fingerprint: u64,
    world_size: u32,
    elements: ElementSet,
    there: BTreeMap<u32, There>,
    dealt: watch::Sender<Option<Arc<Dealt>>>,
}

/// All jobs with several ranks, by name.
pub(crate) struct Groups {
    seed: i64,
    nodes: u32,
    patience: Duration,
    state: Mutex<(u64, BTreeMap<String, Group>)>,
}

impl Groups {
    /// No one is there yet.
    pub(crate) fn new(seed: i64, nodes: u32) -> Arc<Groups> {
        Groups::patient(seed, nodes, PATIENCE)
    }

    fn patient(seed: i64, nodes: u32, patience: Duration) -> Arc<Groups> {
        Arc::new(Groups { seed, nodes, patience, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<String, Group>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What deals depend on, besides ranks and elements.
    pub(crate) fn seed(&self) -> (i64, u32) {
        (self.seed, self.nodes)
    }

    /// Gives a rank its place. It waits until all ranks have come, if no one knows yet which elements it has; and for
    /// ranks to go that are of another job, such as the one that was stopped to start this one.
    pub(crate) async fn seat(self: &Arc<Self>, coming: Coming) -> Result<Seat, Status> {
        let timeout = coming.timeout;
        let until = Instant::now() + self.patience.min(timeout);
        let (seated, mut dealt) = loop {
            match self.come(coming.clone()) {
                Err(refused) if refused.code() == Code::FailedPrecondition && Instant::now() < until => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                came => break came?,
            }
        };
        if seated.coming.share.is_some() {
            return Ok(Seat { dealt: None, seated });
        }
        let mut seat = Seat { dealt: None, seated };
        let found = tokio::select! {
            found = dealt.wait_for(Option::is_some) => found.ok().and_then(|dealt| dealt.clone()),
            replaced = seat.replaced() => return Err(replaced),
            () = tokio::time::sleep(timeout) => return Err(self.missing(&seat.seated.coming)),
        };
        let Some(found) = found else {
            return Err(Status::failed_precondition(format!(
                "world_size: other ranks of {:?} go on with elements that were distributed before, and on other nodes: \
                 start all ranks again",
                seat.seated.coming.name
            )));
        };
        seat.dealt = Some(found);
        Ok(seat)
    }

    #[expect(clippy::type_complexity)]
    fn come(self: &Arc<Self>, coming: Coming) -> Result<(Seated, watch::Receiver<Option<Arc<Dealt>>>), Status> {
        let refuse = |what: String| Err(Status::invalid_argument(what));
        let Coming { rank, world_size, .. } = coming;
        if world_size > MAX_RANKS {
            return refuse(format!("world_size: {world_size} ranks are too many: {MAX_RANKS} at most"));
        }
        if rank >= world_size {
            return refuse(format!("rank: there is no rank {rank} of {world_size}: they are numbered from 0"));
        }
        let (elements, name) = (coming.elements.len(), &coming.name);
        if elements > 0 && elements < world_size as usize {
            return refuse(format!(
                "world_size: {name:?} has {world_size} ranks, and {elements} elements: make the data set's elements smaller"
            ));
        }
        let mut state = self.lock();
        state.0 += 1;
        let number = state.0;
        let group = state.1.entry(name.clone()).or_insert_with(|| Group {
            data_set: coming.data_set.clone(),
            fingerprint: coming.fingerprint,
            world_size,
            elements: coming.elements.clone(),
            there: BTreeMap::new(),
            dealt: watch::channel(None).0,
        });
        let what = |what: &str| {
            let what = format!(
                "name: the other ranks of {name:?} have another {what}: give all ranks the same, and other jobs other names"
            );
            Err(Status::failed_precondition(what))
        };
        if group.world_size != world_size {
            return what("world_size");
        }
        if group.data_set != coming.data_set || group.fingerprint != coming.fingerprint {
            return what("dataset");
        }
        if group.elements != coming.elements {
            return what("condition (where)");
        }
        if coming.share.is_some() && group.there.contains_key(&rank) {
            return Err(is_there(&coming));
        }
        let (replaced, is_replaced) = watch::channel(());
        let there = There { node: coming.node, number, share: coming.share.clone(), _replaced: replaced };
        group.there.insert(rank, there);
        let dealt = group.dealt.subscribe();
        let mut done = Ok(());
        if group.there.len() == world_size as usize {
            done = group.deal(self.seed, self.nodes, name);
        } else if group.dealt.borrow().is_none() && coming.share.is_none() {
            tracing::info!(name, rank, there = group.there.len(), world_size, "waiting for the other ranks");
        }
        // who is seated leaves by the same lock
        drop(state);
        let seated = Seated { groups: self.clone(), coming, number, replaced: is_replaced };
        done.map(|()| (seated, dealt))
    }

    /// What a rank gets that has waited for others long enough.
    fn missing(&self, coming: &Coming) -> Status {
        const NAMED: usize = 8;
        let Coming { name, world_size, timeout, .. } = coming;
        let state = self.lock();
        let is_missing = |rank: &u32| state.1.get(name).is_none_or(|group| !group.there.contains_key(rank));
        let missing: Vec<u32> = (0..*world_size).filter(is_missing).collect();
        let named: Vec<String> = missing.iter().take(NAMED).map(u32::to_string).collect();
        let others = if missing.len() > NAMED { ", ..." } else { "" };
        let what = format!(
            "timeout: after {} seconds {} of the {world_size} ranks of {name:?} were not there ({}{others}): start them, or \
             all with another world_size",
            timeout.as_secs(),
            missing.len(),
            named.join(", ")
        );
        Status::failed_precondition(what)
    }

    fn leave(&self, coming: &Coming, number: u64) {
        let mut state = self.lock();
        let Some(group) = state.1.get_mut(&coming.name) else { return };
        if group.there.get(&coming.rank).is_some_and(|there| there.number == number) {
            group.there.remove(&coming.rank);
        }
        if group.there.is_empty() {
            state.1.remove(&coming.name);
        }
    }

    /// What each job is.
    pub(crate) fn status(&self) -> Vec<proto::Group> {
        let state = self.lock();
        let group = |(name, group): (&String, &Group)| {
            let dealt = group.dealt.borrow();
            proto::Group {
                name: name.clone(),
                data_set: group.data_set.clone(),
                world_size: group.world_size,
                ranks: group.there.keys().copied().collect(),
                dealt: dealt.is_some() || group.there.values().any(|there| there.share.is_some()),
                moved: dealt.as_ref().map_or(0, |dealt| dealt.deal.moved as u64),
            }
        };
        state.1.iter().map(group).collect()
    }
}

impl Group {
    /// Distributes the elements to ranks that are all there, if that was not done.
    fn deal(&mut self, seed: i64, nodes: u32, name: &str) -> Result<(), Status> {
        if self.dealt.borrow().is_some() {
            return Ok(());
        }
        let ranks: Vec<u32> = self.there.values().map(|there| there.node).collect();
        let deal = Deal::new(seed, nodes, &ranks, &self.elements)
            .map_err(|error| Status::resource_exhausted(error.to_string()))?;
        let differs = |(there, share): (&There, &ElementSet)| there.share.as_ref().is_some_and(|known| known != share);
        if self.there.values().zip(&deal.shares).any(differs) {
            // those who wait hear that there will be no deal
            self.dealt = watch::channel(None).0;
            return Ok(());
        }
        tracing::info!(name, ?ranks, elements = self.elements.len(), moved = deal.moved, "elements were distributed");
        self.dealt.send_replace(Some(Arc::new(Dealt { ranks, deal })));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coming(rank: u32, node: u32) -> Coming {
        Coming {
            node,
            name: "job".to_owned(),
            rank,
            world_size: 2,
            data_set: "numbers".to_owned(),
            fingerprint: 1,
            elements: ElementSet::from_ranges(std::iter::once(0..10)).unwrap(),
            share: None,
            timeout: Duration::from_secs(600),
        }
    }

    async fn waits(seat: impl Future<Output = Result<Seat, Status>>) -> bool {
        tokio::time::timeout(Duration::from_millis(20), seat).await.is_err()
    }

    fn shares(seat: &Seat) -> Vec<ElementSet> {
        seat.dealt.as_ref().unwrap().deal.shares.clone()
    }

    #[tokio::test]
    async fn ranks_wait_for_each_other_and_one_that_comes_back_does_not_wait() {
        let groups = Groups::new(1, 2);
        assert!(waits(groups.seat(coming(0, 0))).await);
        assert!(groups.status().is_empty(), "who does not wait any more is forgotten");
        let (first, second) = tokio::join!(groups.seat(coming(0, 0)), groups.seat(coming(1, 1)));
        let (first, second) = (first.unwrap(), second.unwrap());
        assert_eq!(first.dealt.as_ref().unwrap().ranks, [0, 1]);
        assert_eq!(shares(&first), shares(&second));
        let status = groups.status();
        assert!(status[0].dealt && status[0].ranks == [0, 1]);
        let before = shares(&first);
        drop(first);
        assert_eq!(shares(&groups.seat(coming(0, 1)).await.unwrap()), before, "also from another node");
        drop(second);
        assert!(groups.status().is_empty() && waits(groups.seat(coming(1, 1))).await);
    }

    #[tokio::test]
    async fn a_rank_that_has_waited_long_enough_says_who_is_missing() {
        let groups = Groups::new(1, 2);
        let hasty = |rank| Coming { timeout: Duration::from_millis(20), world_size: 3, ..coming(rank, 0) };
        let (first, second) = tokio::join!(groups.seat(hasty(1)), groups.seat(hasty(2)));
        // the one that gives up last misses the other one, too
        for refused in [first.err().unwrap(), second.err().unwrap()] {
            assert_eq!(refused.code(), Code::FailedPrecondition);
            assert!(refused.message().contains(" of the 3 ranks of \"job\" were not there (0"), "{refused}");
        }
        assert!(groups.status().is_empty());
    }

    #[tokio::test]
    async fn a_rank_that_knows_its_elements_does_not_wait_and_another_one_gets_the_others_or_nothing() {
        let groups = Groups::new(1, 2);
        let (first, second) = tokio::join!(groups.seat(coming(0, 0)), groups.seat(coming(1, 1)));
        let dealt = shares(&first.unwrap());
        drop(second);
        let known = |node| Coming { share: Some(dealt[0].clone()), ..coming(0, node) };
        let other = Groups::new(1, 2);
        let first = other.seat(known(0)).await.unwrap();
        assert_eq!(shares(&other.seat(coming(1, 1)).await.unwrap()), dealt);
        drop(first);
        // all on one node is another deal
        let other = Groups::new(1, 2);
        let _first = other.seat(Coming { share: Some(dealt[1].clone()), ..coming(0, 0) }).await.unwrap();
        let refused = other.seat(coming(1, 0)).await.err().unwrap();
        assert!(refused.message().contains("start all ranks again"), "{refused}");
    }

    #[tokio::test]
    async fn a_process_that_begins_replaces_another_one_that_is_the_same_rank_and_one_that_comes_back_does_not() {
        let groups = Groups::new(1, 2);
        let (first, _second) = tokio::join!(groups.seat(coming(0, 0)), groups.seat(coming(1, 1)));
        let mut old = first.unwrap();
        let new = groups.seat(coming(0, 0)).await.unwrap();
        let told = tokio::time::timeout(Duration::from_secs(10), old.replaced()).await.unwrap();
        assert!(told.message().starts_with("name: another process has registered as rank 0 of \"job\""));
        drop(old);
        assert_eq!(groups.status()[0].ranks, [0, 1], "the new one stays");
        let back = Coming { share: Some(shares(&new)[0].clone()), ..coming(0, 0) };
        let refused = groups.seat(back.clone()).await.err().unwrap();
        assert_eq!(refused.code(), Code::AlreadyExists, "the old one would take its place again");
        drop(new);
        assert_eq!(groups.status()[0].ranks, [1]);
        assert!(groups.seat(back).await.is_ok());
    }

    #[tokio::test]
    async fn ranks_of_the_job_that_was_stopped_before_are_waited_for() {
        let groups = Groups::new(1, 2);
        let (first, second) = tokio::join!(groups.seat(coming(0, 0)), groups.seat(coming(1, 1)));
        let three = |rank| groups.seat(Coming { world_size: 3, ..coming(rank, 0) });
        let gone = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            drop((first, second));
        };
        let (a, b, c, ()) = tokio::join!(three(0), three(1), three(2), gone);
        assert!(a.is_ok() && b.is_ok() && c.is_ok());
        assert_eq!(groups.status()[0].world_size, 3);
    }

    #[tokio::test]
    async fn ranks_that_do_not_fit_are_refused() {
        let groups = Groups::patient(1, 2, Duration::from_millis(100));
        let (_first, _second) = tokio::join!(groups.seat(coming(0, 0)), groups.seat(coming(1, 1)));
        let ten = ElementSet::from_ranges(std::iter::once(0..10)).unwrap();
        let nine = ElementSet::from_ranges(std::iter::once(0..9)).unwrap();
        for (coming, what) in [
            (Coming { rank: 2, ..coming(0, 0) }, "rank: there is no rank 2 of 2"),
            (Coming { world_size: 3, ..coming(0, 0) }, "have another world_size"),
            (Coming { world_size: 11, ..coming(0, 0) }, "has 11 ranks, and 10 elements"),
            (Coming { fingerprint: 2, ..coming(0, 0) }, "have another dataset"),
            (Coming { elements: nine, ..coming(0, 0) }, "have another condition"),
            (Coming { rank: 9, elements: ten, world_size: 9, ..coming(0, 0) }, "rank: there is no rank 9"),
        ] {
            let refused = groups.seat(coming).await.err().unwrap();
            assert!(refused.message().contains(what), "{refused}");
        }
    }
}
