//! Books kept for jobs that draw, hold, stall and go, with reads that come in any order and fail.

use super::*;
use proptest::prelude::*;

const MEMORY: u64 = 64 * 40;

fn serving() -> Serving {
    Serving::new(Rooms::new(MEMORY, 1000))
}

fn key(element: u32) -> Key {
    Key { kind: 0, element }
}

/// The loader, the memory and the jobs.
struct World {
    serving: Serving,
    loading: Vec<Key>,
    /// what is written where
    memory: Vec<Option<Key>>,
    /// what each job has drawn and not got, and what it holds, by ticket
    drawn: BTreeMap<JobId, VecDeque<(u64, u32)>>,
    held: BTreeMap<JobId, BTreeMap<u64, Option<(Room, Key)>>>,
    kinds: BTreeMap<JobId, u32>,
    windows: BTreeMap<JobId, usize>,
    got: u64,
    can_fail: bool,
}

impl World {
    fn new(can_fail: bool) -> World {
        World {
            serving: serving(),
            loading: Vec::new(),
            memory: vec![None; (MEMORY / 64) as usize],
            drawn: BTreeMap::new(),
            held: BTreeMap::new(),
            kinds: BTreeMap::new(),
            windows: BTreeMap::new(),
            got: 0,
            can_fail,
        }
    }

    fn join(&mut self, job: JobId, kind: u32, window: u32) {
        self.serving.join(job, kind, window);
        self.drawn.insert(job, VecDeque::new());
        self.held.insert(job, BTreeMap::new());
        self.kinds.insert(job, kind);
        self.windows.insert(job, window as usize);
    }

    fn leave(&mut self, job: JobId) {
        self.serving.leave(job);
        self.drawn.remove(&job);
        self.held.remove(&job);
        self.act();
    }

    fn draw(&mut self, job: JobId, epoch: u64, element: u32) {
        if let Some(drawn) = self.drawn.get_mut(&job) {
            drawn.push_back((epoch, element));
            self.serving.draw(job, epoch, element, 1);
            self.act();
        }
    }

    fn places(room: Room) -> std::ops::Range<usize> {
        let start = (room.offset() / GRAIN_OF_TEST) as usize;
        start..start + room.bytes().div_ceil(GRAIN_OF_TEST).max(1) as usize
    }

    /// What is held is where it was.
    fn check(&self) {
        for (room, key) in self.held.values().flat_map(BTreeMap::values).flatten() {
            assert!(Self::places(*room).all(|place| self.memory[place] == Some(*key)), "{key:?} was overwritten");
        }
        for (job, held) in &self.held {
            assert!(held.len() <= self.windows[job], "{job} holds more than it may");
            assert_eq!(self.serving.held(*job).unwrap().0, held.len());
        }
    }

    fn load(&mut self, which: usize, bytes: u64, fails: bool) {
        if self.loading.is_empty() {
            return;
        }
        let key = self.loading.swap_remove(which % self.loading.len());
        if !self.serving.is_wanted(key) {
            return;
        }
        if fails && self.can_fail {
            self.serving.failed(key, "no");
        } else if let Some(room) = self.serving.place(key, bytes) {
            for place in Self::places(room) {
                self.memory[place] = Some(key);
            }
            self.check();
            self.serving.written(key);
        } else {
            self.serving.outside(key, vec![0; bytes as usize].into());
        }
        self.act();
    }

    fn done(&mut self, job: JobId, which: usize) {
        let Some(held) = self.held.get_mut(&job) else { return };
        let Some(ticket) = held.keys().nth(which % held.len().max(1)).copied() else { return };
        held.remove(&ticket);
        self.serving.done(job, ticket);
        self.act();
    }

    fn act(&mut self) {
        for action in self.serving.take_actions() {
            match action {
                Action::Load(key) => {
                    assert!(!self.loading.contains(&key), "{key:?} is being read already");
                    self.loading.push(key);
                }
                Action::Deliver { job, ticket, epoch, element, rows } => {
                    let Some(drawn) = self.drawn.get_mut(&job) else { continue };
                    let place = drawn.iter().position(|claim| *claim == (epoch, element)).expect("it has drawn it");
                    drawn.remove(place);
                    self.got += 1;
                    let key = Key { kind: self.kinds[&job], element };
                    let held = self.held.get_mut(&job).unwrap();
                    match rows {
                        Rows::Error(_) => continue,
                        Rows::Room(room) => held.insert(ticket, Some((room, key))),
                        Rows::Outside(_) => held.insert(ticket, None),
                    };
                    assert!(place == 0 || self.can_fail, "out of order");
                }
            }
        }
        self.check();
    }
}

const GRAIN_OF_TEST: u64 = 64;

#[derive(Debug, Clone)]
enum Step {
    Join(JobId, u32, u32),
    Leave(JobId),
    Draw(JobId, u32),
    Load(usize, u64, bool),
    Done(JobId, usize),
    Stall(JobId),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let job = 0_u64..4;
    let step = prop_oneof![
        1 => (job.clone(), 0_u32..2, 1_u32..5).prop_map(|(job, kind, window)| Step::Join(job, kind, window)),
        1 => job.clone().prop_map(Step::Leave),
        8 => (job.clone(), 0_u32..12).prop_map(|(job, element)| Step::Draw(job, element)),
        8 => (0_usize..20, 1_u64..MEMORY / 3, prop::bool::weighted(0.1)).prop_map(|(i, n, f)| Step::Load(i, n, f)),
        8 => (job.clone(), 0_usize..9).prop_map(|(job, which)| Step::Done(job, which)),
        1 => job.prop_map(Step::Stall),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    #[test]
    fn each_draw_is_delivered_once_and_what_is_held_stays(steps in steps(), can_fail: bool) {
        let mut world = World::new(can_fail);
        let mut epochs = 0;
        for step in steps {
            match step {
                Step::Join(job, kind, window) if !world.drawn.contains_key(&job) => world.join(job, kind, window),
                Step::Join(..) => {}
                Step::Leave(job) => world.leave(job),
                Step::Draw(job, element) => {
                    // so that no two draws of a job are the same
                    epochs += 1;
                    world.draw(job, epochs, element);
                }
                Step::Load(which, bytes, fails) => world.load(which, bytes, fails),
                Step::Done(job, which) => world.done(job, which),
                Step::Stall(job) => world.serving.stalled(job),
            }
        }
        // everybody goes on: everything comes
        world.can_fail = false;
        for _ in 0..10_000 {
            let jobs: Vec<JobId> = world.drawn.keys().copied().collect();
            if world.drawn.values().all(VecDeque::is_empty) {
                break;
            }
            world.load(0, 64 * 7, false);
            for job in jobs {
                world.done(job, 0);
            }
        }
        prop_assert!(world.drawn.values().all(VecDeque::is_empty), "something never came");
        let jobs: Vec<JobId> = world.drawn.keys().copied().collect();
        for job in jobs {
            world.leave(job);
        }
        while !world.loading.is_empty() {
            world.load(0, 64, false);
        }
        // nothing is held, so that all of it may go
        let largest = world.serving.rooms.largest();
        prop_assert!(world.serving.make_room(largest).is_some());
        prop_assert_eq!(world.serving.outside, 0);
    }
}

#[test]
fn an_element_that_several_want_is_read_once() {
    let mut world = World::new(false);
    for job in 0..3 {
        world.join(job, 0, 4);
        world.draw(job, 0, 5);
    }
    assert_eq!(world.loading, [key(5)]);
    world.load(0, 100, false);
    world.draw(0, 1, 5);
    assert_eq!((world.got, world.loading.len()), (4, 0));
    let counts = [0, 1].map(|job| world.serving.counts(job).unwrap());
    assert_eq!(counts[0], Counts { elements: 2, loads: 1, hits: 1, ..Counts::default() });
    assert_eq!(counts[1], Counts { elements: 1, merged: 1, ..Counts::default() });
    assert_eq!(world.serving.totals().bytes_delivered, 400);
}

#[test]
fn other_columns_or_preparations_are_other_reads() {
    let mut world = World::new(false);
    for job in 0..2 {
        world.join(job, job as u32, 4);
        world.draw(job, 0, 5);
    }
    assert_eq!(world.loading.len(), 2);
}

#[test]
fn an_error_is_for_those_that_wait_and_the_element_is_read_again_for_others() {
    let mut world = World::new(true);
    world.join(0, 0, 4);
    world.join(1, 0, 4);
    world.draw(0, 0, 5);
    world.draw(0, 0, 6);
    world.load(0, 64, true);
    assert_eq!(world.serving.counts(0).unwrap().errors, 1);
    world.load(0, 64, false);
    world.draw(1, 0, 5);
    world.load(0, 64, false);
    assert_eq!(world.serving.counts(1).unwrap(), Counts { elements: 1, loads: 1, ..Counts::default() });
    assert_eq!(world.got, 3);
}

#[test]
fn what_is_kept_for_a_stalled_job_makes_room_for_others_and_comes_later() {
    let mut world = World::new(false);
    world.join(0, 0, 1);
    world.join(1, 0, 1);
    for element in 0..8 {
        world.draw(0, 0, element);
        world.load(0, MEMORY / 8, false);
    }
    // it holds the first, and seven are kept for it: all that there is room for
    world.draw(1, 0, 100);
    world.load(0, MEMORY / 8, false);
    assert_eq!(world.serving.counts(1).unwrap().outside, 1, "nobody is stalled yet");
    world.done(1, 0);
    world.serving.stalled(0);
    world.draw(1, 0, 101);
    world.load(0, MEMORY / 8, false);
    assert_eq!(world.serving.counts(1).unwrap().outside, 1);
    assert!(world.serving.totals().evictions > 0);
    for _ in 0..20 {
        world.done(0, 0);
        world.load(0, MEMORY / 8, false);
    }
    let counts = world.serving.counts(0).unwrap();
    assert_eq!((counts.elements, counts.again), (8, 1), "all came, and what had gone was read again");
}

#[test]
fn what_is_larger_than_the_memory_goes_outside() {
    let mut world = World::new(false);
    world.join(0, 0, 2);
    world.draw(0, 0, 1);
    world.load(0, 2 * MEMORY, false);
    assert_eq!(world.serving.counts(0).unwrap().outside, 1);
    assert_eq!(world.serving.kept(), (0, 0));
}

#[test]
fn an_element_that_cannot_be_read_is_told_in_its_turn() {
    let mut serving = Serving::new(Rooms::new(1 << 16, 64));
    serving.join(1, 0, 8);
    // the last element of an epoch and the first one of the next
    serving.draw(1, 0, 5, 0);
    serving.draw(1, 1, 7, 0);
    let key = |element| Key { kind: 0, element };
    assert_eq!(serving.take_actions(), [Action::Load(key(5)), Action::Load(key(7))]);
    serving.failed(key(7), "no");
    assert_eq!(serving.take_actions(), [], "the epoch before has not ended");
    serving.place(key(5), 100).unwrap();
    serving.written(key(5));
    let told: Vec<_> = serving.take_actions();
    let order = told.iter().map(|action| match action {
        Action::Deliver { epoch, element, rows, .. } => (*epoch, *element, matches!(rows, Rows::Error(_))),
        Action::Load(_) => panic!("{told:?}"),
    });
    assert_eq!(order.collect::<Vec<_>>(), [(0, 5, false), (1, 7, true)]);
}
