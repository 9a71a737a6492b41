//! The state of SGD as numbers, to go on another time.

use super::learn::{State, Update, UpdateWindow};
use crate::ModelKind;
use crate::saved::{Reader, Writer};

impl State {
    /// Everything but what was counted.
    pub(crate) fn save(&self, to: &mut Writer) {
        to.floats(self.weights.iter().flat_map(|chunk| chunk.0));
        for row in &self.previous {
            to.floats(row.iter().copied().flatten());
        }
        let made = |Update { slope, direction, along }: Update| [slope, direction, along];
        to.floats([made(self.steps.earlier), made(self.steps.last)].concat().into_iter().chain([self.intercept]));
        to.double(self.scale);
    }

    /// The state that was saved, of a model of this kind with so many features; None if it is not one.
    pub(crate) fn read(from: &mut Reader<'_>, dim: usize, kind: ModelKind) -> Option<State> {
        let mut state = State::new(dim, kind);
        let places = state.weights.iter_mut().flat_map(|chunk| chunk.0.iter_mut());
        from.floats_into(places)?;
        for row in &mut state.previous {
            from.floats_into(row.iter_mut().flatten())?;
        }
        let mut rest = [0.0; 7];
        from.floats_into(rest.iter_mut())?;
        let made = |i: usize| Update { slope: rest[i], direction: rest[i + 1], along: rest[i + 2] };
        state.steps = UpdateWindow { earlier: made(0), last: made(3) };
        state.intercept = rest[6];
        state.scale = from.double()?;
        (state.scale > 0.0 && state.scale <= 1.0).then_some(state)
    }
}
