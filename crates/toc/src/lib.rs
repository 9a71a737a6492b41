//! Tuple-oriented compression of mini-batches (Li et al., SIGMOD 2019), and the encodings that it is compared with.

#![deny(unsafe_code)]
