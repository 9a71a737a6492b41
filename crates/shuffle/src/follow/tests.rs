//! Boards in one process, with jobs by turns and in threads.

use super::*;
use std::collections::BTreeSet;

#[derive(Default)]
struct Memory {
    needs: Vec<AtomicU64>,
    recent: Vec<AtomicU64>,
    drawn: AtomicU64,
    members: AtomicU64,
}

impl Memory {
    fn new(elements: usize, window: usize) -> Self {
        let zeros = |n| (0..n).map(|_| AtomicU64::new(0)).collect();
        Self { needs: zeros(elements), recent: zeros(window), ..Self::default() }
    }

    fn board(&self) -> Board<'_> {
        Board { needs: &self.needs, recent: &self.recent, drawn: &self.drawn, members: &self.members }
    }
}

fn begun(number: usize, board: &Board<'_>, elements: impl ExactSizeIterator<Item = u32> + Clone) -> Follower {
    let mut follower = Follower::new(Job::new(number).unwrap());
    follower.begin_epoch(board, elements).unwrap();
    follower
}

#[test]
fn jobs_in_several_threads_draw_each_of_their_elements_once() {
    let memory = Memory::new(900, 16);
    let epochs_of = |number: usize| {
        let (board, mut follower) = (memory.board(), Follower::new(Job::new(number).unwrap()));
        for _ in 0..20 {
            // a part of them is beyond the board
            let wanted = number as u32 * 50..1000 - number as u32;
            follower.begin_epoch(&board, wanted.clone()).unwrap();
            let drawn: Vec<u32> = std::iter::from_fn(|| follower.draw(&board)).map(|draw| draw.element).collect();
            assert_eq!(drawn.len(), wanted.len());
            assert_eq!(drawn.into_iter().collect::<BTreeSet<_>>(), wanted.collect());
        }
        board.leave(Job::new(number).unwrap());
    };
    std::thread::scope(|scope| {
        (0..8).for_each(|number| drop(scope.spawn(move || epochs_of(number))));
    });
    assert_eq!(memory.members.load(Relaxed), 0);
    assert!(memory.needs.iter().all(|needs| needs.load(Relaxed) == 0));
}

#[test]
fn a_job_follows_the_last_one_that_it_needs() {
    let memory = Memory::new(10, 3);
    let board = memory.board();
    let (mut first, mut second) = (begun(0, &board, 0..10), begun(1, &board, 0..10));
    let drawn: Vec<u32> = (0..5).map(|_| first.draw(&board).unwrap().element).collect();
    // the first two are no longer among the last three
    for element in [drawn[4], drawn[3], drawn[2]] {
        assert_eq!(second.draw(&board), Some(Followed { element, followed: true }));
    }
    let fresh = second.draw(&board).unwrap();
    assert!(!fresh.followed && !drawn[2..].contains(&fresh.element));
    assert_eq!(memory.drawn.load(Relaxed), 6);
}

#[test]
fn what_an_idle_job_needs_is_drawn_before_and_what_a_busy_one_needs_after() {
    let memory = Memory::new(30, 8);
    let board = memory.board();
    let mut fast = begun(0, &board, (0..30).rev());
    let mut slow = begun(1, &board, 0..10);
    let two: Vec<u32> = (0..2).map(|_| fast.draw(&board).unwrap().element).collect();
    assert_eq!(two, [9, 8], "the slow one has nothing to follow");
    let others: Vec<u32> = (0..4).map(|_| fast.draw(&board).unwrap().element).collect();
    assert_eq!(others, [29, 28, 27, 26], "it has two to follow");
    assert_eq!(slow.draw(&board), Some(Followed { element: 8, followed: true }));
    assert_eq!(fast.draw(&board), Some(Followed { element: 7, followed: false }));
}

#[test]
fn alone_a_job_draws_in_its_own_order_in_every_epoch() {
    for window in [0, 3, 10, 64] {
        let memory = Memory::new(12, window);
        let board = memory.board();
        let mut job = Follower::new(Job::new(0).unwrap());
        for epoch in 0..20_u32 {
            // a part of the elements, in another order each time
            let order = (0..10 - epoch % 3).map(|i| (7 * i + epoch) % 12).collect::<BTreeSet<_>>();
            let order: Vec<u32> = order.into_iter().map(|element| (5 * element + epoch) % 12).collect();
            job.begin_epoch(&board, order.iter().copied()).unwrap();
            let drawn: Vec<u32> = std::iter::from_fn(|| job.draw(&board)).map(|draw| draw.element).collect();
            assert_eq!(drawn, order, "a ring of {window}, epoch {epoch}");
        }
    }
}

#[test]
fn a_job_that_has_left_is_drawn_for_no_more() {
    let memory = Memory::new(40, 8);
    let board = memory.board();
    let mut fast = begun(0, &board, 0..40);
    drop(begun(1, &board, 0..3));
    board.leave(Job::new(1).unwrap());
    assert_eq!(memory.members.load(Relaxed), 1);
    assert_eq!(memory.needs[0].load(Relaxed), 1);
    assert!((0..40).all(|_| fast.draw(&board).is_some()));
    assert_eq!(fast.draw(&board), None);
}

/// Draws that followed no one, of jobs that begin at these rounds, draw in every so manieth, and have this many
/// epochs.
fn read(jobs: &[(u64, u64, u32)], elements: u32, window: usize) -> u64 {
    let memory = Memory::new(elements as usize, window);
    let board = memory.board();
    let mut running: Vec<_> = jobs.iter().map(|job| (Follower::new(Job::new(0).unwrap()), *job)).collect();
    for round in 0.. {
        let mut all_done = true;
        for (number, (follower, (begins, every, epochs))) in running.iter_mut().enumerate() {
            if follower.remaining() == 0 && *epochs > 0 && round >= *begins {
                *follower = Follower::new(Job::new(number).unwrap());
                follower.begin_epoch(&board, 0..elements).unwrap();
                *epochs -= 1;
            }
            if (round - (*begins).min(round)).is_multiple_of(*every) {
                follower.draw(&board);
            }
            all_done &= *epochs == 0 && follower.remaining() == 0;
        }
        if all_done {
            break;
        }
    }
    memory.drawn.load(Relaxed)
}

#[test]
fn jobs_that_begin_at_different_moments_read_once_per_lap() {
    let quarters = [(0, 1, 3), (250, 1, 3), (500, 1, 3), (750, 1, 3)];
    assert!((3740..=3750).contains(&read(&quarters, 1000, 4)), "{}", read(&quarters, 1000, 4));
}

#[test]
fn slow_jobs_find_most_of_what_they_need_where_fast_ones_are() {
    let speeds = [(0, 1, 4), (0, 2, 2), (0, 4, 1)];
    let reads = read(&speeds, 1000, 10);
    assert!((4000..4400).contains(&reads), "{reads} of 4000 that the fastest needs, and 7000 of all alone");
}

#[test]
fn a_damaged_ring_leads_to_no_element_that_is_not_there() {
    let memory = Memory::new(10, 4);
    let board = memory.board();
    let mut job = begun(0, &board, 3..7);
    for damage in [u64::MAX, 1, 5, 1000] {
        board.recent.iter().for_each(|recent| recent.store(damage, Relaxed));
        board.drawn.store(u64::MAX - 1, Relaxed);
        assert!((3..7).contains(&job.draw(&board).unwrap().element));
    }
    assert_eq!(job.draw(&board), None);
}
