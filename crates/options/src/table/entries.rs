//! The arguments and options themselves. Their order is that of `corgipile_options()`.
//!
//! One that says `name: Type` is a field of [`Options`], too: it is read by its type, and recorded as its type writes
//! it. The others are arguments, and what [hyperparameters](loss::Hyperparameters) are made of.

use super::default_texts::{
    default_batch_size, default_decay, default_epochs, default_loss_epsilon, default_optimizer, default_rate,
    default_solver,
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
use crate::rows::{By, ClassWeight, Clip, Hashing, Keep, Nulls, Prepare, Standardize, Transform, Unseen, whole};
use choices::Choice;
use errors::limits::MAX_WEIGHTS;
use loss::{Activation, Hidden, Hyperparameters, ModelKind, Optimizer, Output, Range, Schedule, Solver};
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
    /// what is trained on: the name of a table, view or the like, quoted and qualified as in SQL, a regclass, or a
    /// query: what begins with SELECT, WITH, VALUES, TABLE or (
    source = Entry {
        place: Place::Only("text"),
        ..argument("text", Any(Some("a table, a view or a query")), Default::None)
    };

    /// what is trained: a logistic regression, a support vector machine, a linear regression, a softmax regression, or
    /// a multilayer perceptron; its name, or what else it is called, in any case
    model = argument("text", Words(ModelKind::names), Default::Word("logistic")).warm_start(OfModel);

    /// the column to predict
    label = argument("text", Column, Default::Word("label")).warm_start(OfModel);

    /// one column of arrays; or two: indices and values of sparse features; or any number of columns of numbers, text
    /// and enums. {*}: all columns that can be features; {*,-a,-b}: all but these; {-a}: the default without it. By
    /// default columns features_k and features_v if both are there, or features_v alone; else the only compressed one;
    /// else all columns of numbers, booleans, text and enums but label, weight, group, validation column and what
    /// identifies rows (primary key, unique index, identity column, a name such as id, or by ANALYZE); but without
    /// numbers the only column of arrays. A notice tells what is left out
    features = argument(
        "text[]",
        Any(Some("names of columns")),
        Default::Depends(|_| "columns that the source has".into()),
    )
    .warm_start(OfModel);

    /// parts of dates and timestamps that are features in their place, as EXTRACT gives them, called column.part. true:
    /// year, month and dow, and the hour of timestamps. month, dow and hour are categories, the others numbers.
    /// Timestamps with a time zone are taken in UTC
    date_parts: DateParts = option(
        Read(
            "boolean or array",
            "true, false, or year, month, day, dow, hour, doy, epoch",
            || DateParts::WHAT.into(),
        ),
        Default::Boolean(false),
    );

    /// column of the rows' weights, numbers from 0, of which only how they compare counts. Of weight 2, a row is there
    /// twice, and of weight 0 not at all. It is no feature unless it is named as one
    weight: Option<String> = option(Column, Default::None).warm_start(Decisive);

    /// weights of classes, times those of the rows; labels that are not in the object have 1. balanced: all classes
    /// weigh the same
    class_weight: Option<ClassWeight> = option(
        Read("string or object", "balanced, or numbers from 0 by label", || ClassWeight::WHAT.into()),
        Default::None,
    )
    .named("text")
    .of(Models::Classifiers)
    .warm_start(Decisive);

    /// what to do with NULLs. impute: one in a feature of numbers is taken for the mean of the feature over the rows
    /// that have it, learned in a first pass, one in a column of text or an enum is a category of its own, and rows
    /// with any other NULL are left out. skip: rows with NULLs are left out. error. What is imputed or left out is
    /// counted, and the model predicts and is evaluated in the same way
    nulls: Option<Nulls> = option(Words(Nulls::names), Default::Word("impute")).named("text").warm_start(Decisive);

    /// learn mean and standard deviation of each number in a first pass, and train on (value - mean) / deviation;
    /// sparse features on value / deviation. auto: dense numbers but those that are 0 or 1, and the targets of model
    /// linear
    standardize: Standardize = option(
        Read("boolean or string", "true, false, auto", || Standardize::WHAT.into()),
        Default::Word(Standardize::AUTO),
    )
    .named("boolean")
    .warm_start(Decisive);

    /// numbers that are taken by sign and logarithm, sign(x) * ln(1 + |x|), before they are standardized. auto: columns
    /// whose values span decades, with a skewness beyond 6 or -6, of which little remains then, and where the label is
    /// a number, if that tells as much of it; not with another standardize than auto, and not in arrays. log: all
    /// numbers, those in arrays, too. An array, or {"log": an array}: these columns
    transform: Option<Transform> = option(
        Read("string, array or object", "auto, none, log, or an array of columns", || Transform::WHAT.into()),
        Default::Word(Transform::AUTO),
    )
    .warm_start(Fixed {
        unsaid: Some("none"),
        reason: "other numbers were transformed in its training",
        hint: "Leave option transform out to continue as it was trained.",
    });

    /// cut standardized features off at so many deviations from their mean, in prediction and evaluation, too, so that
    /// a few values far out do not decide over a network. auto: 5 if the network predicts numbers and standardize is
    /// auto, else none
    winsorize: Clip = option(
        Read("number or string", "a number above 0, auto, none", || Clip::WHAT.into()),
        Default::Word(Clip::AUTO),
    )
    .of(Models::Networks)
    .warm_start(Fixed {
        unsaid: Some(Clip::AUTO),
        reason: "its features were cut off elsewhere in its training",
        hint: "Leave option winsorize out to continue as it was trained.",
    });

    /// what the first sparse feature is called
    index_base: Option<u32> = option(Integer(0, 1), Default::Integer(1)).warm_start(Fixed {
        unsaid: None,
        reason: "it was trained with index_base {}",
        hint: "Leave option index_base out to continue as it was trained.",
    });

    /// number of sparse features; an index beyond is then an error
    dimensions: Option<usize> = option(Integer(1, MAX_WEIGHTS as u64), Default::Depends(|_| "largest index".into()));

    /// what to do, when predicting and evaluating, with a category that was not there in training, or a sparse index
    /// beyond the largest: take it for 0, so that it is none of those that are known, or an error
    handle_unknown: Option<Unseen> = option(Words(Unseen::names), Default::Word("ignore"));

    /// columns of text that are hashed: their values share a number of features, the buckets, instead of having one
    /// each. auto: columns with more than 10,000 categories (1,000 with networks), into 262,144 buckets (4,096; fewer
    /// with more than 16 classes). A number: the same columns, into so many buckets. An object: its columns and no
    /// others, as in {"buckets": 65536, "columns": ["url"]}. off, or 0: none
    hash: Option<Hashing> = option(
        Read("string, number or object", "auto, off, a number of buckets, or buckets and columns", Hashing::what),
        Default::Word(Hashing::AUTO),
    )
    .warm_start(Fixed {
        unsaid: None,
        reason: "its text columns were hashed differently",
        hint: "Leave option hash out to continue as it was trained.",
    });

    /// the model whose weights the training begins with; a number is an id unless you have a model of that name. Where
    /// neither rows nor options differ, its training goes on. max_epochs are those to come. What is not given is as in
    /// that training, but for max_epochs, prefetch, workers, servers, name, keep_versions, cache and verbose
    warm_start = argument("text", Any(Some("name or id of a model")), Default::None);

    /// which rows means, deviations, classes and the learning rate are taken from before the first epoch. sample: those
    /// of 1024 pages drawn at random, or all of a small table; if the first epoch then meets a class, a category or an
    /// extreme that these do not contain, the training begins again with all rows. exact: all rows
    statistics: Prepare = option(Words(Prepare::names), Default::Word("sample")).named("text");

    /// how many epochs are to be trained in all, where this call trains only the first of them: what depends on
    /// max_epochs is chosen for these. corgipile_train_in_steps() gives it
    planned_epochs: Option<u32> = option(Integer(1, i32::MAX as u64), Default::None).warm_start(Told);

    /// in a warm start, whether to measure the rows again before the first epoch. false: the training goes on with the
    /// means, scales and class weights of the training before, whatever the rows are now
    recompute_statistics: Option<bool> = option(Boolean, Default::Boolean(true)).warm_start(OfCall);

    /// a column of numbers, booleans, text or an enum: a model for each of its values
    // a model of a group goes on with the rows of its group
    group_by = argument("text", Column, Default::None).warm_start(Kept);

    /// how many of the rows to hold out for validation, drawn by the seed
    validation_fraction: Option<f64> = option(Number(Range::above(0.0).below(1.0)), Default::None)
        .named("float8")
        .in_group(Group::Validation);

    /// whether to draw rows, or whole blocks, one of each run of 1 / validation_fraction
    validation_by: By = Entry {
        needs: Some(Needs::Option("validation_fraction")),
        ..option(Words(By::names), Default::Word("row")).in_group(Group::Validation)
    };

    /// a column of booleans, true for rows to hold out. Like group_by and weight, it is no feature unless it is named
    /// as one; a NULL in it is one in the sense of nulls
    validation_column: Option<String> = option(Column, Default::None).in_group(Group::Validation);

    /// sgd, or newton for the exact optimum in a few epochs, of which each is one step of Newton's method; of up to
    /// 2000 features, without l1. It is the default of poisson for up to 256 features (32 with group_by)
    solver = option(Words(Solver::names), Default::Depends(default_solver))
        .named("text")
        .of(Models::Smooth)
        .warm_start(Fixed {
            unsaid: Some(Solver::ALL[0].0),
            reason: "it was trained with solver {}",
            hint: "Leave option solver out to continue as it was trained, or train another model without warm_start.",
        });

    /// how often each tuple is learned from. auto, with a learning_rate that is auto: 1,000,000 / rows, at most 100, up
    /// to 50,000 rows; 20 up to 250,000; then 5,000,000 / rows, at least 3; but 20 with as many features as rows
    max_epochs = Entry { in_grid: true, ..argument("int", Integer(1, MAX_EPOCHS), Default::Depends(default_epochs)) };

    /// stop early: by how much the loss must be below the lowest so far for an epoch to be better. The loss is that of
    /// the rows held out, if there are some
    tolerance = learning(
        Number(Range::from(0.0)),
        Default::Depends(|_| format!("{}, with patience", Stopping::TOLERANCE)),
    )
    .warm_start(Kept);

    /// stop after so many epochs in a row that are not better
    patience = learning(
        Integer(1, MAX_EPOCHS),
        Default::Depends(|_| format!("{}, with tolerance", Stopping::PATIENCE)),
    )
    .named("int")
    .warm_start(Kept);

    /// store the model of the last epoch, or that of the lowest loss
    keep: Keep = option(Words(Keep::names), Default::Word("last"));

    /// step size in the first epoch. auto: (1 - momentum) * batch_size / (mean |x|² + 1), of models svm and
    /// epsilon_insensitive a tenth of that, of quantile two fifths, of squared_hinge a half, of poisson divided by the
    /// mean of the labels, the features being standardized
    learning_rate = Entry {
        in_grid: true,
        ..argument("float8", Number(Hyperparameters::LEARNING_RATES), Default::Depends(default_rate))
    }
    .warm_start(Decisive);

    /// divide a step by 1 + learning_rate * curvature * (|x|² + 1), so that it cannot diverge, whatever the tuple; not
    /// with optimizer adam
    bounded_steps: Option<bool> = learning(Boolean, Default::Depends(|_| "if learning_rate is auto".into()))
        .of(Models::Linear)
        .in_group(Group::Optimizer);

    /// take for the model the mean of all iterates, weighted by the cube of the number of tuples before them; not with
    /// schedule theorem1
    averaging: Option<bool> = learning(Boolean, Default::Depends(|_| "if learning_rate is auto".into()))
        .of(Models::Linear);

    /// learning rate from epoch to epoch; theorem1 is for models without hidden layers
    schedule = learning(Words(|| Schedule::NAMES.to_vec()), Default::Word(Schedule::NAMES[0]))
        .named("text")
        .in_group(Group::Schedule);

    /// factor of the learning rate from epoch to epoch. auto, with a learning_rate that is auto: what makes it a
    /// hundredth, of quantile a thousandth, over the epochs that are auto
    decay = learning(Number(Schedule::DECAYS), Default::Depends(default_decay))
        .with(Group::Schedule, "schedule", "exponential");

    /// power of the epoch that divides the learning rate
    power = learning(Number(Schedule::POSITIVE), Default::Number(Schedule::POWER))
        .with(Group::Schedule, "schedule", "inverse_scaling");

    /// how convex the objective is
    mu = learning(Number(Schedule::POSITIVE), Default::Depends(|_| "l2".into()))
        .of(Models::Linear)
        .with(Group::Schedule, "schedule", "theorem1");

    /// how many buffers later the rates begin; the same for all sizes of mini-batches
    a = learning(Number(Schedule::SHIFTS), Default::Depends(|_| "by learning_rate".into()))
        .of(Models::Linear)
        .with(Group::Schedule, "schedule", "theorem1");

    /// what is done with a gradient
    optimizer = learning(Words(|| Optimizer::NAMES.to_vec()), Default::Depends(default_optimizer))
        .named("text")
        .in_group(Group::Optimizer);

    /// which part of a step goes into the next one
    momentum = learning(Number(Optimizer::BETAS), Default::Number(Optimizer::BETA))
        .with(Group::Optimizer, "optimizer", "momentum");

    /// how slowly the mean of the gradients changes
    beta1 = learning(Number(Optimizer::BETAS), Default::Number(Optimizer::BETA))
        .with(Group::Optimizer, "optimizer", "adam");

    /// how slowly the mean of the gradients' squares changes
    beta2 = learning(Number(Optimizer::BETAS), Default::Number(Optimizer::BETA2))
        .with(Group::Optimizer, "optimizer", "adam");

    /// added to the root of the mean of the squares
    epsilon = learning(Number(Optimizer::EPSILONS), Default::Number(Optimizer::EPSILON))
        .with(Group::Optimizer, "optimizer", "adam");

    /// tuples over which a gradient is averaged
    batch_size: Option<u32> = learning(
        Integer(1, Hyperparameters::MAX_BATCH_SIZE as u64),
        Default::Depends(default_batch_size),
    )
    .named("int");

    /// strength of the penalty l1 * |w|, which makes weights 0
    l1 = learning(Number(Hyperparameters::PENALTIES), Default::Number(0.0)).named("float8");

    /// strength of the penalty l2 / 2 * w^2; times learning_rate it is below 1
    l2 = learning(Number(Hyperparameters::PENALTIES), Default::Number(0.0)).named("float8");

    /// what a linear regression minimises, or an SVM: hinge or squared_hinge; each but squared_error and hinge is a model of
    /// this name, too. With poisson the prediction is e^z of the decision z, and labels are at least 0
    loss = option(
        Words(Loss::names),
        Default::Depends(|model| match model.map(Loss::of) {
            None => "squared_error, of svm hinge".into(),
            Some(loss) => loss.map_or("", Loss::name).into(),
        }),
    )
    .of(Models::WithLosses)
    .warm_start(Decisive);

    /// the fraction of the labels that are to be below the prediction
    quantile = learning(Number(Range::above(0.0).below(1.0)), Default::Number(0.5)).of(Models::LossNumber("quantile"));

    /// of huber, above 0: beyond so many times the scale of the residuals the loss is a line, as in scikit-learn's
    /// HuberRegressor; the scale is found along with the model. Of epsilon_insensitive: errors up to this, in units of
    /// the label, cost nothing
    loss_epsilon = learning(Number(Range::from(0.0)), Default::Depends(default_loss_epsilon))
        .of(Models::LossNumber("loss_epsilon"));

    /// fit probabilities to the decisions, by Platt scaling on the rows that are held out for validation; without such
    /// an option, these are a tenth of all rows; where a fraction of the rows are fewer than 500, on all rows, each
    /// fifth decided by a model of the others
    probability: bool = option(Boolean, Default::Boolean(false)).of(Models::WithoutProbabilities);

    /// predict a class or a number; by default a number if the label is of type real, float8 or numeric and its first
    /// values are neither whole nor few
    objective = option(Words(Objective::names), Default::Depends(|_| "by the label".into())).of(Models::Networks);

    /// units of the hidden layers, from the features on
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

    /// what hidden units compute
    activation = learning(Words(Activation::names), Default::Word("relu"))
        .of(Models::Networks);

    /// what the last layer means; by default sigmoid for two classes, softmax for more, identity for numbers
    output = learning(
        Words(Output::names),
        Default::Depends(|_| "by objective and classes".into()),
    )
    .of(Models::Networks)
    .warm_start(Kept);

    /// an object of arrays or an array of objects: a model for each point, side by side, from the same tuples
    grid = argument("jsonb", Any(Some("at most 1000 points")), Default::None);

    /// a name for the model: another version of it, if you have models of that name
    name = argument("text", Any(Some("1 to 1024 bytes")), Default::None);

    /// how many versions of the model are kept; 0: all. Older ones are deleted, and a notice names them. Never the
    /// deployed one, one with a comment, and one that is being used or continued. Of models without a name, those of
    /// older trainings of the same source, label and kind are deleted
    keep_versions: Option<u32> = option(
        Integer(0, 1_000_000),
        Default::Depends(|_| "setting corgipile.keep_versions".into()),
    )
    .warm_start(OfCall);

    /// an object with options: what few need, and any other argument but source, by its name. What is given twice has
    /// to be the same
    options = Entry { place: Place::Only("jsonb"), ..argument("jsonb", Any(Some("a JSON object")), Default::None) };

    /// a NOTICE after each epoch, with loss, score, tuples per second and the time that is left
    verbose: bool = option(Boolean, Default::Boolean(false)).named("boolean").warm_start(OfCall);

    /// processes that train together, the backend's own among them
    workers = argument("int", Integer(1, MAX_PROCESSES as u64), Default::Integer(1));

    /// where rows of foreign tables of postgres_fdw are trained on. off: here, where they come as by any query. auto:
    /// on their servers, if they can be, in step; else here, which is told. Names of servers, in an array or with
    /// commas: there, or it is an error. The servers need this extension, and this database dblink
    servers: Nodes = option(
        Read("string or array", "off, auto, or names of servers", || Nodes::WHAT.into()),
        Default::Word("off"),
    )
    .named("text")
    .warm_start(Told);

    /// the strategy by which rows are shuffled
    shuffle = argument("text", Words(|| Strategy::ALL.map(Strategy::name).to_vec()), Default::Word("corgipile"))
        .warm_start(Kept);

    /// determines the order, and the first weights of mlp. One that is drawn is stored with the model
    seed = argument("bigint", Any(None), Default::Depends(|_| "drawn".into())).warm_start(Kept);

    /// how much of the table is read at a place, such as 64kB; rounded down to whole pages. auto: 64kB where seeks are
    /// cheap, else up to 10MB
    block_size = argument("text", Any(Some("auto, or a size of at least one page")), Default::Word("auto"))
        .warm_start(Kept);

    /// how much of the table is held in the buffer in which tuples are mixed. auto: all of a table of up to 64MB; of a
    /// larger one 16MB where seeks are cheap, else 10% of its pages, also with a block_size, and then at least 10
    /// blocks. At most corgipile.max_buffer_memory
    buffer_size = argument("text", Any(Some("auto, a share such as 25%, or a size")), Default::Word("auto"))
        .warm_start(Kept);

    /// train on this part of the blocks only; which ones depends on seed, and does not change from epoch to epoch.
    /// buffer_size in percent is of what is read. Not for shuffle_once and epoch_shuffle, which copy the whole source;
    /// of a query that is spooled, a part of the spool is read
    sample = argument("float8", Number(Range::above(0.0).to(1.0)), Default::None).warm_start(Kept);

    /// where buffers are filled: in the training's process, in a worker beside it, or where it is faster
    prefetch = argument("text", Words(Loader::names), Default::Word("auto"));

    /// read the source together with other sessions that share it: a block that one of them has just read is drawn
    /// next. The order of blocks then depends on who else reads. For shuffle corgipile and block_only
    shared_scan: Option<bool> = option(Boolean, Default::Depends(|_| "the setting corgipile.shared_scan, off by default".into()))
        .named("boolean")
        .warm_start(OfCall);

    /// whether decoded tuples are kept for the next epochs: in memory or if they are dear to decode, in any case, or
    /// not
    cache: Option<CacheMode> = option(Words(CacheMode::names), Default::Word("auto")).warm_start(OfCall);
}
