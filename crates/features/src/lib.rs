//! Nothing but its dependencies: the root package and the tests depend on it.
//!
//! Cargo gives a dependency the features that the packages which are being built ask for. `scripts/build` builds the
//! extension, and `scripts/nextest` all tests. If these differ in a feature of `syn`, say, then whatever procedural
//! macros have to do with is compiled twice. `scripts/lint` compares them.
