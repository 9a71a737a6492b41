//! Types of ours in the signatures of functions that pgrx wraps.

/// Says what pgrx asks of such a type: its name in SQL, internal.
macro_rules! declared_by_hand {
    ($type:ty) => {
        const _: () = {
            use pgrx::pgrx_sql_entity_graph::metadata::{
                ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
            };
            // SAFETY: nothing is generated from it: the functions are declared by hand in sql/.
            unsafe impl SqlTranslatable for $type {
                const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!($type);
                const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
                const ARGUMENT_SQL: std::result::Result<SqlMappingRef, ArgumentError> =
                    Ok(SqlMappingRef::literal("internal"));
                const RETURN_SQL: std::result::Result<ReturnsRef, ReturnsError> =
                    Ok(ReturnsRef::One(SqlMappingRef::literal("internal")));
            }
        };
    };
}
pub(crate) use declared_by_hand;
