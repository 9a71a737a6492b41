//! Models that calls give as values. Each is read once, as long as it is among the last that this backend has met.

use super::document::Document;
use super::model::Model;
use crate::table::LookupScope;
use errors::Result;
use pg::values::jsonb::{self, Identity, Jsonb};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::rc::Rc;

/// The number of models that are kept: as many as one statement is likely to compare.
const MAX_KEPT: usize = 4;

/// Bytes that the kept models may take between transactions. Until the transaction ends, the last one is kept whatever
/// it takes.
const MAX_BYTES: usize = 64 << 20;

thread_local! {
    /// the last one first
    static MODELS: RefCell<Vec<InlineModel>> = const { RefCell::new(Vec::new()) };
}

struct InlineModel {
    bytes: Vec<u8>,
    /// in which it was last seen
    scope: LookupScope,
    /// the name of the label's type, and what it meant
    label_type: (String, pg_sys::Oid),
    model: Rc<Model>,
}

pub fn inline(value: Jsonb) -> Result<Rc<Model>> {
    let read = || value.with_text(Document::read);
    let Some(identity) = value.identity() else { return read().map(|document| Rc::new(document.model)) };
    let scope = LookupScope::now();
    let known = MODELS.with_borrow_mut(|models| {
        let place = models.iter_mut().position(|entry| entry.is(&identity, scope))?;
        models[..=place].rotate_right(1);
        Some(models[0].model.clone())
    });
    if let Some(model) = known {
        return Ok(model);
    }
    let Document { model, fitted, label_type, .. } = read()?;
    let model = Rc::new(model);
    let (bytes, label_type) = (allocation::copy(identity.bytes), (label_type, fitted.label_type));
    let entry = InlineModel { bytes, scope, label_type, model: model.clone() };
    MODELS.with_borrow_mut(|models| {
        models.insert(0, entry);
        models.truncate(MAX_KEPT);
        shrink(models, 1);
    });
    Ok(model)
}

/// Removes the models that were seen first, until the others are within their memory or only `keep` are left.
fn shrink(models: &mut Vec<InlineModel>, keep: usize) {
    while models.len() > keep && models.iter().map(InlineModel::size).sum::<usize>() > MAX_BYTES {
        models.pop();
    }
}

/// A transaction has ended: from now on the models are within their memory, the last one too.
pub fn end_transaction() {
    // an error that ends the session may have come from the midst of a change
    let _ = MODELS.try_with(|models| models.try_borrow_mut().map(|mut models| shrink(&mut models, 0)));
}

pub fn forget() {
    MODELS.take();
}

/// The model that this document is, which is not kept.
pub fn of_document(text: &str) -> Result<Model> {
    Document::read(text).map(|document| document.model)
}

impl InlineModel {
    /// Is it this value? In another scope, a stored value may have changed, and the type's name may mean another type.
    fn is(&mut self, identity: &Identity, scope: LookupScope) -> bool {
        if self.bytes != identity.bytes {
            return false;
        }
        let (name, oid) = &self.label_type;
        if self.scope != scope && (identity.stored || jsonb::type_named(name) != Some(*oid)) {
            return false;
        }
        self.scope = scope;
        true
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.model.bytes()
    }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use super::*;
    use pg::testing::{one, run, value};
    use pg::values::jsonb::Unreadable;
    use pgrx::prelude::*;

    #[pg_test]
    fn test_a_jsonb_is_read_unless_rust_has_no_such_number() {
        let read = |text: &str| Jsonb::new(value(text, "jsonb")).read();
        let text = r#"{"a": [1, -2.5, "\u00e9", null, true], "b": {}}"#;
        assert_eq!(read(text), Ok(serde_json::from_str(text).unwrap()));
        assert_eq!(read("1e400"), Err(Unreadable::OutOfRange));
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&nested(Unreadable::LEVELS)).is_ok());
        assert_eq!(read(&nested(Unreadable::LEVELS + 1)), Err(Unreadable::TooDeep));
    }

    #[pg_test]
    fn test_a_model_that_is_given_as_a_value_is_read_once() {
        run("CREATE TABLE inlined AS SELECT i % 2 AS label, ARRAY[i % 7] AS x FROM generate_series(1, 100) i");
        run("SELECT * FROM corgipile_train('inlined', max_epochs => 1, name => 'inlined')");
        let text: String = one("SELECT corgipile_export('inlined')::text");
        let model = || inline(Jsonb::new(value(&text, "jsonb"))).unwrap();
        let first = model();
        assert!(Rc::ptr_eq(&first, &model()));
        let renamed = text.replace("\"inlined\"", "\"renamed\"");
        assert_ne!(renamed, text);
        assert!(!Rc::ptr_eq(&first, &inline(Jsonb::new(value(&renamed, "jsonb"))).unwrap()));
        assert!(Rc::ptr_eq(&first, &model()), "it is still among the last");
    }
}
