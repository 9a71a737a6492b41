//! Deletes models that newer ones have replaced, lest every training add one for ever.
//!
//! Guarantees: only the current user's own models are deleted, in the transaction that stores the newer ones; never the
//! latest of a name, a deployed one, one with a comment, or one that this transaction has stored or another is using.
//! What is deleted is reported. A training neither waits nor fails because of it.

use super::shared;
use super::table::{self, Field, StoredRole};
use errors::some_of;
use loss::ModelKind;
use options::settings;
use pg::snapshot;

/// What a training has stored.
pub struct Newer<'a> {
    /// of models that have a name
    pub names: Vec<String>,
    /// is there one without?
    pub has_unnamed: bool,
    pub kind: ModelKind,
    pub source: &'a str,
    pub label: &'a str,
    /// the model whose training was continued
    pub continued: Option<i64>,
}

/// What is never deleted: the others are locked, unless somebody else is about to change them.
const UNLESS_KEPT: &str =
    "AND NOT m.deployed AND m.comment IS NULL AND m.created_at <> now() AND m.model_id <> ALL ($3)
                           FOR UPDATE OF m SKIP LOCKED";

/// $2: how many versions of a name are kept; $4: names.
const NAMED: &str = "SELECT m.model_id, m.name, m.version FROM corgipile.stored_models AS m
     WHERE m.owner = $1 AND m.name = ANY ($4)
       AND m.version <= (SELECT o.version FROM corgipile.stored_models AS o WHERE o.name = m.name AND o.owner = m.owner
                          ORDER BY o.version DESC OFFSET $2 LIMIT 1)";

/// $2: how many trainings are kept. What one transaction has trained is one of them: a grid has many points.
/// Anyone who was granted a model without a name knows its number.
const UNNAMED: &str = "SELECT m.model_id, m.name, m.version FROM corgipile.stored_models AS m
     WHERE m.owner = $1 AND m.name IS NULL AND m.source = $4 AND m.label = $5 AND m.model = $6
       AND m.granted_to::text[] = '{}' AND m.predict_granted_to::text[] = '{}'
       AND m.created_at < (SELECT DISTINCT o.created_at FROM corgipile.stored_models AS o
                            WHERE o.owner = $1 AND o.name IS NULL AND o.source = $4 AND o.label = $5 AND o.model = $6
                            ORDER BY o.created_at DESC OFFSET $2 - 1 LIMIT 1)";

/// Deletes what these models replace, but for this many of each; None: as many as the setting says. 0: nothing.
pub fn delete_replaced(newer: Newer, keep: Option<u32>) {
    let keep = keep.unwrap_or_else(settings::keep_versions);
    // under a snapshot of the transaction, what another one has deleted meanwhile would be an error
    if keep == 0 || snapshot::is_of_transaction() {
        return;
    }
    let mut used = shared::pinned();
    used.extend(newer.continued);
    let parameters = || {
        vec![
            Field::role("owner", &StoredRole::of(table::current_user())),
            Field::new("keep", Some(i64::from(keep))),
            Field::new("used", Some(used.clone())),
        ]
    };
    let mut replaced = Vec::new();
    if !newer.names.is_empty() {
        let mut values = parameters();
        values.push(Field::new("names", Some(newer.names)));
        replaced.extend(table::rows(&format!("{NAMED} {UNLESS_KEPT}"), values));
    }
    if newer.has_unnamed {
        let mut values = parameters();
        let texts = [("source", newer.source), ("label", newer.label), ("model", newer.kind.name())];
        values.extend(texts.map(|(column, text)| Field::new(column, Some(text.to_owned()))));
        replaced.extend(table::rows(&format!("{UNNAMED} {UNLESS_KEPT}"), values));
    }
    // triggers of the table run for a statement that deletes nothing, too
    if replaced.is_empty() {
        return;
    }
    let ids: Vec<i64> = replaced.iter().map(|(id, ..)| *id).collect();
    let delete = "DELETE FROM corgipile.stored_models WHERE model_id = ANY ($1) RETURNING model_id, name, version";
    let mut deleted = table::rows(delete, vec![Field::new("model_id", Some(ids))]);
    deleted.sort_unstable();
    let describe = |(id, name, version): (i64, Option<String>, i32)| match name {
        Some(name) => format!("version {version} of \"{name}\""),
        None => format!("model {id}"),
    };
    let models: Vec<String> = deleted.into_iter().map(describe).collect();
    let (count, ending) = (models.len(), if models.len() == 1 { "" } else { "s" });
    pg::notice(
        format!("deleted {count} model{ending} replaced by newer ones: {}", some_of(&models)),
        "Option keep_versions, or setting corgipile.keep_versions, sets how many are kept; 0 keeps all. Deployed models \
         and models with a comment are kept.",
    );
}
