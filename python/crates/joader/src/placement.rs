//! Which node of a cluster reads an element (section E.4 of the paper's appendix).
//!
//! It guarantees that all jobs which have an element's node take it from there, whichever other nodes each of them has,
//! so that nothing is read on two nodes because jobs have different ones. It prevents what a single hash over each
//! job's own list of nodes does: lists that differ in one node agree on almost no element.
//!
//! An element is hashed twice. The first hash chooses among all nodes of the cluster. A job that does not have that
//! node hashes the element again, among its own nodes: these take equal parts of what went astray. With k of the
//! cluster's n nodes, each of a job's nodes gets 1/n + (n - k)/n · 1/k = 1/k of its elements.

use shuffle::SortKeys;

/// A cluster's nodes, numbered from 0.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    nodes: u32,
    first: SortKeys,
    second: SortKeys,
}

impl Placement {
    /// A cluster of this many nodes. With another seed elements lie elsewhere.
    pub fn new(nodes: u32, seed: i64) -> Self {
        Self { nodes, first: SortKeys::placement(seed, 1), second: SortKeys::placement(seed, 2) }
    }

    /// The node that reads an element for a job with these nodes, ascending; None if it has none of the cluster's.
    pub fn node(&self, element: u64, of_job: &[u32]) -> Option<u32> {
        let own = &of_job[..of_job.partition_point(|&node| node < self.nodes)];
        if own.is_empty() {
            return None;
        }
        let everywhere = part(self.first, element, self.nodes as usize) as u32;
        if own.binary_search(&everywhere).is_ok() {
            return Some(everywhere);
        }
        Some(own[part(self.second, element, own.len())])
    }
}

/// Which of this many equal parts of all hashes that of an element falls into.
fn part(hash: SortKeys, element: u64, parts: usize) -> usize {
    let hash = u128::from(hash.key(element).cast_unsigned());
    ((hash * parts as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ELEMENTS: u64 = 20_000;

    /// Some of 12 nodes.
    fn nodes() -> impl Strategy<Value = Vec<u32>> {
        (1_u32..1 << 12).prop_map(|bits| (0..12).filter(|node| bits >> node & 1 == 1).collect())
    }

    /// Five standard deviations of a binomial count.
    fn near(count: usize, probability: f64) -> bool {
        let expected = ELEMENTS as f64 * probability;
        (count as f64 - expected).abs() < 5.0 * (expected * (1.0 - probability)).sqrt() + 1.0
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn jobs_take_an_element_from_one_node_if_they_have_its_node(a in nodes(), b in nodes(), seed: i64) {
            let cluster = Placement::new(12, seed);
            let all: Vec<u32> = (0..12).collect();
            for element in 0..500 {
                let home = cluster.node(element, &all).unwrap();
                for job in [&a, &b] {
                    let node = cluster.node(element, job).unwrap();
                    prop_assert!(job.contains(&node));
                    prop_assert!(node == home || !job.contains(&home));
                }
            }
        }

        #[test]
        fn each_node_of_a_job_reads_equally_much(job in nodes(), seed in 0_i64..8) {
            let cluster = Placement::new(12, seed);
            let mut counts = [0; 12];
            for element in 0..ELEMENTS {
                counts[cluster.node(element, &job).unwrap() as usize] += 1;
            }
            for &node in &job {
                prop_assert!(near(counts[node as usize], 1.0 / job.len() as f64), "{counts:?} of {job:?}");
            }
        }
    }

    /// The paper's example: nodes 1 to n-1, and 2 to n. A hash over each job's own list agrees on few elements.
    #[test]
    fn lists_of_nodes_that_are_shifted_agree_on_all_elements_of_common_nodes() {
        let n = 8;
        let cluster = Placement::new(n, 1);
        let (a, b): (Vec<u32>, Vec<u32>) = ((0..n - 1).collect(), (1..n).collect());
        let agreed = (0..ELEMENTS).filter(|&element| cluster.node(element, &a) == cluster.node(element, &b)).count();
        // elements of the 6 common nodes; those of the first and the last go to two nodes, of 7 each, and meet never
        assert!(near(agreed, 6.0 / 8.0), "{agreed}");
        let by_list = |element: u64, job: &[u32]| job[element as usize % job.len()];
        assert_eq!((0..ELEMENTS).filter(|&element| by_list(element, &a) == by_list(element, &b)).count(), 0);
    }

    #[test]
    fn a_job_without_a_node_has_no_place() {
        let cluster = Placement::new(4, 0);
        assert_eq!(cluster.node(7, &[]), None);
        assert_eq!(cluster.node(7, &[4, 9]), None);
        assert_eq!(cluster.node(7, &[3, 9]), Some(3));
    }
}
