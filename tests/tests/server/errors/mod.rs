//! What is refused: every error with its SQLSTATE, message and hint.

mod bad_input;
