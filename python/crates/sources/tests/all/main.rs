//! What each format of files, and PostgreSQL, gives; one program, which is linked once.

mod csv;
mod ipc;
mod libsvm;
mod parquet;
mod postgres;
mod real;
mod tfrecord;
mod told;
mod webdataset;
