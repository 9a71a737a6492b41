//! Counts reads of cached elements under all samplers and policies, for `make study ONLY=joader`: prints CSV.
//!
//!     cargo run --release -p joader --example study -- SEEDS
//!
//! A *scene* is a list of jobs, each with its elements, the tick at which it begins, its speed and its epochs. Each
//! line has mean, standard deviation, least and most over the seeds of one figure:
//!
//! - `misses`: how often an element was read in all, with a cache of that size and policy; `ticks` is empty
//! - `window`: the same of the jobs' draws up to the tick, from the line before on; only with RefCnt

use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::ops::Range;

use joader::{
    Cache, Dependent, Draw, ElementSet, Fifo, Follow, Independent, Job, JobSet, Lru, Meeting, MinIo, Optimum, Policy,
    RefCnt, Replacement, Sampler, Walk,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use shuffle::{SHARED, below, stream};

const SIZES: [usize; 17] =
    [1, 100, 250, 500, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 7000, 7500, 8000, 9000, 10_000];
/// Blocks of a table, as the database will draw them, and how many are kept.
const BLOCK_SIZES: [usize; 7] = [1, 10, 50, 100, 200, 300, 500];
/// The same parts of tables of 10,000.
const COURSE_SIZES: [usize; 7] = [1, 100, 500, 1000, 2000, 3000, 5000];
/// How many draws back `follow` goes, as the database has it: a fifth of a table's blocks.
const FOLLOWED: usize = 5;
/// The part of the elements that a job draws at a stretch, if it draws a buffer at a time: a tenth.
const BUFFERS: u32 = 10;
/// How many windows a course has.
const WINDOWS: u64 = 60;
/// What a course is watched with.
const WATCHED: usize = 1000;
const SAMPLERS: [&str; 5] = ["dependent", "by vertex", "independent", "walk", "follow"];
const POLICIES: [&str; 6] = ["RefCnt", "LRU", "FIFO", "random", "MinIO", "optimum"];

fn main() -> Result<(), Box<dyn Error>> {
    let seeds: i64 = std::env::args().nth(1).ok_or("usage: study SEEDS")?.parse()?;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "kind,scene,sampler,policy,cache,ticks,mean,deviation,least,most,draws,union")?;
    for scene in scenes() {
        for sampler in SAMPLERS {
            let runs: Vec<Trace> = (0..seeds).map(|seed| scene.run(sampler, seed)).collect::<Result<_, _>>()?;
            scene.write_misses(sampler, &runs, &mut out)?;
            if scene.is_course {
                scene.write_windows(sampler, &runs, &mut out)?;
            }
        }
        out.flush()?;
    }
    Ok(())
}

/// How a job's elements are chosen.
#[derive(Clone)]
enum Elements {
    Range(Range<u32>),
    /// This many of the first this many, at random.
    Sample(u32, u32),
}

#[derive(Clone)]
struct Member {
    elements: Elements,
    begins: u64,
    /// It draws in this many of `PACE` ticks.
    speed: u64,
    /// It draws so often at a stretch, and then rests as long: as if it learned from a buffer. 0: it never rests.
    buffer: u64,
    epochs: u32,
}

impl Member {
    /// Does it learn from its buffer, and draws nothing?
    fn rests(&self, tick: u64) -> bool {
        self.buffer > 0 && tick >= self.begins && (tick - self.begins) / self.buffer % 2 == 1
    }
}

/// Ticks in which the fastest jobs draw as often.
const PACE: u64 = 12;

struct Scene {
    name: String,
    members: Vec<Member>,
    sizes: &'static [usize],
    /// All jobs end at this tick.
    ends: u64,
    is_course: bool,
}

fn member(range: Range<u32>) -> Member {
    Member { elements: Elements::Range(range), begins: 0, speed: PACE, buffer: 0, epochs: 1 }
}

fn scene(name: &str, members: Vec<Member>) -> Scene {
    Scene { name: name.into(), members, sizes: &SIZES, ends: u64::MAX, is_course: false }
}

/// Table 1 of the appendix, Figures 2, 3a and 3b, and tables of 1000 blocks.
fn scenes() -> Vec<Scene> {
    let two = |a: Range<u32>, b: Range<u32>| vec![member(a), member(b)];
    let sampled = Member { elements: Elements::Sample(10_000, 13_333), ..member(0..1) };
    let mut scenes = vec![
        scene("intersection 100%", two(0..10_000, 0..10_000)),
        scene("intersection 75%", two(0..10_000, 2500..12_500)),
        scene("intersection 50%", two(0..10_000, 5000..15_000)),
        scene("intersection 25%", two(0..10_000, 7500..17_500)),
        scene("size 75%", two(0..10_000, 0..7500)),
        scene("size 50%", two(0..10_000, 0..5000)),
        scene("size 25%", two(0..10_000, 0..2500)),
        scene("4 samples", vec![sampled; 4]),
        scene("4 sizes", [10_000, 7500, 5000, 2500].map(|n| member(0..n)).to_vec()),
    ];
    scenes.extend(courses("", 10_000, &COURSE_SIZES));
    scenes.extend(courses(" of 1000 blocks", 1000, &BLOCK_SIZES));
    scenes
}

/// Jobs that go on for several epochs of a table of this many elements.
fn courses(what: &str, n: u32, sizes: &'static [usize]) -> Vec<Scene> {
    let jobs = |k: u32, epochs: u32| vec![Member { epochs, ..member(0..n) }; k as usize];
    let quarter = u64::from(n / 4);
    let mut staggered = jobs(4, 3);
    staggered.iter_mut().zip(0..).for_each(|(job, k)| job.begins = k * quarter);
    let mut speeds = jobs(3, u32::MAX);
    speeds.iter_mut().zip([PACE, PACE / 2, PACE / 4]).for_each(|(job, speed)| job.speed = speed);
    let mut five = jobs(5, u32::MAX);
    five.iter_mut().zip([12, 9, 6, 4, 3]).for_each(|(job, speed)| job.speed = speed);
    // each leaves another tenth out
    let filters: Vec<Member> =
        (0..4).map(|_| Member { elements: Elements::Sample(n / 10 * 9, n), epochs: 2, ..member(0..1) }).collect();
    let mut buffers = jobs(4, 2);
    let buffer = u64::from(n / BUFFERS);
    buffers.iter_mut().zip(0..).for_each(|(job, k)| (job.buffer, job.begins) = (buffer, k * buffer * 7 / 10));
    let course = |name: &str, members, ends| {
        let is_course = what.is_empty();
        Scene { sizes, ends, is_course, ..scene(&format!("{name}{what}"), members) }
    };
    vec![
        course("4 equal jobs", jobs(4, 2), u64::MAX),
        course("4 staggered jobs", staggered, u64::MAX),
        course("speeds 1:2:4", speeds, 4 * u64::from(n)),
        course("5 speeds", five, 4 * u64::from(n)),
        course("4 filters", filters, u64::MAX),
        course("4 by buffers", buffers, u64::MAX),
    ]
}

/// What happens to a cache, in a row.
enum Event {
    /// An element was drawn, and this many others have still to draw it.
    Request(u32, u8),
    /// This many have still to draw it, because an epoch has begun.
    Expect(u32, u8),
    /// All of this many ticks have been.
    Tick(u64),
}

#[derive(Default)]
struct Trace {
    events: Vec<Event>,
    draws: u64,
    union: u64,
}

impl Scene {
    /// All that the jobs draw with this seed. Their sets depend on it, too, but not on the sampler.
    fn run(&self, sampler: &str, seed: i64) -> Result<Trace, Box<dyn Error>> {
        let mut rng = stream(SHARED, seed, 1, 0);
        let sets = self.members.iter().map(|member| set(&member.elements, &mut rng));
        let sets: Vec<ElementSet> = sets.collect::<Result<_, _>>()?;
        let span = sets.iter().map(|set| set.span().end).max().unwrap_or(0);
        let (mut wanted, mut trace) = (vec![0_u8; span as usize], Trace::default());
        let mut is_in_union = vec![false; span as usize];
        sets.iter().flat_map(ElementSet::iter).for_each(|element| is_in_union[element as usize] = true);
        trace.union = is_in_union.iter().filter(|is_in| **is_in).count() as u64;
        let mut sampler = sampler_of(sampler, seed, span)?;
        let mut jobs: Vec<Option<(Job, u32)>> = vec![None; sets.len()];
        let (mut draws, mut tick): (Vec<Draw>, u64) = (Vec::new(), 0);
        while tick < self.ends {
            let mut active = JobSet::default();
            for ((member, set), job) in self.members.iter().zip(&sets).zip(&mut jobs) {
                let begins = match job {
                    None if tick >= member.begins => {
                        *job = Some((sampler.join(set.clone())?, 1));
                        true
                    }
                    Some((job, epochs)) if sampler.remaining(*job) == 0 && *epochs < member.epochs => {
                        *epochs += 1;
                        sampler.begin_epoch(*job)?;
                        true
                    }
                    _ => false,
                };
                if begins {
                    for element in set.iter() {
                        wanted[element as usize] += 1;
                        trace.events.push(Event::Expect(element, wanted[element as usize]));
                    }
                }
                let draws_now = (tick + 1) * member.speed / PACE > tick * member.speed / PACE && !member.rests(tick);
                if let Some((job, _)) = job.filter(|_| draws_now) {
                    active.insert(job);
                }
            }
            sampler.round(active, &mut draws);
            trace.record(&draws, &mut wanted);
            tick += 1;
            trace.events.push(Event::Tick(tick));
            let is_done = |job: &Option<(Job, u32)>, member: &Member| {
                job.is_some_and(|(job, epochs)| epochs == member.epochs && sampler.remaining(job) == 0)
            };
            if jobs.iter().zip(&self.members).all(|(job, member)| is_done(job, member)) {
                break;
            }
        }
        Ok(trace)
    }

    fn write_misses(&self, sampler: &str, runs: &[Trace], out: &mut impl Write) -> io::Result<()> {
        for policy in POLICIES {
            for &size in self.sizes {
                let misses = runs.iter().zip(0..).map(|(run, seed)| run.misses(policy, size, seed));
                let misses: Vec<f64> = misses.map(|windows| windows.iter().sum::<u64>() as f64).collect();
                self.write("misses", sampler, policy, size, None, &misses, runs, out)?;
            }
        }
        Ok(())
    }

    fn write_windows(&self, sampler: &str, runs: &[Trace], out: &mut impl Write) -> io::Result<()> {
        let of_runs: Vec<Vec<u64>> = runs.iter().map(|run| run.misses("RefCnt", WATCHED, 0)).collect();
        let window = runs[0].window();
        for at in 0..of_runs[0].len() {
            let misses: Vec<f64> = of_runs.iter().map(|windows| windows[at] as f64).collect();
            let until = Some((at as u64 + 1) * window);
            self.write("window", sampler, "RefCnt", WATCHED, until, &misses, runs, out)?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "they are the columns")]
    fn write(
        &self,
        kind: &str,
        sampler: &str,
        policy: &str,
        size: usize,
        until: Option<u64>,
        values: &[f64],
        runs: &[Trace],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        let of_runs = |of: fn(&Trace) -> u64| runs.iter().map(of).sum::<u64>() as f64 / n;
        let (draws, union) = (of_runs(|run| run.draws), of_runs(|run| run.union));
        let until = until.map(|until| until.to_string()).unwrap_or_default();
        writeln!(
            out,
            "{kind},{},{sampler},{policy},{size},{until},{mean:.1},{deviation:.1},{least},{most},{draws:.1},{union:.1}",
            self.name
        )
    }
}

fn set(elements: &Elements, rng: &mut Xoshiro256PlusPlus) -> Result<ElementSet, joader::SamplerError> {
    match *elements {
        Elements::Range(ref range) => ElementSet::from_ranges([range.clone()]),
        Elements::Sample(n, of) => {
            let mut all: Vec<u32> = (0..of).collect();
            for place in 0..n as usize {
                let other = place + below(rng, of as usize - place);
                all.swap(place, other);
            }
            ElementSet::from_ranges(all[..n as usize].iter().map(|&element| element..element + 1))
        }
    }
}

fn sampler_of(name: &str, seed: i64, elements: u32) -> Result<Box<dyn Sampler>, joader::SamplerError> {
    Ok(match name {
        "dependent" => Box::new(Dependent::new(seed, Meeting::Intersection)?),
        "by vertex" => Box::new(Dependent::new(seed, Meeting::Vertex)?),
        "independent" => Box::new(Independent::new(seed)),
        "walk" => Box::new(Walk::new(seed)),
        _ => Box::new(Follow::new(seed, (elements as usize / FOLLOWED).max(1))?),
    })
}

impl Trace {
    /// An element that several draw in a round is asked for once.
    fn record(&mut self, draws: &[Draw], wanted: &mut [u8]) {
        self.draws += draws.len() as u64;
        draws.iter().for_each(|draw| wanted[draw.element as usize] -= 1);
        for (place, draw) in draws.iter().enumerate() {
            if draws[..place].iter().all(|earlier| earlier.element != draw.element) {
                self.events.push(Event::Request(draw.element, wanted[draw.element as usize]));
            }
        }
    }

    fn ticks(&self) -> u64 {
        self.events.iter().filter(|event| matches!(event, Event::Tick(_))).count() as u64
    }

    /// Ticks of a window.
    fn window(&self) -> u64 {
        self.ticks().div_ceil(WINDOWS)
    }

    /// Misses of each window.
    fn misses(&self, policy: &str, size: usize, seed: i64) -> Vec<u64> {
        match policy {
            "RefCnt" => self.replay(size, RefCnt::default()),
            "LRU" => self.replay(size, Lru::default()),
            "FIFO" => self.replay(size, Fifo::default()),
            "random" => self.replay(size, Replacement::new(seed)),
            "MinIO" => self.replay(size, MinIo),
            _ => {
                let requests = self.events.iter().filter_map(|event| match event {
                    Event::Request(element, _) => Some(*element),
                    _ => None,
                });
                self.replay(size, Optimum::new(&requests.collect::<Vec<_>>()))
            }
        }
    }

    fn replay(&self, size: usize, policy: impl Policy) -> Vec<u64> {
        let (window, mut cache, mut windows, mut before) = (self.window(), Cache::new(size, policy), Vec::new(), 0);
        for event in &self.events {
            match *event {
                Event::Request(element, to_come) => {
                    cache.request(element, JobSet::default(), to_come.into());
                }
                Event::Expect(element, to_come) => cache.expect(element, to_come.into()),
                Event::Tick(tick) => {
                    if tick.is_multiple_of(window) {
                        windows.push(cache.hits_and_misses().1 - before);
                        before = cache.hits_and_misses().1;
                    }
                }
            }
        }
        windows.push(cache.hits_and_misses().1 - before);
        windows
    }
}
