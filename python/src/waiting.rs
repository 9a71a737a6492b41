//! Work that takes long: in a thread, while the caller's looks for Ctrl-C.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use source::Cancel;
use std::time::{Duration, Instant};

/// How long a short piece of work is waited for without looking away.
const STEP: Duration = Duration::from_millis(1);

/// How often somebody is told of the progress.
const TOLD: Duration = Duration::from_millis(50);

/// Does `work` in a thread without the interpreter's lock. Ctrl-C, and an exception of `tell`, cancel it.
pub(crate) fn in_thread<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Cancel) -> PyResult<T> + Send,
    mut tell: impl FnMut() -> PyResult<()>,
) -> PyResult<T> {
    let cancel = Cancel::default();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| work(&cancel));
        let mut told = Instant::now();
        while !thread.is_finished() {
            py.detach(|| std::thread::sleep(STEP));
            let due = told.elapsed() >= TOLD;
            let going_on = py.check_signals().and_then(|()| if due { tell() } else { Ok(()) });
            if let Err(interrupt) = going_on {
                cancel.cancel();
                let _ = py.detach(|| thread.join());
                return Err(interrupt);
            }
            if due {
                told = Instant::now();
            }
        }
        tell()?;
        thread.join().map_err(|_| PyRuntimeError::new_err("a thread panicked"))?
    })
}
