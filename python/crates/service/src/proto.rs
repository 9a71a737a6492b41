//! What jobs, operators and servers say to each other: the messages of proto/joader.proto.

#![allow(missing_docs, clippy::all, clippy::pedantic)]

tonic::include_proto!("joader");
