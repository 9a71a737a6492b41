//! Nothing but its dependencies: the root package and the tests depend on it.
//!
//! Cargo gives a dependency the features that the packages which it is told to build ask for. `scripts/build` builds the
//! extension and `scripts/nextest` all tests: if these differ in a feature of `syn`, say, then all that is made by
//! procedural macros is compiled twice. `scripts/lint` compares them.
