//! What a draw costs: nanoseconds per draw are the reciprocal of the elements per second shown.
//!
//! *equal* jobs want everything, and always meet. *nested* ones want from all to half of it. *scattered* ones want each
//! a random half of it, so that no two elements are needed by the same jobs. Who is done begins its next epoch.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use joader::{Dependent, ElementSet, Job, JobSet, Meeting, Sampler};
use shuffle::{SHARED, below, stream};

/// Elements of a stretch that a scattered job wants as a whole, so that the largest sets are made in reasonable time.
const STRETCH: u32 = 64;

fn set(kind: &str, elements: u32, jobs: u32, job: u32) -> ElementSet {
    let mut rng = stream(SHARED, 1, 0, job.into());
    let stretches = (0..elements.div_ceil(STRETCH)).filter(|_| kind == "scattered" && below(&mut rng, 2) == 0);
    let stretches = stretches.map(|stretch| stretch * STRETCH..((stretch + 1) * STRETCH).min(elements));
    let all = (kind != "scattered").then(|| match kind {
        "nested" => 0..elements - (elements / 2 / jobs * job),
        _ => 0..elements,
    });
    ElementSet::from_ranges(stretches.chain(all)).expect("there is memory")
}

fn draws(c: &mut Criterion) {
    for kind in ["equal", "nested", "scattered"] {
        let mut group = c.benchmark_group(kind);
        for elements in [10_000, 1_000_000, 100_000_000] {
            for jobs in [1, 2, 8, 64] {
                group.throughput(Throughput::Elements(jobs.into()));
                group.bench_function(BenchmarkId::new(format!("{jobs} jobs"), elements), |b| {
                    let mut sampler = Dependent::new(1, Meeting::Intersection).expect("there is memory");
                    let join = |job| sampler.join(set(kind, elements, jobs, job)).expect("there is memory");
                    let members: Vec<Job> = (0..jobs).map(join).collect();
                    let mut draws = Vec::new();
                    b.iter(|| {
                        sampler.round(JobSet::ALL, &mut draws);
                        for &job in &members {
                            if sampler.remaining(job) == 0 {
                                sampler.begin_epoch(job).expect("it has joined");
                            }
                        }
                    });
                });
            }
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().without_plots();
    targets = draws
}
criterion_main!(benches);
