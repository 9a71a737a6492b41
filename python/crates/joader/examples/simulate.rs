//! Reads an event log, one JSON object a line, and prints what jobs draw: the sampler, seen from outside.
//!
//!     cargo run --release -p joader --example simulate -- [--sampler dependent|independent|walk|follow] [FILE]
//!
//! Without a file, or with `-`, it reads standard input. Events:
//!
//!     {"seed": 1}                                the seed, once, before anything else; 0 if it is not there
//!     {"join": "a", "ranges": [[0, 10000]]}      a job joins with these elements: half-open ranges, several allowed
//!     {"step": 5000}                             this many rounds, in each of which each job that is not done draws
//!     once
//!     {"epoch": "a"}                             a begins its next epoch; what was left of the one before is dropped
//!     {"leave": "a"}                             a leaves
//!
//! `follow` follows what was drawn last, and nothing before it.
//!
//! It prints a line per round in which anybody draws, `{"round": 17, "draws": {"a": 123, "b": 123}}`, with jobs in the
//! order of their numbers (the lowest that was free when they joined), and `{"done": "a"}` after a job's last element,
//! or at once if it has none. Rounds count from 1, those without a draw too. An error names the line, and is exit
//! status 1.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::ops::Range;
use std::process::ExitCode;

use joader::{Dependent, Draw, ElementSet, Follow, Independent, Job, JobSet, Meeting, Sampler, SamplerError, Walk};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

const USAGE: &str = "usage: simulate [--sampler dependent|independent|walk|follow] [FILE]";

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("simulate: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let result = arguments.open().and_then(|input| Simulation::new(arguments.kind, &mut out).run(input));
    // also what was drawn before an error
    let flushed = out.flush().map_err(Failure::Output);
    match result.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        // anyone who reads has seen enough
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("simulate: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Why it ended early.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("line {0}: {1}")]
    Line(usize, String),
    #[error("{0}: {1}")]
    Input(String, io::Error),
    #[error("output: {0}")]
    Output(io::Error),
}

#[derive(Clone, Copy)]
enum Kind {
    Dependent,
    Independent,
    Walk,
    Follow,
}

impl Kind {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "dependent" => Ok(Self::Dependent),
            "independent" => Ok(Self::Independent),
            "walk" => Ok(Self::Walk),
            "follow" => Ok(Self::Follow),
            _ => Err(format!("there is no sampler {name:?}: it is dependent, independent, walk or follow")),
        }
    }

    fn sampler(self, seed: i64) -> Result<Box<dyn Sampler>, SamplerError> {
        Ok(match self {
            Self::Dependent => Box::new(Dependent::new(seed, Meeting::Intersection)?),
            Self::Independent => Box::new(Independent::new(seed)),
            Self::Walk => Box::new(Walk::new(seed)),
            Self::Follow => Box::new(Follow::new(seed, 1)?),
        })
    }
}

struct Arguments {
    kind: Kind,
    file: Option<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self { kind: Kind::Dependent, file: None };
        while let Some(word) = words.next() {
            if word == "--sampler" {
                arguments.kind = Kind::parse(&words.next().ok_or("--sampler wants a name")?)?;
            } else if let Some(name) = word.strip_prefix("--sampler=") {
                arguments.kind = Kind::parse(name)?;
            } else if word.starts_with('-') && word != "-" {
                return Err(format!("there is no option {word}"));
            } else if arguments.file.replace(word).is_some() {
                return Err("only one file can be read".into());
            }
        }
        arguments.file = arguments.file.filter(|file| file != "-");
        Ok(arguments)
    }

    fn open(&self) -> Result<Box<dyn BufRead>, Failure> {
        let Some(file) = &self.file else { return Ok(Box::new(io::stdin().lock())) };
        let opened = File::open(file).map_err(|error| Failure::Input(file.clone(), error))?;
        Ok(Box::new(BufReader::new(opened)))
    }
}

/// An event of the log.
enum Event {
    Seed(i64),
    Join(String, ElementSet),
    Step(u64),
    Epoch(String),
    Leave(String),
}

impl Event {
    fn parse(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
        let Value::Object(_) = value else { return Err(format!("{value} is not an object")) };
        let Fields(fields) = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let kinds = ["seed", "join", "step", "epoch", "leave"];
        let mut of_kind = kinds.into_iter().filter(|&kind| fields.contains_key(kind));
        let kind = of_kind.next().ok_or("an event has one of the fields seed, join, step, epoch and leave")?;
        let others = fields.keys().find(|&key| key != kind && !(kind == "join" && key == "ranges"));
        if let Some(other) = others {
            return Err(format!("an event with {kind:?} has no field {other:?}"));
        }
        Ok(match kind {
            "seed" => Self::Seed(seed(&fields[kind])?),
            "join" => Self::Join(name(&fields, kind)?, elements(&fields)?),
            "step" => Self::Step(fields[kind].as_u64().ok_or("\"step\" wants a number of rounds, 0 or more")?),
            "epoch" => Self::Epoch(name(&fields, kind)?),
            _ => Self::Leave(name(&fields, kind)?),
        })
    }
}

/// The fields of an event, each of which is there once.
struct Fields(Map<String, Value>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Fields, A::Error> {
                let mut fields = Map::new();
                while let Some((name, value)) = from.next_entry::<String, Value>()? {
                    if fields.contains_key(&name) {
                        return Err(A::Error::custom(format!("the field {name:?} is there twice")));
                    }
                    fields.insert(name, value);
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(Each)
    }
}

fn seed(value: &Value) -> Result<i64, String> {
    let seed = value.as_i64().or_else(|| value.as_u64().map(u64::cast_signed));
    seed.ok_or_else(|| format!("\"seed\" wants a whole number of 64 bits, not {value}"))
}

fn name(fields: &Map<String, Value>, kind: &str) -> Result<String, String> {
    let name = fields[kind].as_str().map(String::from);
    name.ok_or_else(|| format!("{kind:?} wants the name of a job, not {}", fields[kind]))
}

fn elements(fields: &Map<String, Value>) -> Result<ElementSet, String> {
    let ranges = fields.get("ranges").ok_or("\"join\" wants \"ranges\", such as [[0, 10000]]")?;
    let ranges =
        ranges.as_array().ok_or_else(|| format!("\"ranges\" wants a list such as [[0, 10000]], not {ranges}"))?;
    let ranges = ranges.iter().map(range).collect::<Result<Vec<_>, _>>()?;
    ElementSet::from_ranges(ranges).map_err(|error| error.to_string())
}

fn range(value: &Value) -> Result<Range<u32>, String> {
    let bounds = value.as_array().and_then(|bounds| match &bounds[..] {
        [from, until] => Some((from.as_u64()?, until.as_u64()?)),
        _ => None,
    });
    let (from, until) = bounds.ok_or_else(|| format!("a range is two numbers, 0 or more, not {value}"))?;
    if from > until {
        return Err(format!("the range {value} ends before it begins"));
    }
    let bound =
        |bound| u32::try_from(bound).map_err(|_| format!("a range ends at {} at most, not at {until}", u32::MAX));
    Ok(bound(from)?..bound(until)?)
}

/// The state between two events.
struct Simulation<'a, W> {
    kind: Kind,
    /// Made by the first event that is not the seed.
    sampler: Option<Box<dyn Sampler>>,
    seed: Option<i64>,
    jobs: Vec<(String, Job)>,
    /// What a job's draw is printed after, by the job's number.
    keys: Vec<String>,
    active: JobSet,
    rounds: u64,
    draws: Vec<Draw>,
    out: &'a mut W,
}

impl<'a, W: Write> Simulation<'a, W> {
    fn new(kind: Kind, out: &'a mut W) -> Self {
        let (sampler, seed, jobs, keys, draws) = (None, None, Vec::new(), Vec::new(), Vec::new());
        Self { kind, sampler, seed, jobs, keys, active: JobSet::default(), rounds: 0, draws, out }
    }

    fn run(mut self, input: impl BufRead) -> Result<(), Failure> {
        for (number, line) in (1..).zip(input.lines()) {
            let at_line = |message| Failure::Line(number, message);
            let line = line.map_err(|error| at_line(error.to_string()))?;
            if !line.trim().is_empty() {
                let event = Event::parse(&line).map_err(at_line)?;
                self.apply(event).map_err(|failure| match failure {
                    Failure::Line(_, message) => at_line(message),
                    other => other,
                })?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Seed(_) if self.seed.is_some() || self.sampler.is_some() => {
                return Err(wrong("the seed comes once, before anything else"));
            }
            Event::Seed(seed) => self.seed = Some(seed),
            Event::Join(name, elements) => self.join(name, elements)?,
            Event::Step(rounds) => self.step(rounds)?,
            Event::Epoch(name) => {
                let job = self.job(&name)?;
                self.sampler()?.begin_epoch(job).map_err(wrong)?;
                self.begin(job)?;
            }
            Event::Leave(name) => {
                let job = self.job(&name)?;
                self.sampler()?.leave(job);
                self.active.remove(job);
                self.jobs.retain(|(_, other)| *other != job);
            }
        }
        Ok(())
    }

    fn sampler(&mut self) -> Result<&mut (dyn Sampler + 'static), Failure> {
        if self.sampler.is_none() {
            self.sampler = Some(self.kind.sampler(self.seed.unwrap_or(0)).map_err(wrong)?);
        }
        self.sampler.as_deref_mut().ok_or_else(|| wrong("there is no sampler"))
    }

    fn job(&self, name: &str) -> Result<Job, Failure> {
        let job = self.jobs.iter().find(|(of, _)| of == name).map(|&(_, job)| job);
        job.ok_or_else(|| wrong(format!("there is no job {name:?}")))
    }

    fn join(&mut self, name: String, elements: ElementSet) -> Result<(), Failure> {
        if self.job(&name).is_ok() {
            return Err(wrong(format!("there is a job {name:?} already")));
        }
        let job = self.sampler()?.join(elements).map_err(wrong)?;
        self.keys.resize(self.keys.len().max(job.number() + 1), String::new());
        self.keys[job.number()] = format!("{}: ", Value::from(name.as_str()));
        self.jobs.push((name, job));
        self.begin(job)
    }

    /// A job has an epoch before it.
    fn begin(&mut self, job: Job) -> Result<(), Failure> {
        self.active.insert(job);
        self.end_if_done(job)
    }

    fn end_if_done(&mut self, job: Job) -> Result<(), Failure> {
        if self.sampler()?.remaining(job) == 0 {
            self.active.remove(job);
            let name = self.keys[job.number()].trim_end_matches(": ");
            writeln!(self.out, "{{\"done\": {name}}}").map_err(Failure::Output)?;
        }
        Ok(())
    }

    fn step(&mut self, rounds: u64) -> Result<(), Failure> {
        let end = self.rounds.checked_add(rounds).ok_or_else(|| wrong("there are too many rounds to count"))?;
        while self.rounds < end && !self.active.is_empty() {
            self.rounds += 1;
            let (active, mut draws) = (self.active, std::mem::take(&mut self.draws));
            self.sampler()?.round(active, &mut draws);
            self.print(&draws).map_err(Failure::Output)?;
            for draw in &draws {
                self.end_if_done(draw.job)?;
            }
            self.draws = draws;
        }
        self.rounds = end;
        Ok(())
    }

    fn print(&mut self, draws: &[Draw]) -> io::Result<()> {
        write!(self.out, "{{\"round\": {}, \"draws\": {{", self.rounds)?;
        for (place, draw) in draws.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(self.out, "{comma}{}{}", self.keys[draw.job.number()], draw.element)?;
        }
        self.out.write_all(b"}}\n")
    }
}

/// Something is wrong with an event; [`Simulation::run`] knows its line.
fn wrong(message: impl ToString) -> Failure {
    Failure::Line(0, message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is printed, and the error.
    fn simulate(kind: &str, log: &str) -> (String, Option<String>) {
        let mut out = Vec::new();
        let result = Simulation::new(Kind::parse(kind).unwrap(), &mut out).run(log.as_bytes());
        (String::from_utf8(out).unwrap(), result.err().map(|failure| failure.to_string()))
    }

    fn printed(kind: &str, log: &str) -> Vec<Value> {
        let (out, error) = simulate(kind, log);
        assert_eq!(error, None);
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn each_round_is_a_line_and_so_is_the_end_of_a_job() {
        for kind in ["dependent", "independent", "walk", "follow"] {
            let log = r#"{"seed": 1}
                {"join": "a", "ranges": [[0, 2], [7, 8]]}
                {"join": "b \"2\"", "ranges": [[7, 8]]}

                {"step": 2}
                {"leave": "b \"2\""}
                {"step": 1000000000000}
                {"epoch": "a"}
                {"step": 3}"#;
            let lines = printed(kind, log);
            assert_eq!(lines[0]["round"], 1);
            assert_eq!(lines[0]["draws"]["b \"2\""], 7);
            assert_eq!(lines[1], serde_json::json!({"done": "b \"2\""}));
            assert_eq!(lines[2]["draws"].as_object().unwrap().len(), 1);
            assert_eq!(lines[4], serde_json::json!({"done": "a"}));
            // rounds without draws count
            assert_eq!(lines[5]["round"], 1_000_000_000_003_u64);
            assert_eq!((lines.len(), &lines[8]), (9, &lines[4]));
            for epoch in [[0, 2, 3], [5, 6, 7]] {
                let mut drawn: Vec<_> = epoch.map(|at: usize| lines[at]["draws"]["a"].as_u64().unwrap()).into();
                drawn.sort_unstable();
                assert_eq!(drawn, [0, 1, 7]);
            }
        }
    }

    #[test]
    fn the_same_log_gives_the_same_lines_and_another_seed_others() {
        let log =
            |seed: i64| format!("{{\"seed\": {seed}}}\n{{\"join\": \"a\", \"ranges\": [[0, 500]]}}\n{{\"step\": 500}}");
        for kind in ["dependent", "independent", "walk", "follow"] {
            assert_eq!(simulate(kind, &log(1)), simulate(kind, &log(1)));
            assert_ne!(simulate(kind, &log(1)), simulate(kind, &log(-1)));
            assert_eq!(simulate(kind, &log(0)), simulate(kind, log(0).split_once('\n').unwrap().1));
        }
    }

    #[test]
    fn jobs_of_one_set_print_one_element_and_a_job_without_any_is_done_at_once() {
        let log = r#"{"join": "a", "ranges": [[0, 90]]}
            {"join": "b", "ranges": [[80, 90], [0, 85]]}
            {"join": "nothing", "ranges": []}
            {"step": 90}"#;
        let lines = printed("dependent", log);
        assert_eq!(lines[0], serde_json::json!({"done": "nothing"}));
        assert!(lines[1..91].iter().all(|line| line["draws"]["a"] == line["draws"]["b"]));
        assert_eq!(lines.len(), 93);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let join = r#"{"join": "a", "ranges": [[0, 2]]}"#;
        for (line, message) in [
            ("{", "no JSON: EOF while parsing an object at line 1 column 1"),
            ("[1]", "[1] is not an object"),
            ("{}", "an event has one of the fields seed, join, step, epoch and leave"),
            (r#"{"step": 1, "step": 2}"#, "the field \"step\" is there twice at line 1 column 22"),
            (r#"{"step": 1, "jobs": 2}"#, "an event with \"step\" has no field \"jobs\""),
            (r#"{"step": 1, "seed": 2}"#, "an event with \"seed\" has no field \"step\""),
            (r#"{"step": -1}"#, "\"step\" wants a number of rounds, 0 or more"),
            (r#"{"step": 1.5}"#, "\"step\" wants a number of rounds, 0 or more"),
            (r#"{"seed": 1}"#, "the seed comes once, before anything else"),
            (r#"{"seed": 1.5}"#, "\"seed\" wants a whole number of 64 bits, not 1.5"),
            (join, "there is a job \"a\" already"),
            (r#"{"join": "b"}"#, "\"join\" wants \"ranges\", such as [[0, 10000]]"),
            (r#"{"join": 1, "ranges": []}"#, "\"join\" wants the name of a job, not 1"),
            (r#"{"join": "b", "ranges": 5}"#, "\"ranges\" wants a list such as [[0, 10000]], not 5"),
            (r#"{"join": "b", "ranges": [[0]]}"#, "a range is two numbers, 0 or more, not [0]"),
            (r#"{"join": "b", "ranges": [[-1, 2]]}"#, "a range is two numbers, 0 or more, not [-1,2]"),
            (r#"{"join": "b", "ranges": [[3, 2]]}"#, "the range [3,2] ends before it begins"),
            (r#"{"join": "b", "ranges": [[0, 4294967296]]}"#, "a range ends at 4294967295 at most, not at 4294967296"),
            (r#"{"epoch": "b"}"#, "there is no job \"b\""),
            (r#"{"leave": "b"}"#, "there is no job \"b\""),
        ] {
            let (out, error) = simulate("dependent", &format!("{join}\n{{\"step\": 1}}\n{line}\n{{\"step\": 1}}"));
            assert_eq!(error, Some(format!("line 3: {message}")));
            assert_eq!(out.lines().count(), 1, "{line}");
        }
    }

    #[test]
    fn a_65th_job_is_refused_until_another_has_left() {
        let join = |n: usize| format!("{{\"join\": \"{n}\", \"ranges\": [[0, 2]]}}\n");
        let mut log: String = (0..64).map(join).collect();
        log += "{\"leave\": \"7\"}\n";
        log += &join(64);
        assert_eq!(simulate("dependent", &log).1, None);
        let (_, error) = simulate("dependent", &(log + &join(65)));
        assert_eq!(error.unwrap(), "line 67: a sampler has at most 64 jobs at a time");
    }

    #[test]
    fn arguments_are_a_sampler_and_a_file() {
        let parse = |line: &str| Arguments::parse(line.split_whitespace().map(String::from));
        let parsed = parse("--sampler walk x.log").unwrap();
        assert!(matches!(parsed.kind, Kind::Walk) && parsed.file.as_deref() == Some("x.log"));
        assert!(matches!(parse("-").unwrap(), Arguments { kind: Kind::Dependent, file: None }));
        assert!(matches!(parse("--sampler=independent").unwrap().kind, Kind::Independent));
        for wrong in ["--sampler", "--sampler none", "--speed", "a b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
