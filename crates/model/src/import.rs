//! Stores models that are given as values.

use super::document::Document;
use super::parts::Fitted;
use super::store::{NewModel, check_can_store, store};
use errors::Result;
use options::model_name::check_name;
use pg::values::jsonb::Jsonb;
use pgrx::Uuid;

/// Stores a model that is given as a value as the current user's, and returns its id. Without a name it gets that of
/// the value, if there is one.
pub fn import(value: Jsonb, name: Option<&str>) -> Result<i64> {
    let document = value.with_text(Document::read)?;
    let name = name.map(str::to_owned).or_else(|| document.fitted.name.clone());
    name.as_deref().map_or(Ok(()), check_name)?;
    check_can_store("corgipile_import()");
    store_document(document, name.as_deref(), None)
}

/// Stores it under this name, and returns its id; with an identity if another server has published it.
pub(super) fn store_document(document: Document, name: Option<&str>, published_as: Option<Uuid>) -> Result<i64> {
    let Document { model, fitted, kept, history, .. } = document;
    let history = serde_json::to_string(&history).expect("plain values are always JSON");
    let fitted = Fitted { name: name.map(str::to_owned), ..fitted };
    let numbers = model.into_numbers();
    let (is_locked, granted_like) = (false, None);
    store(NewModel { fitted, numbers, kept, history, training_state: None, published_as, is_locked, granted_like })
}
