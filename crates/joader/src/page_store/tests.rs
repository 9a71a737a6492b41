//! The store among jobs that come, make, take, stall and die, while writers and VACUUM change the pages.
//!
//! The model knows of each page which versions there were, and when; of each job which version its snapshot sees; and
//! of VACUUM that it marks a page as visible to all once every job that is alive sees its last version. What a job
//! takes must be what it sees.

use super::entries::FREE;
use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

const ARENA: u64 = 64 * WORDS_PER_ENTRY;
const DIGEST: Digest = [7, 9];
const OTHER: Digest = [8, 9];

fn job(number: usize) -> Job {
    Job::of_number(number)
}

fn set(numbers: &[usize]) -> JobSet {
    numbers.iter().map(|number| job(*number)).collect()
}

fn books() -> Vec<u64> {
    let mut index = vec![0; PageStore::index_words(ARENA)];
    PageStore::create(&mut index, ARENA);
    index
}

fn join(store: &mut PageStore, number: usize) {
    store.join(job(number), DIGEST, [number as u64, 0]);
}

/// Makes a page of so many words.
fn make(store: &mut PageStore, of: usize, page: u32, words: u64, needing: JobSet) -> Option<Range<u64>> {
    let Request::Make(ticket) = store.request(job(of), page, true) else { panic!("page {page} is there") };
    let Some(place) = store.allocate(&ticket, words) else {
        store.abandon(ticket);
        return None;
    };
    store.publish(ticket, needing);
    Some(place)
}

/// Takes a page, if it is there.
fn take(store: &mut PageStore, of: usize, page: u32) -> bool {
    let alive = store.members();
    take_if(store, of, page, alive)
}

fn take_if(store: &mut PageStore, of: usize, page: u32, alive: JobSet) -> bool {
    let Request::Made(pin) = store.request(job(of), page, false) else { return false };
    let confirmed = store.confirm(&pin, |witness| alive.bits() >> witness[0] & 1 == 1);
    store.unpin(pin);
    confirmed
}

fn confirm(store: &mut PageStore, pin: &Pin) -> bool {
    store.confirm(pin, |_| true)
}

impl Entry {
    fn is_used(&self) -> bool {
        self.state != FREE
    }
}

impl PageStore<'_> {
    /// Pages that are in the store or being made, and their words.
    fn contents(&self) -> (usize, u64) {
        let entries = &self.entries[1..self.header.fresh as usize];
        let used = entries.iter().filter(|entry| entry.is_used());
        used.fold((0, 0), |(count, words), entry| (count + 1, words + (entry.words().end - entry.words().start)))
    }

    /// Looks whether the books agree with themselves.
    fn check(&self) {
        let mut placed = 0;
        let (mut i, mut end) = (self.entries[0].behind, 0);
        while i != NONE {
            let entry = &self.entries[i as usize];
            assert!(entry.is_used() && entry.start >= end && self.entries[entry.behind as usize].before == i);
            (end, placed, i) = (entry.words().end, placed + 1, entry.behind);
        }
        assert!(end <= self.header.arena && placed == self.header.placed);
        let members = self.members().bits();
        let mut found = 0;
        for (number, entry) in self.entries.iter().enumerate().skip(1).filter(|(_, entry)| entry.is_used()) {
            assert_eq!((entry.holders | entry.claims) & !members, 0, "only members hold and claim");
            assert_eq!(self.find(entry.digest, entry.page) == Some(number as u32), entry.state != DOOMED);
            assert!(entry.state != DOOMED || entry.is_pinned(), "what is doomed goes with its last pin");
            assert!(entry.state != MADE || entry.holders != 0, "somebody vouches");
            found += usize::from(entry.state != DOOMED);
        }
        let chained: usize = self.buckets.iter().map(|first| self.chain_len(*first, |entry| entry.chain)).sum();
        assert_eq!(chained, found);
        let free = self.chain_len(self.header.free, |entry| entry.chain);
        assert_eq!(free + self.contents().0, self.header.fresh as usize - 1, "no entry is lost");
    }

    fn chain_len(&self, first: u32, next: impl Fn(&Entry) -> u32) -> usize {
        let (mut i, mut len) = (first, 0);
        while i != NONE {
            (i, len) = (next(&self.entries[i as usize]), len + 1);
        }
        len
    }
}

#[test]
fn a_page_is_made_once_and_taken_by_all_who_decode_the_same() {
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    (0..3).for_each(|i| join(&mut store, i));
    store.join(job(3), OTHER, [3, 0]);
    assert_eq!(store.request(job(3), 5, true), Request::Absent, "nobody else decodes that");
    let Request::Make(ticket) = store.request(job(0), 5, true) else { panic!("it is there") };
    assert_eq!(store.request(job(1), 5, true), Request::Making);
    let words = store.allocate(&ticket, 100).unwrap();
    assert_eq!(words.end - words.start, 100);
    store.publish(ticket, JobSet::ALL);
    assert!(take(&mut store, 1, 5) && take(&mut store, 2, 5) && !take(&mut store, 3, 5));
    assert_eq!(store.counters(), Counters { made: 1, taken: 2, words_taken: 200, evicted: 0 });
    store.check();
}

#[test]
fn a_page_is_not_taken_if_its_maker_left_before_it_was_looked_at() {
    // between pin and confirm: the page is modified before the taker's snapshot, the maker leaves, VACUUM marks it
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    (0..2).for_each(|i| join(&mut store, i));
    make(&mut store, 0, 5, 10, JobSet::ALL).unwrap();
    let Request::Made(pin) = store.request(job(1), 5, true) else { panic!("it is not there") };
    store.leave(job(0));
    assert!(!confirm(&mut store, &pin));
    store.check();
    assert_eq!(store.contents().0, 1, "what is pinned stays");
    store.unpin(pin);
    assert_eq!(store.contents(), (0, 0));
}

#[test]
fn who_has_the_number_of_a_holder_does_not_vouch_for_him() {
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    (0..3).for_each(|i| join(&mut store, i));
    make(&mut store, 0, 5, 10, JobSet::ALL).unwrap();
    assert!(take(&mut store, 2, 5));
    let Request::Made(pin) = store.request(job(1), 5, true) else { panic!("it is not there") };
    store.leave(job(0));
    join(&mut store, 0);
    store.leave(job(2));
    assert!(!confirm(&mut store, &pin), "job 0 is another one");
    store.unpin(pin);
    store.check();
}

#[test]
fn whoever_has_verified_a_page_vouches_for_it_when_its_maker_is_gone() {
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    (0..3).for_each(|i| join(&mut store, i));
    make(&mut store, 0, 5, 10, JobSet::ALL).unwrap();
    assert!(take(&mut store, 1, 5));
    store.leave(job(0));
    assert!(take(&mut store, 2, 5));
    store.leave(job(1));
    store.leave(job(2));
    assert_eq!(store.contents(), (0, 0));
}

#[test]
fn who_has_given_up_his_snapshot_vouches_for_nothing() {
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    (0..2).for_each(|i| join(&mut store, i));
    make(&mut store, 0, 5, 10, JobSet::ALL).unwrap();
    assert!(!take_if(&mut store, 1, 5, set(&[1])));
    assert_eq!(store.request(job(0), 5, false), Request::Absent, "it is gone for all");
}

#[test]
fn a_page_that_was_modified_is_gone_for_all() {
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    (0..3).for_each(|i| join(&mut store, i));
    make(&mut store, 0, 5, 10, JobSet::ALL).unwrap();
    let Request::Made(first) = store.request(job(1), 5, true) else { panic!("it is not there") };
    let Request::Made(second) = store.request(job(2), 5, true) else { panic!("it is not there") };
    store.reject(&first);
    assert!(!confirm(&mut store, &second));
    store.unpin(first);
    store.check();
    store.unpin(second);
    assert_eq!(store.contents(), (0, 0));
}

#[test]
fn room_is_made_first_of_what_nobody_claims_and_then_of_what_the_stalled_job_claims() {
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    (0..3).for_each(|i| join(&mut store, i));
    let quarter = ARENA / 4;
    make(&mut store, 0, 0, quarter, set(&[1, 2])).unwrap();
    make(&mut store, 0, 1, quarter, set(&[2])).unwrap();
    make(&mut store, 0, 2, quarter, JobSet::default()).unwrap();
    make(&mut store, 0, 3, quarter, set(&[2])).unwrap();
    let there = |store: &PageStore| (0..8).filter(|page| store.find(DIGEST, *page).is_some()).collect::<Vec<_>>();
    make(&mut store, 0, 4, quarter, set(&[1])).unwrap();
    assert_eq!(there(&store), [0, 1, 3, 4], "page 2 was claimed by nobody");
    // job 2 claims three pages, job 1 two
    make(&mut store, 0, 5, quarter, set(&[1])).unwrap();
    assert_eq!(there(&store).len(), 4);
    assert!(there(&store).iter().all(|page| [0, 1, 3, 4, 5].contains(page)));
    assert!(there(&store).contains(&0) && there(&store).contains(&4), "what job 1 claims has stayed");
    store.check();
}

#[test]
fn what_is_pinned_is_not_freed_however_much_is_wanted() {
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    (0..2).for_each(|i| join(&mut store, i));
    make(&mut store, 0, 0, ARENA, JobSet::ALL).unwrap();
    let Request::Made(pin) = store.request(job(1), 0, true) else { panic!("it is not there") };
    assert_eq!(make(&mut store, 0, 1, 1, JobSet::ALL), None);
    assert!(confirm(&mut store, &pin));
    store.unpin(pin);
    assert!(make(&mut store, 0, 1, 1, JobSet::ALL).is_some());
    assert_eq!(make(&mut store, 0, 2, ARENA + 1, JobSet::ALL), None, "more than there is");
    store.check();
}

#[test]
fn there_may_be_more_pages_than_entries() {
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    (0..2).for_each(|i| join(&mut store, i));
    for page in 0..10_000 {
        make(&mut store, 0, page, 3, JobSet::default()).unwrap();
    }
    store.check();
    assert!(store.contents().0 <= store.header.entries as usize);
    assert!(take(&mut store, 1, 9_999));
}

#[test]
fn a_job_chooses_what_is_there_then_what_others_want_and_else_is_told_who_is_at_it() {
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    (0..3).for_each(|i| join(&mut store, i));
    let all = |_| JobSet::ALL;
    make(&mut store, 0, 7, 10, JobSet::ALL).unwrap();
    let (i, Request::Made(pin)) = store.choose(job(1), &[5, 6, 7], all) else { panic!("page 7 is there") };
    assert_eq!(i, 2);
    store.unpin(pin);
    let (i, Request::Make(five)) = store.choose(job(1), &[5, 6], all) else { panic!("page 5 is absent") };
    assert_eq!(i, 0);
    let (i, Request::Make(six)) = store.choose(job(2), &[5, 6], all) else { panic!("page 6 is absent") };
    assert_eq!(i, 1);
    assert_eq!(store.choose(job(0), &[5, 6], all), (0, Request::Making));
    assert_eq!(store.choose(job(0), &[5, 6, 8], |_| set(&[0])), (2, Request::Absent), "nobody else comes to page 8");
    store.abandon(five);
    store.abandon(six);
    store.leave(job(1));
    store.leave(job(2));
    assert_eq!(store.choose(job(0), &[7], all), (0, Request::Absent), "nobody else is there");
    store.check();
}

#[test]
fn who_says_goodbye_late_takes_nothing_from_the_next_with_his_number() {
    let mut index = books();
    let mut store = PageStore::open(&mut index);
    store.join(job(0), DIGEST, [17, 0]);
    store.join(job(1), DIGEST, [18, 0]);
    make(&mut store, 1, 5, 10, JobSet::ALL).unwrap();
    store.join(job(0), DIGEST, [19, 0]);
    let Request::Made(pin) = store.request(job(0), 5, true) else { panic!("it is not there") };
    store.leave_by(|witness| witness[0] == 17);
    assert_eq!(store.members(), set(&[0, 1]));
    assert!(confirm(&mut store, &pin), "the pin has stayed");
    store.unpin(pin);
    store.leave_by(|witness| witness[0] == 19);
    assert_eq!(store.members(), set(&[1]));
    store.check();
}

/// What may happen. Numbers are of jobs and pages.
#[derive(Debug, Clone, Copy)]
enum Event {
    Join(usize, bool),
    /// Comes to a page, or takes the next step on the way
    Step(usize, u32),
    /// Looks into the words that it has pinned
    Look(usize),
    Modify(u32),
    Vacuum(u32),
    /// Releases its snapshot, and only then leaves
    Abort(usize),
    Leave(usize),
}

const JOBS: usize = 4;
const PAGES: u32 = 3;

fn events() -> impl Strategy<Value = Vec<Event>> {
    let (job, page) = (0..JOBS, 0..PAGES);
    let event = prop_oneof![
        4 => (job.clone(), prop::bool::weighted(0.9)).prop_map(|(job, same)| Event::Join(job, same)),
        40 => (job.clone(), page.clone()).prop_map(|(job, page)| Event::Step(job, page)),
        2 => job.clone().prop_map(Event::Look),
        3 => page.clone().prop_map(Event::Modify),
        6 => page.prop_map(Event::Vacuum),
        1 => job.clone().prop_map(Event::Abort),
        1 => job.prop_map(Event::Leave),
    ];
    prop::collection::vec(event, 1..400)
}

/// How far a job has come with a page.
enum Way {
    Idle,
    /// is to make it: has read this version, at this time
    Making(Ticket, u32, u64),
    /// has pinned it
    Pinned(Pin, u32),
    /// has also seen that it is as it was
    Seen(Pin, u32),
    /// uses these words
    Using(Pin, u32),
}

struct Member {
    /// the time of its snapshot; None when it was released
    snapshot: Option<u64>,
    /// whether it decodes the same as most
    same: bool,
    way: Way,
}

struct World {
    time: u64,
    /// of each page: when it was modified, and whether it is marked as visible to all
    pages: Vec<(Vec<u64>, bool)>,
    members: Vec<Option<Member>>,
    arena: Vec<u64>,
    taken: usize,
}

impl World {
    /// The version of a page that a snapshot of this time sees.
    fn version(&self, page: u32, time: u64) -> u64 {
        self.pages[page as usize].0.iter().filter(|modified| **modified <= time).count() as u64
    }

    fn alive(&self) -> JobSet {
        let with_snapshot = |i: &usize| self.members[*i].as_ref().is_some_and(|member| member.snapshot.is_some());
        (0..JOBS).filter(with_snapshot).map(job).collect()
    }

    fn vacuum(&mut self, page: u32) {
        let snapshots = self.members.iter().flatten().filter_map(|member| member.snapshot);
        let last = self.pages[page as usize].0.last().copied().unwrap_or(0);
        self.pages[page as usize].1 |= snapshots.min().is_none_or(|oldest| last <= oldest);
    }

    /// What a page of this version is decoded to.
    fn word(page: u32, version: u64, same: bool) -> u64 {
        u64::from(page) << 40 | version << 8 | u64::from(same)
    }

    fn step(&mut self, store: &mut PageStore, number: usize, page: u32) {
        let Some(mut member) = self.members[number].take() else { return };
        let Some(snapshot) = member.snapshot else {
            self.members[number] = Some(member);
            return;
        };
        member.way = match member.way {
            Way::Idle => match store.request(job(number), page, true) {
                Request::Made(pin) => Way::Pinned(pin, page),
                Request::Make(ticket) => Way::Making(ticket, page, self.version(page, snapshot)),
                Request::Making | Request::Absent => Way::Idle,
            },
            Way::Making(ticket, page, version) => {
                let words = 3 + u64::from(page) * ARENA / 4;
                match store.allocate(&ticket, words).filter(|_| self.pages[page as usize].1) {
                    Some(place) => {
                        let word = World::word(page, version, member.same);
                        self.arena[place.start as usize..place.end as usize].fill(word);
                        store.publish(ticket, JobSet::ALL);
                    }
                    None => store.abandon(ticket),
                }
                Way::Idle
            }
            Way::Pinned(pin, page) if self.pages[page as usize].1 => Way::Seen(pin, page),
            Way::Pinned(pin, _) => {
                store.reject(&pin);
                store.unpin(pin);
                Way::Idle
            }
            Way::Seen(pin, page) => {
                let mut alive = self.alive();
                alive.insert(job(number)); // which is not among them just now
                if store.confirm(&pin, |witness| alive.bits() >> witness[0] & 1 == 1) {
                    Way::Using(pin, page)
                } else {
                    store.unpin(pin);
                    Way::Idle
                }
            }
            Way::Using(pin, _) => {
                store.unpin(pin);
                self.taken += 1;
                Way::Idle
            }
        };
        self.members[number] = Some(member);
    }

    /// What a job uses must be what its snapshot sees.
    fn look(&self, number: usize) {
        let Some(Member { snapshot: Some(snapshot), same, way: Way::Using(pin, page) }) = &self.members[number] else {
            return;
        };
        let expected = World::word(*page, self.version(*page, *snapshot), *same);
        let words = &self.arena[pin.words.start as usize..pin.words.end as usize];
        assert!(words.iter().all(|word| *word == expected), "page {page} as job {number} sees it");
    }

    fn event(&mut self, store: &mut PageStore, event: Event) {
        self.time += 1;
        match event {
            Event::Join(number, same) if self.members[number].is_none() => {
                store.join(job(number), if same { DIGEST } else { OTHER }, [number as u64, 0]);
                self.members[number] = Some(Member { snapshot: Some(self.time), same, way: Way::Idle });
            }
            Event::Join(..) => {}
            Event::Step(number, page) => self.step(store, number, page),
            Event::Look(number) => self.look(number),
            Event::Modify(page) => {
                let (modified, visible) = &mut self.pages[page as usize];
                modified.push(self.time);
                *visible = false;
            }
            Event::Vacuum(page) => self.vacuum(page),
            Event::Abort(number) => self.members[number].iter_mut().for_each(|member| member.snapshot = None),
            Event::Leave(number) => {
                if self.members[number].take().is_some() {
                    store.leave(job(number));
                }
            }
        }
    }
}

fn run(events: &[Event]) -> usize {
    let mut index = books();
    let mut world = World {
        time: 0,
        pages: vec![(Vec::new(), true); PAGES as usize],
        members: (0..JOBS).map(|_| None).collect(),
        arena: vec![0; ARENA as usize],
        taken: 0,
    };
    for event in events {
        let mut store = PageStore::open(&mut index);
        world.event(&mut store, *event);
        store.check();
        (0..JOBS).for_each(|number| world.look(number));
    }
    let mut store = PageStore::open(&mut index);
    (0..JOBS).for_each(|number| store.leave(job(number)));
    store.check();
    assert_eq!(store.contents(), (0, 0), "nothing is left when all have left");
    world.taken
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn whatever_happens_each_job_takes_what_its_snapshot_sees_and_nothing_leaks(events in events()) {
        run(&events);
    }
}

#[test]
fn the_model_does_take_pages() {
    // lest the property hold because nothing happens
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let taken: usize = (0..200).map(|_| run(&events().new_tree(&mut runner).unwrap().current())).sum();
    assert!(taken > 300, "{taken} pages were taken");
}
