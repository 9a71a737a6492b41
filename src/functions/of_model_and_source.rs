//! The four SQL functions that a function of a model and of rows is: for models by id and by name, and sources as a
//! text and as a relation.

/// Declares them: their names in that sequence; behind model and source, the arguments that `$answer` gets as they were
/// given, and the columns of its rows. A model or a source that is NULL is an error: no rows would look like success.
macro_rules! of_model_and_source {
    ([$by_id:ident, $by_name:ident, $relation_by_id:ident, $relation_by_name:ident] $rest:tt) => {
        of_model_and_source! { @one $by_id, i64, "model_id", models::by_id, Text<'_>, super::text, $rest }
        of_model_and_source! { @one $by_name, Text<'_>, "name", models::by_name_or_id, Text<'_>, super::text, $rest }
        of_model_and_source! {
            @one $relation_by_id, i64, "model_id", models::by_id, pg_sys::Oid, super::relation_name, $rest
        }
        of_model_and_source! {
            @one $relation_by_name, Text<'_>, "name", models::by_name_or_id, pg_sys::Oid, super::relation_name, $rest
        }
    };
    (@one $function:ident, $model:ty, $argument:literal, $find:path, $source:ty, $name:path,
     { ($($given:ident: $type:ty),*) -> ($($column:tt)*) = $answer:path }) => {
        #[pg_extern(sql = false)]
        fn $function(
            model: Option<$model>,
            source: Option<$source>,
            $($given: Option<$type>,)*
        ) -> TableIterator<'static, ($($column)*)> {
            let found = || {
                let model = model.ok_or(ArgumentError::NullArgument($argument))?;
                let source = source.ok_or(ArgumentError::NullArgument("source"))?;
                $answer($find(model)?, &$name(source)?, $($given),*)
            };
            TableIterator::new(found().or_raise())
        }
    };
}
pub(super) use of_model_and_source;
