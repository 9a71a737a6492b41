//! The models that this backend has used: by row version, and by what a statement has already looked up.

use super::Model;
use crate::error::Result;
use crate::pg::model_table::{Key, Sight, Version};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// Memory that the models of a backend may take, in bytes; one that is larger is kept alone.
const MAX_BYTES: usize = 64 << 20;

/// Lookups of the running statement that are remembered.
const MAX_LOOKUPS: usize = 16;

thread_local! {
    /// Weak, lest they keep alive what was put out of the cache.
    static LOOKUPS: RefCell<Vec<(Key, Sight, Weak<Model>)>> = const { RefCell::new(Vec::new()) };
    static MODELS: RefCell<HashMap<i64, (Version, Rc<Model>)>> = RefCell::new(HashMap::new());
}

/// The model that was found for `key` under this very sight, or what `look_up` finds.
pub fn find(key: Key, look_up: impl FnOnce(&Key) -> Result<Rc<Model>>) -> Result<Rc<Model>> {
    let sight = Sight::now();
    let known = LOOKUPS.with_borrow(|lookups| {
        let entry = lookups.iter().find(|(k, s, _)| *k == key && *s == sight);
        entry.and_then(|(_, _, model)| model.upgrade())
    });
    if let Some(model) = known {
        return Ok(model);
    }
    let model = look_up(&key)?;
    LOOKUPS.with_borrow_mut(|lookups| {
        lookups.retain(|(k, s, _)| *k != key && *s == sight);
        lookups.truncate(MAX_LOOKUPS - 1);
        lookups.push((key, sight, Rc::downgrade(&model)));
    });
    Ok(model)
}

/// The model with this id as of this version of its row, or what `read` makes of the row.
pub fn version(id: i64, version: Version, read: impl FnOnce() -> Result<Model>) -> Result<Rc<Model>> {
    let known =
        MODELS.with_borrow(|models| models.get(&id).filter(|(v, _)| *v == version).map(|(_, model)| model.clone()));
    if let Some(model) = known {
        return Ok(model);
    }
    let model = Rc::new(read()?);
    MODELS.with_borrow_mut(|models| {
        let bytes: usize = models.values().map(|(_, model)| model.bytes()).sum();
        if bytes + model.bytes() > MAX_BYTES {
            models.clear();
        }
        models.insert(id, (version, model.clone()));
    });
    Ok(model)
}
