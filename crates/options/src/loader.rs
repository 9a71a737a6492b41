//! Argument `prefetch`: where the buffers of a training are filled.

use choices::choice;

choice! {
    /// Where the buffers of a training are filled.
    Loader {
        Auto = "auto",
        Worker = "on",
        InProcess = "off",
    }
}
