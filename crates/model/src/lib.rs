//! Models: kept in table corgipile.stored_models, used through a cache of this backend.
//!
//! The table is the truth. A model is looked up again whenever anything could have changed what the statement sees or
//! what its user may do, so that the cache never shows a model that was deleted, rolled back or taken away.
// Used by the extension alone: a field or a variant needs no text beyond its name, and no caller asks whether a length
// is 0.
#![allow(missing_docs, clippy::len_without_is_empty, clippy::new_without_default, clippy::result_unit_err)]

mod cache;
mod check;
mod class_values;
mod document;
pub mod extension_lock;
mod features;
mod groups;
mod import;
mod inline;
mod keyed_values;
mod lookup;
mod management;
mod model;
mod names;
mod ownership;
mod parts;
mod policies;
mod publication;
mod replaced;
pub mod shared;
mod store;
mod stored_training;
pub mod table;

/// A transaction has ended: of models that were used in it, no more stay than there is memory for.
pub fn end_transaction() {
    cache::end_transaction();
    inline::end_transaction();
}

/// Forgets all models that the session has used.
pub fn forget_all() {
    cache::forget();
    inline::forget();
}

pub use document::export;
pub use features::{Buckets, Categories, CategoryNames, Coding, ColumnKind, Elements, FeatureKind};
pub use groups::{
    ALL_GROUPS_OF, Found, GroupModels, Grouping, GroupsBefore, found_to_predict, groups_before, lock_groups,
    settle_unseen_group,
};
pub use import::import;
pub use inline::{inline, of_document};
pub use lookup::{by_name_or_id, forget, id_to_predict, if_seen, name_to_predict, only_to_predict, stats};
pub use management::{
    ModelSelector, calibrate, check_may_change, comment, deploy, drop, keep_profile, rename, source_of,
};
pub use model::Model;
pub use names::Access;
pub use ownership::{Privilege, drop_owned, grant, reassign_owned, revoke};
pub use parts::{Fitted, Kept, Numbers};
pub use policies::Policies;
pub use publication::{Received, identity, receive, version_id};
pub use replaced::{Newer, delete_replaced};
pub use store::{NewModel, check_can_store, store};
pub use stored_training::{MAX_STATE_BYTES, StoredTraining, kept, stored_training, weight_column};
pub use table::{StoredRole, end_inserts};
