//! An error that the server gave, in the parts that users see.

use postgres::Error;

/// SQLSTATE, message, detail and hint of a failed statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// SQLSTATE, or "closed" if the connection was lost without a word.
    pub code: String,
    /// What was wrong.
    pub message: String,
    /// Where, and more of it; may be empty.
    pub detail: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Failure {
    /// Asserts that the message contains every one of the words.
    pub fn says(&self, words: &[&str]) -> &Self {
        self.contains("message", &self.message, words)
    }

    /// Asserts that the hint contains every one of the words.
    pub fn hints(&self, words: &[&str]) -> &Self {
        self.contains("hint", &self.hint, words)
    }

    /// Asserts SQLSTATE, message and hint; `...` stands for any text in message and hint.
    pub fn is(&self, code: &str, message: &str, hint: &str) -> &Self {
        let same = self.code == code && is_like(message, &self.message) && is_like(hint, &self.hint);
        assert!(same, "{self:#?}\nis not\n{code}: {message}\n{hint}");
        self
    }

    fn contains(&self, part: &str, text: &str, words: &[&str]) -> &Self {
        for word in words {
            assert!(text.contains(word), "the {part} does not contain {word:?}: {self:#?}");
        }
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.as_db_error() {
            Some(e) => Failure {
                code: e.code().code().to_owned(),
                message: e.message().to_owned(),
                detail: e.detail().unwrap_or_default().to_owned(),
                hint: e.hint().unwrap_or_default().to_owned(),
            },
            None => Failure {
                code: if is_lost(&error) { "closed" } else { "client" }.to_owned(),
                message: format!("{error:?}"),
                detail: String::new(),
                hint: String::new(),
            },
        }
    }
}

/// Was the connection lost? It may also be reset: if the server's process was gone before it had read the statement.
fn is_lost(error: &Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let io = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    error.is_closed() || io.is_some_and(|io| [BrokenPipe, ConnectionReset, UnexpectedEof].contains(&io.kind()))
}

/// Is a text as expected, where `...` stands for any text?
pub fn is_like(expected: &str, given: &str) -> bool {
    let Some((head, tail)) = expected.split_once("...") else { return expected == given };
    let Some(rest) = given.strip_prefix(head) else { return false };
    rest.char_indices().map(|(i, _)| i).chain([rest.len()]).any(|i| is_like(tail, &rest[i..]))
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn dots_stand_for_any_text_and_nothing_else_does() {
        assert!(is_like("row ... of t", "row 17 of t"));
        assert!(is_like("...", ""));
        assert!(!is_like("row ... of t", "row 17 of u"));
        assert!(!is_like("row", "rows"));
    }
}
