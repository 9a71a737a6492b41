//! The arguments and options themselves. Their order is that of `corgipile_options()`.
//!
//! One that says `name: Type` is a field of [`Options`], too: it is read by its type, and recorded as its type writes
//! it. The others are arguments, and what [hyperparameters](loss::Hyperparameters) are made of.

use super::default_texts::{
    default_batch_size, default_decay, default_epochs, default_l2, default_loss_epsilon, default_model,
    default_optimizer, default_rate, default_solver,
};
use crate::cache::CacheMode;
use crate::date_parts::DateParts;
use crate::entry::Policy::{Decisive, Fixed, Kept, OfCall, OfModel, Told};
use crate::entry::Values::{Any, Boolean, Column, Integer, Number, Read, Words};
use crate::entry::{Default, Entry, Group, Models, Needs, Place, argument, learning, option, read};
use crate::loader::Loader;
use crate::loss::Loss;
use crate::nodes::Nodes;
use crate::objective::Objective;
use crate::rows::{
    By, ClassWeight, Clip, Hashing, Keep, Nulls, Prepare, Standardize, Transform, Unseen, UnseenGroup, whole,
};
use choices::Choice;
use errors::limits::MAX_WEIGHTS;
use loss::{Activation, Hidden, Hyperparameters, ModelKind, Optimizer, Output, Penalized, Range, Schedule, Solver};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sgd::Stopping;
use shuffle::{MAX_PROCESSES, Strategy};

/// Epochs that a training may take. Each leaves a row to be kept, whatever it cost.
const MAX_EPOCHS: u64 = 1_000_000;

/// Makes a list of entries, whose documentation is what users read, and a struct of those with a type.
macro_rules! entries {
    ($($(#[doc = $line:literal])* $name:ident $(: $type:ty)? = $entry:expr;)*) => {
        /// What `options` say beyond the hyperparameters.
        #[derive(Default, Clone, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Options {
            $($(#[serde(skip_serializing_if = "is_default")] pub $name: $type,)?)*
        }

        pub const ENTRIES: &[Entry] = &[$(Entry {
            name: stringify!($name),
            description: concat!($($line),*).trim_ascii_start(),
            $(read: Some(read::<$type>),)?
            ..$entry
        }),*];
    };
}

fn is_default<T: std::default::Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Sizes of hidden layers. With more units, not even one feature would make a model that can be stored.
fn hidden_layer_sizes(value: &Value) -> Option<Value> {
    let size = |value| whole(value, 1, MAX_WEIGHTS as u64).map(|size| size as u32);
    let sizes: Option<Vec<u32>> = value.as_array()?.iter().map(size).collect();
    Hidden::new(&sizes?).map(|hidden| json!(hidden))
}

entries! {
    /// where the training rows come from: the name of a table or view, quoted and qualified as in SQL, a regclass, or a
    /// query that begins with SELECT, WITH, VALUES, TABLE or (
    source = Entry {
        place: Place::Only("text"),
        ..argument("text", Any(Some("a table, a view or a query")), Default::None)
    };

    /// the kind of model: logistic regression, support vector machine, linear regression, softmax regression,
    /// multilayer perceptron and others, by name or alias, in upper or lower case. auto: logistic for two classes,
    /// softmax for more, linear for numbers
    model = argument("text", Words(ModelKind::names), Default::Depends(default_model)).warm_start(OfModel);

    /// the column to predict
    label = argument("text", Column, Default::Word("label")).warm_start(OfModel);

    /// any number of columns of numbers, text, enums, arrays of numbers or of text, vectors, tsvector and JSON; or two
    /// columns, indices and values of sparse features. {*}: all possible columns; {*,-a,-b}: all but these; {-a}: the
    /// default without it. By default, columns features_k and features_v if both exist, or features_v alone; else the
    /// only compressed column; else all columns of numbers, booleans, text, enums, arrays of numbers and vectors, and
    /// parts of dates (date_parts), except label, weight, group, validation column, and columns that identify rows
    /// (primary key, unique index, identity column, a name such as id, or by a sample of the rows) or have one value;
    /// or else words, keys of JSON or the only column of bytes. Texts that are numbers but for codes, and dates, are
    /// read as such. A notice lists what was chosen
    features = argument(
        "text[]",
        Any(Some("names of columns")),
        Default::Depends(|_| "columns that the source has".into()),
    )
    .warm_start(OfModel);

    /// parts of dates and timestamps, as EXTRACT returns them, as features named column.part, and of texts that are
    /// dates. auto: year, month and dow, and hour for timestamps, of dates that recur. true: the same of every date and
    /// of the column that folds_by_time names. false: dates are no features. month, dow and hour are categories, the
    /// others numbers. Timestamps with a time zone are converted to UTC
    date_parts: DateParts = option(
        Read(
            "boolean, text or array",
            "auto, true, false, or year, month, day, dow, hour, doy, epoch",
            || DateParts::WHAT.into(),
        ),
        Default::Word("auto"),
    );

    /// column of row weights: numbers from 0, of which only the ratios matter. A row of weight 2 counts twice, a row of
    /// weight 0 not at all. The column is not a feature unless named as one
    weight: Option<String> = option(Column, Default::None).warm_start(Decisive);

    /// weights of classes, multiplied with those of the rows; labels missing from the object have weight 1. balanced:
    /// all classes have the same total weight
    class_weight: Option<ClassWeight> = option(
        Read("string or object", "balanced, or numbers from 0 by label", || ClassWeight::WHAT.into()),
        Default::None,
    )
    .named("text")
    .of(Models::Classifiers)
    .warm_start(Decisive);

    /// the label that evaluations take for the positive one: precision, recall, F1 and the area under the curve of
    /// precision and recall are those of this label. By default the greater of two numbers, or true; of text and
    /// enums, the means over all labels
    positive: Option<String> = option(
        Read("string", "a label", || "a string, one of the labels".into()),
        Default::None,
    )
    .named("text")
    .of(Models::Classifiers);

    /// what to do with NULLs. impute: a NULL in a numeric feature is replaced by the feature's mean over the rows that
    /// have it, computed in a first pass; a NULL in a column of text or an enum is a category of its own; rows with any
    /// other NULL are left out. skip: rows with NULLs are left out. error: a NULL is an error. Imputed and skipped rows
    /// are counted, and prediction and evaluation treat NULLs in the same way
    nulls: Option<Nulls> = option(Words(Nulls::names), Default::Word("impute")).named("text").warm_start(Decisive);

    /// compute mean and standard deviation of each numeric feature in a first pass, and train on (value - mean) /
    /// deviation, for sparse features on value / deviation. auto: dense numbers that are not only 0 or 1, and the
    /// targets of model linear
    standardize: Standardize = option(
        Read("boolean or string", "true, false, auto", || Standardize::WHAT.into()),
        Default::Word(Standardize::AUTO),
    )
    .named("boolean")
    .warm_start(Decisive);

    /// numeric features to transform by sign(x) * ln(1 + |x|) before they are standardized. auto: columns whose values
    /// span orders of magnitude (skewness beyond 6 or -6, and much lower afterwards) and, if the label is a number,
    /// that predict it no worse then; only if standardize is auto, and not in arrays. log: all numbers, also those in
    /// arrays. An array, or {"log": an array}: these columns
    transform: Option<Transform> = option(
        Read("string, array or object", "auto, none, log, or an array of columns", || Transform::WHAT.into()),
        Default::Word(Transform::AUTO),
    )
    .warm_start(Fixed {
        unsaid: Some("none"),
        reason: "other numbers were transformed in its training",
        hint: "Leave option transform out to continue as it was trained.",
    });

    /// limit standardized features to this number of standard deviations from their mean, also in prediction and
    /// evaluation, so that a few outliers do not dominate a network. auto: 5 if the network predicts numbers and
    /// standardize is auto, else none
    winsorize: Clip = option(
        Read("number or string", "a number above 0, auto, none", || Clip::WHAT.into()),
        Default::Word(Clip::AUTO),
    )
    .of(Models::Networks)
    .warm_start(Fixed {
        unsaid: Some(Clip::AUTO),
        reason: "its features were clipped at other values in its training",
        hint: "Leave option winsorize out to continue as it was trained.",
    });

    /// index of the first sparse feature
    index_base: Option<u32> = option(Integer(0, 1), Default::Integer(1)).warm_start(Fixed {
        unsaid: None,
        reason: "it was trained with index_base {}",
        hint: "Leave option index_base out to continue as it was trained.",
    });

    /// number of sparse features; a larger index is then an error
    dimensions: Option<usize> = option(Integer(1, MAX_WEIGHTS as u64), Default::Depends(|_| "largest index".into()));

    /// what to do in prediction and evaluation with a category, or a sparse index, that did not occur in training.
    /// ignore: treat it as none of the known ones. error: raise an error
    handle_unknown: Option<Unseen> = option(Words(Unseen::names), Default::Word("ignore"));

    /// text columns to hash: their values share a number of features, the buckets, instead of having one feature each.
    /// auto: columns with more than 10,000 categories (1,000 with networks), into 262,144 buckets (4,096; fewer with
    /// more than 16 classes). A number: the same columns, into this number of buckets. An object: only its columns, as
    /// in {"buckets": 65536, "columns": ["url"]}. off, or 0: none
    hash: Option<Hashing> = option(
        Read("string, number or object", "auto, off, a number of buckets, or buckets and columns", Hashing::what),
        Default::Word(Hashing::AUTO),
    )
    .warm_start(Fixed {
        unsaid: None,
        reason: "its text columns were hashed differently",
        hint: "Leave option hash out to continue as it was trained.",
    });

    /// the model whose weights the training starts from; a number is an id, unless you have a model of that name. If
    /// neither rows nor options differ, its training continues. max_epochs counts the further epochs. Options that are
    /// not given are as in that training, except max_epochs, prefetch, workers, servers, name, keep_versions, cache and
    /// verbose
    warm_start = argument("text", Any(Some("name or id of a model")), Default::None);

    /// which rows determine means, deviations, classes and the learning rate before the first epoch. sample: the rows
    /// of 1024 random pages, or all rows of a small table; if the first epoch then meets a class, a category or an
    /// extreme value that is not in the sample, the training begins again with all rows. exact: all rows
    statistics: Prepare = option(Words(Prepare::names), Default::Word("sample")).named("text");

    /// total number of epochs, if this call trains only the first of them: what depends on max_epochs is chosen for
    /// this number. corgipile_train_in_steps() sets it
    planned_epochs: Option<u32> = option(Integer(1, i32::MAX as u64), Default::None).warm_start(Told);

    /// in a warm start, whether to compute the statistics of the rows again before the first epoch. false: keep the
    /// means, scales and class weights of the previous training, even if the rows have changed
    recompute_statistics: Option<bool> = option(Boolean, Default::Boolean(true)).warm_start(OfCall);

    /// a column of numbers, booleans, text or an enum: trains one model for each of its values
    // a model of a group goes on with the rows of its group
    group_by = argument("text", Column, Default::None).warm_start(Kept);

    /// with group_by: what the model answers, under the name given as name, to a row whose group did not occur in
    /// training. error: an error. null: NULL. all: the prediction of one more model, which is trained on all rows
    unseen_group: UnseenGroup =
        option(Words(UnseenGroup::names), Default::Word("error")).named("text").warm_start(Told);

    /// fraction of the rows to hold out for validation, drawn with the seed
    validation_fraction: Option<f64> = option(Number(Range::above(0.0).below(1.0)), Default::None)
        .named("float8")
        .in_group(Group::Validation);

    /// whether to draw single rows, or whole blocks: one of each run of 1 / validation_fraction blocks
    validation_by: By = Entry {
        needs: Some(Needs::Option("validation_fraction")),
        ..option(Words(By::names), Default::Word("row")).in_group(Group::Validation)
    };

    /// a boolean column, true for rows to hold out. Like group_by and weight, it is not a feature unless named as one;
    /// its NULLs are treated as nulls says
    validation_column: Option<String> = option(Column, Default::None).in_group(Group::Validation);

    /// sgd, or newton for the exact optimum in a few epochs, each of which is one step of Newton's method; for at most
    /// 2000 features, without l1. newton is the default of poisson with at most 256 features (32 with group_by)
    solver = option(Words(Solver::names), Default::Depends(default_solver))
        .named("text")
        .of(Models::Smooth)
        .warm_start(Fixed {
            unsaid: Some(Solver::ALL[0].0),
            reason: "it was trained with solver {}",
            hint: "Leave option solver out to continue as it was trained, or train another model without warm_start.",
        });

    /// maximum number of epochs. auto, with learning_rate auto: 1,000,000 / rows, at most 100, up to 50,000 rows; 20 up
    /// to 250,000 rows; then 5,000,000 / rows, at least 3; but 20 if there are as many features as rows
    max_epochs = Entry { in_grid: true, ..argument("int", Integer(1, MAX_EPOCHS), Default::Depends(default_epochs)) };

    /// for early stopping: an epoch is an improvement if its loss is lower than the lowest so far by more than this.
    /// The loss is that of the held-out rows, if there are any
    tolerance = learning(
        Number(Range::from(0.0)),
        Default::Depends(|_| format!("{}, with patience", Stopping::TOLERANCE)),
    )
    .warm_start(Kept);

    /// for early stopping: stop after this number of consecutive epochs without improvement
    patience = learning(
        Integer(1, MAX_EPOCHS),
        Default::Depends(|_| format!("{}, with tolerance", Stopping::PATIENCE)),
    )
    .named("int")
    .warm_start(Kept);

    /// store the model of the last epoch, or that of the epoch with the lowest loss
    keep: Keep = option(Words(Keep::names), Default::Word("last"));

    /// step size in the first epoch. auto, computed on standardized features: (1 - momentum) * batch_size / (mean |x|²
    /// + 1); for svm and epsilon_insensitive a tenth of that, for quantile two fifths, for squared_hinge a half; for
    /// poisson divided by the mean of the labels
    learning_rate = Entry {
        in_grid: true,
        ..argument("float8", Number(Hyperparameters::LEARNING_RATES), Default::Depends(default_rate))
    }
    .warm_start(Decisive);

    /// divide each step by 1 + learning_rate * curvature * (|x|² + 1), so that no tuple can make it diverge; not with
    /// optimizer adam
    bounded_steps: Option<bool> = learning(Boolean, Default::Depends(|_| "if learning_rate is auto".into()))
        .of(Models::Linear)
        .in_group(Group::Optimizer);

    /// use the mean of all iterates as the model, weighted by the cube of the number of tuples before them; not with
    /// schedule theorem1
    averaging: Option<bool> = learning(Boolean, Default::Depends(|_| "if learning_rate is auto".into()))
        .of(Models::Linear);

    /// learning-rate schedule over the epochs; theorem1 is for models without hidden layers
    schedule = learning(Words(|| Schedule::NAMES.to_vec()), Default::Word(Schedule::NAMES[0]))
        .named("text")
        .in_group(Group::Schedule);

    /// factor of the learning rate from epoch to epoch. auto, with learning_rate auto: reduces it to a hundredth, for
    /// quantile to a thousandth, over the automatic number of epochs
    decay = learning(Number(Schedule::DECAYS), Default::Depends(default_decay))
        .with(Group::Schedule, "schedule", "exponential");

    /// exponent of the epoch number, whose power divides the learning rate
    power = learning(Number(Schedule::POSITIVE), Default::Number(Schedule::POWER))
        .with(Group::Schedule, "schedule", "inverse_scaling");

    /// strong convexity of the objective
    mu = learning(Number(Schedule::POSITIVE), Default::Depends(|_| "l2".into()))
        .of(Models::Linear)
        .with(Group::Schedule, "schedule", "theorem1");

    /// offset of the buffer number in the rates; does not depend on batch_size
    a = learning(Number(Schedule::SHIFTS), Default::Depends(|_| "by learning_rate".into()))
        .of(Models::Linear)
        .with(Group::Schedule, "schedule", "theorem1");

    /// how a step is computed from the gradient
    optimizer = learning(Words(|| Optimizer::NAMES.to_vec()), Default::Depends(default_optimizer))
        .named("text")
        .in_group(Group::Optimizer);

    /// fraction of a step that is added to the next one
    momentum = learning(Number(Optimizer::BETAS), Default::Number(Optimizer::BETA))
        .with(Group::Optimizer, "optimizer", "momentum");

    /// decay rate of the mean of the gradients
    beta1 = learning(Number(Optimizer::BETAS), Default::Number(Optimizer::BETA))
        .with(Group::Optimizer, "optimizer", "adam");

    /// decay rate of the mean of the squared gradients
    beta2 = learning(Number(Optimizer::BETAS), Default::Number(Optimizer::BETA2))
        .with(Group::Optimizer, "optimizer", "adam");

    /// number added to the root of the mean squared gradient
    epsilon = learning(Number(Optimizer::EPSILONS), Default::Number(Optimizer::EPSILON))
        .with(Group::Optimizer, "optimizer", "adam");

    /// tuples per mini-batch, over which a gradient is averaged
    batch_size: Option<u32> = learning(
        Integer(1, Hyperparameters::MAX_BATCH_SIZE as u64),
        Default::Depends(default_batch_size),
    )
    .named("int");

    /// strength of the penalty l1 * |w|, which sets weights to 0
    l1 = learning(Number(Hyperparameters::PENALTIES), Default::Number(0.0)).named("float8");

    /// strength of the penalty l2 / 2 * w^2; l2 * learning_rate must be below 1. auto, where learning_rate is auto, l1
    /// is not given and there is one model: with columns of categories in up to 100,000 rows 1 / rows or 10 / rows on
    /// their weights alone, if the loss on a fifth of the rows is less with it; else 0. Rows count by their weights w,
    /// as (sum of w)^2 / (sum of w^2)
    l2 = learning(Number(Hyperparameters::PENALTIES), Default::Depends(default_l2)).named("float8");

    /// which weights l2 is on: all, or those of categories only
    l2_on = Entry { needs: Some(Needs::Option("l2")), ..learning(Words(Penalized::names), Default::Word("all")) }
        .of(Models::Linear);

    /// the loss of a linear regression, or of an SVM: hinge or squared_hinge; all but squared_error and hinge are also
    /// models of this name. With poisson the prediction is e^z of the decision z, and labels are at least 0
    loss = option(
        Words(Loss::names),
        Default::Depends(|model| match model.map(Loss::of) {
            None => "squared_error, of svm hinge".into(),
            Some(loss) => loss.map_or("", Loss::name).into(),
        }),
    )
    .of(Models::WithLosses)
    .warm_start(Decisive);

    /// the fraction of labels that should be below the prediction
    quantile = learning(Number(Range::above(0.0).below(1.0)), Default::Number(0.5)).of(Models::LossNumber("quantile"));

    /// for huber, above 0: beyond this multiple of the residuals' scale the loss is linear, as in scikit-learn's
    /// HuberRegressor; the scale is estimated along with the model. For epsilon_insensitive: errors up to this, in
    /// units of the label, have no loss
    loss_epsilon = learning(Number(Range::from(0.0)), Default::Depends(default_loss_epsilon))
        .of(Models::LossNumber("loss_epsilon"));

    /// fit probabilities to the decisions by Platt scaling on the rows held out for validation; without a validation
    /// option, on a tenth of all rows; if a fraction of the rows is fewer than 500, on all rows by cross-fitting with
    /// five folds
    probability: bool = option(Boolean, Default::Boolean(false)).of(Models::WithoutProbabilities);

    /// predict a class or a number; by default a number if the label has type real, float8 or numeric and its first
    /// values are many and not all integers
    objective = option(Words(Objective::names), Default::Depends(|_| "by the label".into())).of(Models::Networks);

    /// units of each hidden layer, from the features to the output
    hidden_layer_sizes = Entry {
        read: Some(hidden_layer_sizes),
        ..learning(
            Read("array", "1 to 16 positive integers", || {
                format!("an array of 1 to {} integers from 1 to {MAX_WEIGHTS}", Hidden::MAX_LAYERS)
            }),
            Default::Depends(|_| format!("{:?}", Hidden::default().sizes())),
        )
    }
    .named("int[]")
    .of(Models::Networks)
    .warm_start(Kept);

    /// activation function of the hidden layers
    activation = learning(Words(Activation::names), Default::Word("relu"))
        .of(Models::Networks);

    /// output of the last layer; by default sigmoid for two classes, softmax for more, identity for numbers
    output = learning(
        Words(Output::names),
        Default::Depends(|_| "by objective and classes".into()),
    )
    .of(Models::Networks)
    .warm_start(Kept);

    /// an object of arrays or an array of objects: trains one model per point of the grid, all from the same pass over
    /// the tuples
    grid = argument("jsonb", Any(Some("at most 1000 points")), Default::None);

    /// a name for the model; if you have models of that name, it becomes their next version
    name = argument("text", Any(Some("1 to 1024 bytes")), Default::None);

    /// number of versions of the model to keep; 0 keeps all. Older ones are deleted, and a notice names them, except
    /// the deployed one, versions with a comment, and versions in use or being continued. Of models without a name,
    /// those of older trainings of the same source, label and kind are deleted
    keep_versions: Option<u32> = option(
        Integer(0, 1_000_000),
        Default::Depends(|_| "setting corgipile.keep_versions".into()),
    )
    .warm_start(OfCall);

    /// an object with further options, and any other argument except source, by name. An argument given twice must have
    /// the same value
    options = Entry { place: Place::Only("jsonb"), ..argument("jsonb", Any(Some("a JSON object")), Default::None) };

    /// raise a NOTICE after each epoch with loss, score, tuples per second and the remaining time
    verbose: bool = option(Boolean, Default::Boolean(false)).named("boolean").warm_start(OfCall);

    /// number of processes that train together, including the session's own
    workers = argument("int", Integer(1, MAX_PROCESSES as u64), Default::Integer(1));

    /// where to train on rows of postgres_fdw's foreign tables. off: here, where the rows are fetched as by any query.
    /// auto: on their servers in step, if possible, else here, with a NOTICE. Names of servers, in an array or
    /// separated by commas: on these servers, or an error. The servers need this extension, and this database needs
    /// dblink
    servers: Nodes = option(
        Read("string or array", "off, auto, or names of servers", || Nodes::WHAT.into()),
        Default::Word("off"),
    )
    .named("text")
    .warm_start(Told);

    /// the shuffling strategy
    shuffle = argument("text", Words(|| Strategy::ALL.map(Strategy::name).to_vec()), Default::Word("corgipile"))
        .warm_start(Kept);

    /// determines the order of the rows, and the initial weights of mlp. A random seed is stored with the model
    seed = argument("bigint", Any(None), Default::Depends(|_| "drawn".into())).warm_start(Kept);

    /// how much of the table is read at a time, such as 64kB; rounded down to whole pages. auto: 64kB if seeks are
    /// cheap, else up to 10MB
    block_size = argument("text", Any(Some("auto, or a size of at least one page")), Default::Word("auto"))
        .warm_start(Kept);

    /// how much of the table the buffer holds in which tuples are mixed. auto: a whole table of up to 64MB; of a larger
    /// one, 16MB if seeks are cheap, else 10% of its pages, also with a given block_size, and then at least 10 blocks.
    /// At most corgipile.max_buffer_memory
    buffer_size = argument("text", Any(Some("auto, a share such as 25%, or a size")), Default::Word("auto"))
        .warm_start(Kept);

    /// train on this fraction of the blocks only; which ones depends on seed, and does not change between epochs. A
    /// buffer_size in percent refers to them. Not for shuffle_once and epoch_shuffle, which copy the whole source; of a
    /// query that is spooled, a fraction of the spool is read
    sample = argument("float8", Number(Range::above(0.0).to(1.0)), Default::None).warm_start(Kept);

    /// fill buffers in a separate worker process (on), in the training process (off), or whichever is faster (auto)
    prefetch = argument("text", Words(Loader::names), Default::Word("auto"));

    /// read the source together with other sessions that use shared_scan: a block that another session has just read is
    /// drawn next. The order of blocks then depends on the other sessions. For shuffle corgipile and block_only
    shared_scan: Option<bool> = option(Boolean, Default::Depends(|_| "the setting corgipile.shared_scan, off by default".into()))
        .named("boolean")
        .warm_start(OfCall);

    /// whether decoded tuples are kept for the next epochs: only in memory or if decoding is expensive, always, or
    /// never
    cache: Option<CacheMode> = option(Words(CacheMode::names), Default::Word("auto")).warm_start(OfCall);
}
