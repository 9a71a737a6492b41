//! What is learned, and from which rows.

use crate::limits::MAX_WEIGHTS;
use crate::options::choices::Choice;
use crate::options::chosen::Validation;
use crate::options::date_parts::DateParts;
use crate::options::entry::{Default, Entry, Group, Inherited, Models, Needs, Place, Values};
use crate::options::rows::{By, ClassWeight, Clip, Hashing, Nulls, Prepare, Standardize, Transform, Unseen};
use serde_json::json;
use sgd::{ModelKind, Range};

pub const ENTRIES: &[Entry] = &[
    Entry {
        place: Place::Only("text"),
        ..Entry::argument(
            "source",
            "text",
            Values::Other("", Some("a table, a view or a query")),
            Default::None,
            "what is trained on: the name of a table, view or the like, quoted and qualified as in SQL, a regclass, or a query: what begins with \
             SELECT, WITH, VALUES, TABLE or (",
        )
    },
    Entry {
        inherited: Inherited::Model,
        explain: Some(|call, explain| explain.text(c"Model", call.kind.name())),
        ..Entry::argument(
            "model",
            "text",
            Values::Words(ModelKind::names),
            Default::Word("logistic"),
            "what is trained: a logistic regression, a support vector machine, a linear regression, a softmax regression, or a \
             multilayer perceptron; its name, or what else it is called, in any case",
        )
    },
    Entry {
        inherited: Inherited::Model,
        explain: Some(|call, explain| explain.text(c"Label", call.label)),
        ..Entry::argument("label", "text", Values::Column, Default::Word("label"), "the column to predict")
    },
    Entry {
        inherited: Inherited::Model,
        explain: Some(|call, explain| explain.text(c"Features", call.features)),
        ..Entry::argument(
            "features",
            "text[]",
            Values::Other("", Some("names of columns")),
            Default::Depends(|_| "columns that the source has".into()),
            "one column of arrays; or two: indices and values of sparse features; or any number of columns of numbers, text and \
             enums. {*}: all columns that can be features; {*,-a,-b}: all but these; {-a}: the default without it. By default \
             columns features_k and features_v if both are there, or features_v alone; else the only compressed one; else all \
             columns of numbers, booleans, text and enums but label, weight, group, validation column and what identifies rows \
             (primary key, unique index, identity column, a name such as id, or by ANALYZE); but without numbers the only column \
             of arrays. A notice tells what is left out",
        )
    },
    Entry {
        record: Some(|call| call.options.date_parts.as_ref().map(DateParts::to_json)),
        ..Entry::option(
            "date_parts",
            Values::Other("boolean or array", Some("true, false, or year, month, day, dow, hour, doy, epoch")),
            Default::Boolean(false),
            "parts of dates and timestamps that are features in their place, as EXTRACT gives them, called column.part. true: year, \
             month and dow, and the hour of timestamps. month, dow and hour are categories, the others numbers. Timestamps with a \
             time zone are taken in UTC",
        )
    },
    Entry {
        record: Some(|call| call.options.weight.as_ref().map(|column| json!(column))),
        explain: Some(|call, explain| call.options.weight.iter().for_each(|column| explain.text(c"Weight", column))),
        ..Entry::option(
            "weight",
            Values::Column,
            Default::None,
            "column of the rows' weights, numbers from 0, of which only how they compare counts. Of weight 2, a row is there \
             twice, and of weight 0 not at all. It is no feature unless it is named as one",
        )
    },
    Entry {
        place: Place::NamedOption("text"),
        models: Models::Classifiers,
        record: Some(|call| call.options.class_weight.as_ref().map(ClassWeight::to_json)),
        explain: Some(|call, explain| {
            call.class_weight().iter().for_each(|shown| explain.text(c"Class Weight", shown))
        }),
        ..Entry::option(
            "class_weight",
            Values::Other("string or object", Some("balanced, or numbers from 0 by label")),
            Default::None,
            "weights of classes, times those of the rows; labels that are not in the object have 1. balanced: all \
             classes weigh the same",
        )
    },
    Entry {
        place: Place::NamedOption("text"),
        record: Some(|call| Some(json!(call.options.nulls()))),
        ..Entry::option(
            "nulls",
            Values::Words(Nulls::names),
            Default::Word("impute"),
            "what to do with NULLs. impute: one in a feature of numbers is taken for the mean of the feature over the rows that \
             have it, learned in a first pass, one in a column of text or an enum is a category of its own, and rows with any \
             other NULL are left out. skip: rows with NULLs are left out. error. What is imputed or left out is counted, and the \
             model predicts and is evaluated in the same way",
        )
    },
    Entry {
        place: Place::NamedOption("boolean"),
        record: Some(|call| Some(call.options.standardize.to_json())),
        ..Entry::option(
            "standardize",
            Values::Other("boolean or string", Some("true, false, auto")),
            Default::Word(Standardize::AUTO),
            "learn mean and standard deviation of each number in a first pass, and train on (value - mean) / deviation; sparse \
             features on value / deviation. auto: dense numbers but those that are 0 or 1, and the targets of model linear",
        )
    },
    Entry {
        record: Some(|call| call.options.transform.as_ref().map(Transform::to_json)),
        ..Entry::option(
            "transform",
            Values::Other("string, array or object", Some("auto, none, log, or an array of columns")),
            Default::Word(Transform::AUTO),
            "numbers that are taken by sign and logarithm, sign(x) * ln(1 + |x|), before they are standardized. auto: columns \
             whose values span decades, with a skewness beyond 6 or -6, of which little remains then, and where the \
             label is a number, if that tells as much of it; not with another standardize than auto, and not in arrays. log: all numbers, those in arrays, too. An array, or {\"log\": an array}: \
             these columns",
        )
    },
    Entry {
        models: Models::Networks,
        record: Some(|call| call.options.clip.map(Clip::to_json)),
        ..Entry::option(
            "clip",
            Values::Other("number or string", Some("a number above 0, auto, none")),
            Default::Word(Clip::AUTO),
            "cut standardized features off at so many deviations from their mean, in prediction and evaluation, too, so that a \
             few values far out do not decide over a network. auto: 5 if the network predicts numbers and standardize is auto, \
             else none",
        )
    },
    Entry {
        record: Some(|call| call.options.index_base.map(|base| json!(base))),
        ..Entry::option(
            "index_base",
            Values::Integer(0, 1),
            Default::Integer(1),
            "what the first sparse feature is called",
        )
    },
    Entry {
        record: Some(|call| call.options.dimensions.map(|dimensions| json!(dimensions))),
        ..Entry::option(
            "dimensions",
            Values::Integer(1, MAX_WEIGHTS as u64),
            Default::Depends(|_| "largest index".into()),
            "number of sparse features; an index beyond is then an error",
        )
    },
    Entry {
        record: Some(|call| call.options.unseen.map(|unseen| json!(unseen))),
        ..Entry::option(
            "unseen",
            Values::Words(Unseen::names),
            Default::Word("zero"),
            "what to do, when predicting and evaluating, with a category that was not there in training, or a sparse index beyond \
             the largest: take it for 0, so that it is none of those that are known, or an error",
        )
    },
    Entry {
        record: Some(|call| call.options.hash.as_ref().map(Hashing::to_json)),
        ..Entry::option(
            "hash",
            Values::Other("string, number or object", Some("auto, off, a number of buckets, or buckets and columns")),
            Default::Word(Hashing::AUTO),
            "columns of text that are hashed: their values share a number of features, the buckets, instead of having one each. \
             auto: columns with more than 10,000 categories (1,000 with networks), into 262,144 buckets (4,096; fewer with more \
             than 16 classes). A number: the same columns, into so many buckets. An object: its columns and no others, as in \
             {\"buckets\": 65536, \"columns\": [\"url\"]}. off, or 0: none",
        )
    },
    Entry {
        record: Some(|call| call.continues.map(|(model, _)| json!(model))),
        explain: Some(|call, explain| {
            if let Some((model, epochs)) = call.continues {
                match epochs {
                    0 => explain.text(c"Begins With", &format!("the weights of model {model}")),
                    _ => explain.text(c"Continues", &format!("model {model} after epoch {epochs}")),
                }
            }
        }),
        ..Entry::argument(
            "warm_start",
            "text",
            Values::Other("", Some("name or id of a model")),
            Default::None,
            "the model whose weights the training begins with; a number is an id unless you have a model of that name. Where neither rows \
             nor options differ, its training goes on. max_epochs are those to come. What is not given is as in that training, but for max_epochs, loader, workers, nodes, name, keep_versions, cache \
             and notice",
        )
    },
    Entry {
        place: Place::NamedOption("text"),
        record: Some(|call| Some(json!(call.options.prepare))),
        ..Entry::option(
            "prepare",
            Values::Words(Prepare::names),
            Default::Word("sample"),
            "which rows means, deviations, classes and the learning rate are taken from before the first epoch. sample: those of 1024 \
             pages drawn at random, or all of a small table; if the first epoch then meets a class, a category or an extreme that these do \
             not contain, the training begins again with all rows. exact: all rows",
        )
    },
    Entry {
        inherited: Inherited::Never,
        record: Some(|call| call.options.planned_epochs.map(|epochs| json!(epochs))),
        ..Entry::option(
            "planned_epochs",
            Values::Integer(1, i32::MAX as u64),
            Default::None,
            "how many epochs are to be trained in all, where this call trains only the first of them: what depends on max_epochs is chosen for \
             these. corgipile_train_in_steps() gives it",
        )
    },
    Entry {
        inherited: Inherited::Never,
        ..Entry::option(
            "remeasure",
            Values::Boolean,
            Default::Boolean(true),
            "in a warm start, whether to measure the rows again before the first epoch. false: the training goes on with the means, scales and \
             class weights of the training before, whatever the rows are now",
        )
    },
    Entry {
        explain: Some(|call, explain| call.group_by.iter().for_each(|column| explain.text(c"Group By", column))),
        // a model of a group goes on with the rows of its group
        inherited: Inherited::Record,
        ..Entry::argument(
            "group_by",
            "text",
            Values::Column,
            Default::None,
            "a column of numbers, booleans, text or an enum: a model for each of its values",
        )
    },
    Entry {
        place: Place::NamedOption("float8"),
        group: Some(Group::Validation),
        record: Some(|call| match call.options.validation {
            Some(Validation::Fraction { fraction, .. }) => Some(json!(fraction)),
            _ => None,
        }),
        explain: Some(|call, explain| match &call.options.validation {
            Some(Validation::Fraction { fraction, by }) => {
                let of = if *by == By::Row { "rows" } else { "blocks" };
                explain.text(c"Validation", &format!("{fraction} of the {of}"));
            }
            Some(Validation::Column(column)) => explain.text(c"Validation", &format!("rows with {column}")),
            None => {}
        }),
        ..Entry::option(
            "validation_fraction",
            Values::Number(Range::above(0.0).below(1.0)),
            Default::None,
            "how many of the rows to hold out for validation, drawn by the seed",
        )
    },
    Entry {
        group: Some(Group::Validation),
        needs: Some(Needs::Option("validation_fraction")),
        record: Some(|call| match call.options.validation {
            Some(Validation::Fraction { by, .. }) => Some(json!(by)),
            _ => None,
        }),
        ..Entry::option(
            "validation_by",
            Values::Words(By::names),
            Default::Word("row"),
            "whether to draw rows, or whole blocks, one of each run of 1 / validation_fraction",
        )
    },
    Entry {
        group: Some(Group::Validation),
        record: Some(|call| match &call.options.validation {
            Some(Validation::Column(column)) => Some(json!(column)),
            _ => None,
        }),
        ..Entry::option(
            "validation_column",
            Values::Column,
            Default::None,
            "a column of booleans, true for rows to hold out. Like group_by and weight, it is no feature unless it is named as \
             one; a NULL in it is one in the sense of nulls",
        )
    },
];
