//! Servers and jobs, alone and in clusters; one program, which is linked once.

mod cluster;
mod common;
mod namespaces;
mod service;
mod strangers;
