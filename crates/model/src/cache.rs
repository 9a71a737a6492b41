//! The models that this backend has used, by row version, and the lookups of the running statement.

use super::model::Model;
use crate::shared::Shared;
use crate::table::{Key, KeyRef, LookupScope, Version};
use errors::Result;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::{Rc, Weak};

/// Memory that the models of a backend may take between transactions, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// The number of models that are kept until the transaction ends, whatever memory they take:
/// otherwise a statement that compares two large ones would read them for each row.
const MIN_MODELS: usize = 2;

/// Lookups of the running statement that are remembered.
const MAX_LOOKUPS: usize = 16;

thread_local! {
    /// Weak references, which do not keep models alive that have left the cache.
    static LOOKUPS: RefCell<Vec<(Key, LookupScope, Weak<Model>)>> = const { RefCell::new(Vec::new()) };
    static MODELS: RefCell<CachedModels> = RefCell::default();
}

/// Models by id, the latest version of each that was used.
#[derive(Default)]
struct CachedModels {
    entries: HashMap<i64, CachedModel>,
    /// ids by the time of their last lookup
    order: BTreeMap<u64, i64>,
    bytes: usize,
    clock: u64,
}

struct CachedModel {
    version: Version,
    model: Rc<Model>,
    looked_up: u64,
}

/// The model that was found for `key` in this very scope, or what `look_up` finds.
pub fn find(key: KeyRef<'_>, look_up: impl FnOnce(&Key) -> Result<Rc<Model>>) -> Result<Rc<Model>> {
    let scope = LookupScope::now();
    let known = LOOKUPS.with_borrow(|lookups| {
        let entry = lookups.iter().find(|(k, s, _)| key.is(k) && *s == scope);
        entry.and_then(|(_, _, model)| model.upgrade())
    });
    if let Some(model) = known {
        return Ok(model);
    }
    let key = key.to_key();
    let model = look_up(&key)?;
    LOOKUPS.with_borrow_mut(|lookups| {
        lookups.retain(|(k, s, _)| *k != key && *s == scope);
        lookups.truncate(MAX_LOOKUPS - 1);
        lookups.push((key, scope, Rc::downgrade(&model)));
    });
    Ok(model)
}

/// The model with this id as of this version of its row, or what `read` makes of the row.
pub fn version(id: i64, version: Version, read: impl FnOnce() -> Result<Model>) -> Result<Rc<Model>> {
    if let Some(model) = MODELS.with_borrow_mut(|models| models.get(id, version)) {
        // Pins go with the transaction; what was shared may be gone.
        if model.shared().is_none_or(Shared::pin) {
            return Ok(model);
        }
    }
    let model = Rc::new(read()?);
    MODELS.with_borrow_mut(|models| models.insert(id, version, model.clone()));
    Ok(model)
}

/// A transaction has ended: from now on the models are within their memory, the last ones too.
pub fn end_transaction() {
    // an error that ends the session may have come from the midst of a change
    let _ = MODELS.try_with(|models| models.try_borrow_mut().map(|mut models| models.shrink(0)));
}

pub fn forget() {
    LOOKUPS.take();
    MODELS.take();
}

impl CachedModels {
    fn get(&mut self, id: i64, version: Version) -> Option<Rc<Model>> {
        let entry = self.entries.get_mut(&id).filter(|entry| entry.version == version)?;
        self.order.remove(&entry.looked_up);
        self.clock += 1;
        entry.looked_up = self.clock;
        self.order.insert(self.clock, id);
        Some(entry.model.clone())
    }

    /// Adds a model. If memory is short, those go that were not looked up for longest.
    fn insert(&mut self, id: i64, version: Version, model: Rc<Model>) {
        self.remove(id);
        self.clock += 1;
        self.bytes += model.bytes();
        self.order.insert(self.clock, id);
        self.entries.insert(id, CachedModel { version, model, looked_up: self.clock });
        self.shrink(MIN_MODELS);
    }

    /// Removes the models that were not looked up for longest, until the others are within their memory or only `keep`
    /// are left.
    fn shrink(&mut self, keep: usize) {
        while self.bytes > MAX_BYTES && self.entries.len() > keep {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, id: i64) {
        if let Some(entry) = self.entries.remove(&id) {
            self.order.remove(&entry.looked_up);
            self.bytes -= entry.model.bytes();
        }
    }
}
