//! corgipile as its users meet it: through a real server. A file per theme.
