//! Which way several servers train one model: what each way takes, by what was measured of the servers.
//!
//! The figures are estimates. The ways differ by factors where a wrong choice matters: a mini-batch of 32 rows costs a
//! round trip, and so does a whole pass of Newton's method.

/// A way to train on rows that several servers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Newton's method: a request per pass
    Newton,
    /// each server learns by itself, and the models are averaged after each buffer
    Averaging,
    /// all make a step together, of a mini-batch of this many rows
    MiniBatches(u32),
    /// the rows are fetched to the server that asks, which trains alone
    Fetching,
}

/// What is known of the servers, their rows and the model.
#[derive(Debug, Clone, Copy)]
pub struct Servers {
    /// how many there are
    pub count: usize,
    /// rows of all of them
    pub rows: u64,
    /// values that are read of each row
    pub columns: usize,
    /// weights of one model
    pub weights: usize,
    /// groups that have rows on several servers; 1 if there are no groups
    pub groups: usize,
    /// of the training
    pub epochs: u32,
    /// seconds that a request takes that asks for nothing
    pub round_trip: f64,
    /// seconds of the pass that all have made before the first epoch
    pub pass: f64,
    /// features, if Newton's method can train the model
    pub newton: Option<usize>,
    /// may models be averaged?
    pub averages: bool,
    /// rows of the smallest and the largest mini-batch that suit the model
    pub batches: (u32, u32),
    /// may the rows be fetched?
    pub fetches: bool,
}

impl Servers {
    /// Passes of Newton's method until it has converged, or a few more.
    const PASSES: f64 = 8.0;
    /// Steps that a training needs at least to come near the optimum.
    const STEPS: u64 = 2_000;
    /// Buffers of an epoch: the default is a tenth of the rows.
    const BUFFERS: f64 = 10.0;
    /// Seconds to send a value as text and read it again.
    const VALUE: f64 = 0.2e-6;
    /// Seconds to learn from a row, and from each of its weights.
    const ROW: f64 = 30e-9;
    const WEIGHT: f64 = 2.5e-9;
    /// Seconds to add to an entry of a Hessian.
    const ENTRY: f64 = 0.3e-9;
    /// Seconds of a step beyond its round trip, and of each number that goes to a server and back.
    const STEP: f64 = 0.1e-3;
    const NUMBER: f64 = 30e-9;
    /// Seconds to open a connection for rows that are fetched.
    const CONNECTION: f64 = 0.01;
    /// The part of the first pass that one of an epoch takes, which finds pages in memory.
    const LATER: f64 = 0.5;

    /// The rows of a mini-batch: as many as leave enough steps, between the smallest and the largest.
    pub fn batch(&self) -> u32 {
        let size = u64::from(self.epochs).saturating_mul(self.rows) / Self::STEPS;
        size.clamp(self.batches.0.into(), self.batches.1.into()) as u32
    }

    /// All ways that are open, the quickest first, with the seconds that they are expected to take from now on.
    pub fn ways(&self) -> Vec<(Way, f64)> {
        let (rows, epochs, groups) = (self.rows as f64, f64::from(self.epochs), self.groups.max(1) as f64);
        let (weights, each) = (self.weights as f64, rows / self.count.max(1) as f64);
        let learn = Self::ROW + weights * Self::WEIGHT;
        let step = |numbers: f64| self.round_trip + Self::STEP + self.count as f64 * numbers * Self::NUMBER;
        let pass = Self::LATER * self.pass;
        let batch = self.batch();
        let mut ways = Vec::new();
        if let Some(features) = self.newton {
            let entries = (features as f64 + 1.0).powi(2) / 2.0;
            // the numbers of a Hessian are doubles
            let of_pass = pass + each * entries * Self::ENTRY + groups * step(2.0 * entries);
            ways.push((Way::Newton, Self::PASSES.min(epochs) * of_pass));
        }
        if self.averages {
            ways.push((Way::Averaging, epochs * (pass + each * learn + Self::BUFFERS * groups * step(weights))));
        }
        let steps = (rows / f64::from(batch)).max(groups);
        ways.push((Way::MiniBatches(batch), epochs * (pass + each * learn + steps * step(weights))));
        if self.fetches {
            // foreign tables are read one after the other
            let fetch = self.count as f64 * (Self::CONNECTION + pass) + rows * self.columns as f64 * Self::VALUE;
            // before the first epoch the rows are gone through once more
            ways.push((Way::Fetching, fetch + (epochs + 1.0) * rows * learn));
        }
        ways.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        ways
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the first measurements on Citus: three servers of one machine.
    const TABLE: Servers = Servers {
        count: 3,
        rows: 2_400_000,
        columns: 13,
        weights: 13,
        groups: 1,
        epochs: 20,
        round_trip: 0.2e-3,
        pass: 0.4,
        newton: Some(12),
        averages: true,
        batches: (32, 4096),
        fetches: true,
    };

    fn quickest(servers: Servers) -> Way {
        servers.ways()[0].0
    }

    /// What the way is expected to take.
    fn seconds(servers: Servers, way: Way) -> f64 {
        servers.ways().into_iter().find(|(other, _)| *other == way).expect("it is open").1
    }

    #[test]
    fn the_seconds_that_were_measured_are_about_those_that_are_expected() {
        for (way, measured) in [(Way::Newton, 3.1), (Way::Averaging, 3.7), (Way::Fetching, 6.7)] {
            let expected = seconds(TABLE, way);
            assert!((measured / 2.0..2.0 * measured).contains(&expected), "{way:?}: {expected}");
        }
        let small = Servers { batches: (32, 32), ..TABLE };
        let of_epoch = seconds(small, Way::MiniBatches(32)) / 20.0;
        assert!((20.0..50.0).contains(&of_epoch), "{of_epoch}");
    }

    #[test]
    fn newton_is_the_quickest_where_it_is_possible_and_features_are_few() {
        assert_eq!(quickest(TABLE), Way::Newton);
        assert_eq!(quickest(Servers { round_trip: 5e-3, ..TABLE }), Way::Newton);
        assert_eq!(quickest(Servers { newton: None, ..TABLE }), Way::Averaging);
        assert_eq!(quickest(Servers { newton: Some(2000), weights: 2001, ..TABLE }), Way::Averaging);
    }

    #[test]
    fn rows_are_fetched_where_a_step_takes_longer_than_its_rows() {
        let labels_differ = Servers { newton: None, averages: false, ..TABLE };
        assert_eq!(quickest(Servers { round_trip: 5e-3, batches: (1, 32), ..labels_differ }), Way::Fetching);
        // a group has a request of its own
        assert_eq!(quickest(Servers { groups: 1000, rows: 200_000, ..TABLE }), Way::Fetching);
        // wide rows stay where they are
        assert_eq!(
            quickest(Servers { columns: 1000, weights: 1001, rows: 1_000_000, pass: 5.0, ..labels_differ }),
            Way::MiniBatches(4096)
        );
        let only = Servers { fetches: false, round_trip: 5e-3, ..labels_differ };
        assert_eq!(quickest(only), Way::MiniBatches(4096));
    }

    #[test]
    fn mini_batches_are_as_large_as_leaves_enough_steps() {
        let batch = |rows, batches| Servers { rows, batches, ..TABLE }.batch();
        let linear = (32, 4096);
        assert_eq!([batch(1200, linear), batch(100_000, linear), batch(10_000_000, linear)], [32, 1000, 4096]);
        assert_eq!([batch(50, (1, 32)), batch(1200, (1, 32)), batch(100_000, (1, 32))], [1, 12, 32]);
    }
}
