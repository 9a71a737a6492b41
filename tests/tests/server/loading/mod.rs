//! Where tuples come from in a later epoch or another process: cache, loader, several processes, values out of line.

mod cache;
mod loader;
mod loader_ends;
mod pages;
mod search_workers;
mod seeks;
mod toast;
mod workers;
mod workers_together;
