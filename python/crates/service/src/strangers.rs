//! Connections of which no one knows yet who is at the other end.
//!
//! It guarantees that they keep no one out, whatever they say and however slowly: each of them has a few seconds, there
//! are a few of them at a time, and a new one takes the place of the oldest. Anyone who may connect shows it at once,
//! long before this many others have come.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio_stream::{Stream, StreamExt};

/// How long a stranger may take to show who it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// Strangers at a time: they take no more open files than that from those who are known.
const MOST: usize = 128;

/// Connections that are known and wait to be taken up.
pub(crate) const WAITING: usize = 64;

/// Takes up connections for ever, and lets `greet` find out who each of them is.
pub(crate) async fn welcome<S, G>(mut incoming: impl Stream<Item = io::Result<S>> + Unpin, greet: impl Fn(S) -> G)
where
    G: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut strangers = VecDeque::new();
    while let Some(came) = incoming.next().await {
        let stream = match came {
            Ok(stream) => stream,
            Err(error) => {
                // such as too many open files: others may end
                tracing::warn!(%error, "a connection cannot be taken up");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        strangers.retain(|stranger: &tokio::task::AbortHandle| !stranger.is_finished());
        if strangers.len() >= MOST
            && let Some(oldest) = strangers.pop_front()
        {
            oldest.abort();
        }
        let greeting = tokio::time::timeout(PATIENCE, greet(stream));
        let greeting = tokio::spawn(async move {
            match greeting.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "a connection was refused"),
                Err(_) => tracing::warn!("a connection was closed that did not show in time who it is"),
            }
        });
        strangers.push_back(greeting.abort_handle());
    }
}
