//! What is chosen once the pass before the first epoch has found what it depends on, and how it is reported.

use super::model_choice::report_model;
use super::penalty::Penalty;
use super::training::Training;
use decode::{FeatureColumns, one_hot_categories};
use errors::some_of;
use loss::Extent;
use options::request::Open;
use options::rows::{ToHash, Transform};
use scan::progress;

impl Training {
    /// Makes the choices that depend on what the pass before the first epoch has found, and tells them.
    pub(super) fn choose(&mut self) {
        self.choose_features();
        if let (Some(kind), true) = (self.request.kind_of_many(), self.buffers.decoder.labels().outputs() > 1) {
            self.request.tell_many_apart();
            if self.request.open == Open::Classes {
                report_model(kind, &self.request.label, false);
            }
        }
        if self.request.open == Open::Classes {
            self.request.open = Open::Nothing;
        }
        let (is_open, has_open_epochs) = (self.request.has_open_rate(), self.request.has_open_epochs());
        let has_newton = self.request.choose_solver(self.buffers.decoder.dim());
        let penalty = self.choose_penalty();
        let data = if let Penalty::Compared(extent) = self.penalty { extent } else { self.extent_of_an_epoch() };
        let decoder = &self.buffers.decoder;
        let mean_square = decoder.mean_square().unwrap_or_default();
        self.request.choose(data, mean_square, decoder.mean_target());
        progress::epochs(self.request.last_epoch());
        if let ([point], true) = (self.request.points.as_slice(), is_open) {
            let scaled = self.buffers.decoder.standardizer().map_or_else(String::new, |standardizer| {
                let is_scaled = |(mean, scale): &(&f64, &f64)| **mean != 0.0 || **scale != 1.0;
                let scaled = standardizer.mean.iter().zip(&standardizer.scale).filter(is_scaled).count();
                format!(", {scaled} of {} features standardized", standardizer.mean.len())
            });
            let epochs = if has_open_epochs { format!("{} epochs, ", point.max_epochs) } else { String::new() };
            let rate = point.hyperparameters.learning_rate;
            match has_newton {
                true => self.report_choice(format!("solver newton{scaled}{penalty}"), None),
                false => self.report_choice(format!("{epochs}learning rate {rate:.3e}{scaled}{penalty}"), None),
            }
        }
    }

    /// What an epoch learns from: all rows, or those of one buffer.
    pub(super) fn extent_of_an_epoch(&self) -> Extent {
        let (all, shuffling) = (self.buffers.decoder.extent(), &self.request.shuffling);
        if !shuffling.strategy.reads_one_buffer() {
            return all;
        }
        let report = self.buffers.report();
        let pages = report.sampled_pages.map_or(report.planned_geometry.pages, |[_, of]| of);
        let buffers = shuffling.geometry(pages).map_or(1, |geometry| geometry.buffers());
        Extent { tuples: all.tuples.div_ceil(u64::from(buffers.max(1))), ..all }
    }

    /// Records which numbers are taken by their logarithms, where they are cut off and which columns of text are
    /// hashed, and tells of columns that no one has named.
    pub(super) fn choose_features(&mut self) {
        let chosen = self.buffers.decoder.transform();
        if let (Some(Transform::Automatic), Transform::These(columns)) = (&self.request.options.transform, &chosen) {
            let columns = some_of(columns);
            self.report_choice(
                format!("numbers that span orders of magnitude are transformed by sign(x) * ln(1 + |x|): {columns}"),
                Some("Set option transform to an array of columns, or to \"none\", to change this."),
            );
        }
        self.request.options.transform = Some(chosen);
        if self.buffers.decoder.clip().is_some() {
            self.request.options.winsorize = self.request.options.clip(self.request.kind);
        }
        let FeatureColumns::Mixed(columns) = self.buffers.decoder.features() else { return };
        let (chosen, bags) = (columns.hashing(), columns.bags().map(str::to_owned).collect::<Vec<String>>());
        let was_open = self.request.options.hash.as_ref().is_none_or(|hashing| hashing.columns == ToHash::Large);
        if let (true, Some(buckets), ToHash::These(columns)) = (was_open, chosen.buckets, &chosen.columns) {
            let categories = one_hot_categories(self.request.kind);
            let (texts, words): (Vec<String>, Vec<String>) = columns.iter().cloned().partition(|c| !bags.contains(c));
            if !words.is_empty() {
                self.report_choice(
                    format!("words are hashed into {buckets} buckets: {}", some_of(&words)),
                    Some("Set option hash to another number of buckets."),
                );
            }
            if !texts.is_empty() {
                let texts = some_of(&texts);
                self.report_choice(
                    format!("columns of more than {categories} categories are hashed into {buckets} buckets: {texts}"),
                    Some("Set option hash to another number of buckets, or to \"off\" for a weight per category."),
                );
            }
        }
        self.request.options.hash = Some(chosen);
    }
}
