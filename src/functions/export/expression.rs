//! A model as an expression in SQL, which needs no extension and says what corgipile_predict() says.
//!
//! Guarantees: numbers are written so that they are read to the same bits; whatever is called is qualified, and each
//! operator has the very types of one of PostgreSQL's own, so that nothing in a search path takes its place unless that
//! puts pg_catalog behind others; columns are named in one place, where no name of the expression is in scope. What
//! corgipile does in `real` is done in double precision here, and rounded to `real` where corgipile keeps a `real`
//! between two steps, so that what differs is the rounding of sums.
//!
//! The expression is a subquery, a chain of one-row steps: `r`, the columns; `x`, the features that are there, by
//! number, as the model wants them; `l1`, `l2`, ... the layers; `d`, the decisions; and what they mean.

use super::columns::{Columns, is_pair, kinds, refuse_words};
use choices::choice;
use errors::limits::MAX_SQL_NUMBERS;
use errors::{ArgumentError, ModelError, Result};
use loss::{Activation, Link, LogTransform, Output, ParametersView};
use model::{Categories, ColumnKind, FeatureKind, Model};
use options::rows::{Nulls, Unseen};
use pg::catalog::names::quote_literal;
use pg::check_for_interrupts;
use std::fmt::{LowerExp, Write};

choice! {
    /// Which of the functions the expression stands for.
    Answer {
        /// corgipile_predict()
        Value = "value",
        /// corgipile_predict_label()
        Label = "label",
        /// corgipile_predict_proba()
        Probabilities = "probabilities",
    }
}

pub fn expression(model: &Model, answer: Answer, source: Option<&str>) -> Result<String> {
    check_answer(model, answer)?;
    check_size(model)?;
    let columns = Columns::new(model, source)?;
    let mut sql = format!("(SELECT {}\n  FROM ({}) AS r", meaning(model, answer), columns.select());
    let entries = match &model.feature_kind {
        FeatureKind::Array => entries_of_array(model, &columns),
        FeatureKind::Sparse { index_base } => entries_of_sparse(model, &columns, *index_base),
        FeatureKind::Columns(_) => {
            sql += &categories(model, &columns);
            entries_of_columns(model, &columns)
        }
    };
    sql += &features(model, &entries);
    push_layers(&mut sql, model.linear());
    push_powers(&mut sql, model, answer);
    sql += &format!("\n WHERE {})", answerable(model, &columns));
    Ok(sql)
}

/// Refuses what the functions refuse, too.
fn check_answer(model: &Model, answer: Answer) -> Result<()> {
    let (reason, hint) = match answer {
        Answer::Value if model.kind.is_classifier() && model.values.is_none() => {
            ("predicts text labels, which are not numbers".to_owned(), "Use prediction => 'label'.")
        }
        Answer::Label if !model.kind.is_classifier() => {
            ("is a regression, which has no labels".to_owned(), "Use prediction => 'value'.")
        }
        Answer::Probabilities if !model.has_probabilities() => (
            format!("is {}, which has no probabilities", model.kind.description()),
            if model.kind.is_classifier() {
                "Use prediction => 'value' or 'label'."
            } else {
                "Use prediction => 'value'."
            },
        ),
        _ => return Ok(()),
    };
    let reason = format!("{} {reason}", model.in_error());
    Err(ArgumentError::InvalidArgument { argument: "prediction", reason, hint: Some(hint.to_owned()) }.into())
}

/// Refuses models that no expression can hold.
fn check_size(model: &Model) -> Result<()> {
    refuse_words(model, "an expression in SQL")?;
    if model.feature_kind.buckets() > 0 {
        return Err(ModelError::HashedInSql(model.in_error()).into());
    }
    let numbers = numbers_of(model);
    match numbers > MAX_SQL_NUMBERS {
        true => Err(ModelError::TooLargeForSql { model: model.in_error(), numbers }.into()),
        false => Ok(()),
    }
}

/// Numbers and categories that the expression of a model has.
pub fn numbers_of(model: &Model) -> usize {
    let ParametersView { weights, intercepts, .. } = model.linear();
    let scaling = model.scaling().map_or(0, |(mean, scale)| mean.len() + scale.len());
    let categories = kinds(model).iter().map(ColumnKind::width).sum::<usize>();
    weights.len() + intercepts.len() + scaling + model.fill().map_or(0, <[f32]>::len) + categories
}

// ------------------------------------------------------------------------------------------------------------ literals

/// Numbers as an array, each with the fewest digits that are read as the same bits.
fn numbers<T: LowerExp>(numbers: impl IntoIterator<Item = T>, type_name: &str) -> String {
    let mut sql = String::from("('{");
    for (i, number) in numbers.into_iter().enumerate() {
        if i % 65_536 == 0 {
            check_for_interrupts();
        }
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(sql, "{comma}{number:e}"); // no String refuses
    }
    sql + "}'::pg_catalog." + type_name + "[])"
}

fn reals(values: &[f32]) -> String {
    numbers(values, "float4")
}

fn doubles(values: impl IntoIterator<Item = f64>) -> String {
    numbers(values, "float8")
}

fn texts<'a>(texts: impl Iterator<Item = &'a String>) -> String {
    let quoted = |text: &String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let array = format!("{{{}}}", texts.map(quoted).collect::<Vec<_>>().join(","));
    format!("({}::pg_catalog.text[])", quote_literal(&array))
}

fn double(number: f64) -> String {
    format!("'{number:e}'::pg_catalog.float8")
}

/// An error when it is evaluated: there is no such value, and the message has it. `concat` is not evaluated beforehand.
pub(super) fn fail(type_name: &str, parts: &[&str]) -> String {
    format!("pg_catalog.concat({})::pg_catalog.{type_name}", parts.join(", "))
}

/// A double, which is named, as a double that a `real` has; SQL's own cast refuses what is next to nothing.
fn rounded(value: &str) -> String {
    // half of the least number above 0 of type real
    let tiny = double(2f64.powi(-150));
    let zero = double(0.0);
    format!(
        "CASE WHEN pg_catalog.abs({value}) <= {tiny} THEN {zero} ELSE {value}::pg_catalog.float4::pg_catalog.float8 END"
    )
}

/// e^-|value|, for a double that is named; SQL's own function refuses a result that is next to nothing.
fn falling_power(value: &str) -> String {
    let (least, zero) = (double(745.13), double(0.0));
    format!(
        "CASE WHEN pg_catalog.abs({value}) > {least} THEN {zero} ELSE pg_catalog.exp(- pg_catalog.abs({value})) END"
    )
}

/// e^value, for a double that is named; SQL's own function refuses a result that is next to nothing.
fn rising_power(value: &str) -> String {
    let (least, zero) = (double(-745.13), double(0.0));
    format!("CASE WHEN {value} < {least} THEN {zero} ELSE pg_catalog.exp({value}) END")
}

/// The logistic function of a double, both of which are named, and its e^-|value|.
fn logistic(value: &str, power: &str) -> String {
    let (zero, one) = (double(0.0), double(1.0));
    format!("CASE WHEN {value} < {zero} THEN {power} / ({one} + {power}) ELSE {one} / ({one} + {power}) END")
}

// ------------------------------------------------------------------------------------------------------------ features

/// A row for each element of a column of arrays or other vectors.
fn entries_of_array(model: &Model, columns: &Columns) -> String {
    let (array, dim) = (columns.array(0), model.dim());
    let given = fail("float8[]", &[&format!("'the model has {dim} features, and not '"), "pg_catalog.array_dims(a.a)"]);
    format!(
        "SELECT e.i::pg_catalog.int4 AS i, e.v FROM (SELECT {array} AS a) AS a CROSS JOIN LATERAL \
         pg_catalog.unnest(CASE WHEN pg_catalog.array_ndims(a.a) = 1 AND pg_catalog.cardinality(a.a) = {dim} \
         THEN a.a ELSE {given} END) WITH ORDINALITY AS e(v, i)"
    )
}

/// A row for each entry of a pair of columns, of indices and values, or of a column of sparse vectors.
fn entries_of_sparse(model: &Model, columns: &Columns, base: u32) -> String {
    let (first, last) = (i64::from(base), model.dim() as i64 - 1 + i64::from(base));
    let entries = if is_pair(model) {
        let (indices, values) = (format!("{}::pg_catalog.int8[]", columns.value(0)), columns.array(1));
        let lengths = fail(
            "int8[]",
            &["pg_catalog.cardinality(a.k)", "' indices, and '", "pg_catalog.cardinality(a.a)", "' values'"],
        );
        format!(
            "(SELECT {indices} AS k, {values} AS a) AS a CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(CASE WHEN \
             pg_catalog.cardinality(a.k) = pg_catalog.cardinality(a.a) THEN a.k ELSE {lengths} END), pg_catalog.unnest(a.a)) AS e(k, v)"
        )
    } else {
        let (text, dim) = (columns.text(0), model.dim());
        let dimensions = fail("text[]", &[&format!("'the model has {dim} features, and not those of '"), "a.t"]);
        format!(
            "(SELECT {text} AS t) AS a CROSS JOIN LATERAL (SELECT pg_catalog.split_part(p.p, ':', 1)::pg_catalog.int8 AS k, \
             pg_catalog.split_part(p.p, ':', 2)::pg_catalog.float8 AS v FROM pg_catalog.unnest(CASE WHEN \
             pg_catalog.split_part(a.t, '/', 2) = '{dim}' THEN pg_catalog.string_to_array(pg_catalog.btrim(\
             pg_catalog.split_part(a.t, '/', 1), '{{}}'), ',') ELSE {dimensions} END) AS p(p)) AS e"
        )
    };
    let below = fail("int8", &["'index '", "e.k", &format!("' is less than {first}'")]);
    let beyond = fail("int8", &["'index '", "e.k", &format!("' is beyond {last}'")]);
    let null = match model.nulls {
        Nulls::Error => fail("int8", &["'an index is NULL'"]),
        Nulls::Skip | Nulls::Impute => "NULL".to_owned(),
    };
    let (beyond, known) = match model.unseen {
        Unseen::Error => (beyond, String::new()),
        Unseen::Zero => ("e.k".to_owned(), format!(" WHERE (e.k <= {last}) IS NOT FALSE")),
    };
    format!(
        "SELECT (CASE WHEN e.k IS NULL THEN {null} WHEN e.k < {first} THEN {below} WHEN e.k > {last} THEN {beyond} \
         ELSE e.k END - {first} + 1)::pg_catalog.int4 AS i, CASE WHEN e.k IS NOT NULL THEN e.v END AS v FROM {entries}{known}"
    )
}

/// A step that looks up the categories of a row, in columns p1, p2, ... by feature column, if there are any: the place
/// of the category, 0 for one that counts for nothing, and NULL if there is no answer.
fn categories(model: &Model, columns: &Columns) -> String {
    let place = |(i, kind): (usize, &ColumnKind)| match kind {
        ColumnKind::Categories(known) => Some(format!("{} AS p{}", place(model, columns, i, known), i + 1)),
        ColumnKind::Number | ColumnKind::Vector(_) | ColumnKind::Hashed(_) => None,
    };
    let places: Vec<String> = kinds(model).iter().enumerate().filter_map(place).collect();
    match places.is_empty() {
        true => String::new(),
        false => format!("\n  CROSS JOIN LATERAL (SELECT {} OFFSET 0) AS p", places.join(",\n    ")),
    }
}

/// The place of the category that feature column `i` has.
fn place(model: &Model, columns: &Columns, i: usize, known: &Categories) -> String {
    let null = match (model.nulls, known.null()) {
        (Nulls::Skip, _) => "NULL".to_owned(),
        (Nulls::Impute, Some(place)) => (place + 1).to_string(),
        (Nulls::Impute, None) if model.unseen == Unseen::Zero => "0".to_owned(),
        _ => fail("int4", &[&format!("'feature {} is NULL'", i + 1)]),
    };
    let unseen = match model.unseen {
        Unseen::Zero => "0".to_owned(),
        Unseen::Error => {
            fail("int4", &[&format!("'the model does not know this category of feature {}: '", i + 1), "k.t"])
        }
    };
    let (values, text) = (texts(known.values().iter()), columns.text(i));
    // by its bytes, and only then by what the column's collation says of it
    format!(
        "(SELECT CASE WHEN k.t IS NULL THEN {null} ELSE COALESCE(pg_catalog.array_position(k.a, k.t COLLATE \
         pg_catalog.\"C\"), pg_catalog.array_position(k.a, k.t), {unseen}) END FROM (SELECT {values} AS a, {text} AS t \
         OFFSET 0) AS k)"
    )
}

/// A row for each column: a number, or 1 for the category that it has; for each element of a vector.
fn entries_of_columns(model: &Model, columns: &Columns) -> String {
    let (zero, one) = (double(0.0), double(1.0));
    let mut first = 1;
    let (mut rows, mut vectors) = (Vec::new(), Vec::new());
    for (i, kind) in kinds(model).iter().enumerate() {
        let place = format!("p.p{}", i + 1);
        match kind {
            ColumnKind::Vector(len) => vectors.push(entries_of_vector(&columns.array(i), i, *len, first)),
            ColumnKind::Categories(_) => rows.push(format!(
                "({} + GREATEST({place}, 1), CASE WHEN {place} > 0 THEN {one} WHEN {place} = 0 THEN {zero} END)",
                first - 1
            )),
            ColumnKind::Number | ColumnKind::Hashed(_) => rows.push(format!("({first}, {})", columns.number(i))),
        }
        first += kind.width();
    }
    if !rows.is_empty() {
        vectors.insert(0, format!("SELECT e.i, e.v FROM (VALUES {}) AS e(i, v)", rows.join(",\n    ")));
    }
    vectors.join("\n    UNION ALL ")
}

/// A row for each element of a vector, which feature column `i` has; all of them are NULL if the vector is.
fn entries_of_vector(array: &str, i: usize, len: usize, first: usize) -> String {
    let given = [&format!("'feature column {} has not {len} elements, but '", i + 1), "pg_catalog.array_dims(a.a)"];
    let given = fail("float8[]", &given);
    format!(
        "SELECT {} + s.s, e.v FROM pg_catalog.generate_series(1, {len}) AS s(s) LEFT JOIN (SELECT e.i, e.v FROM \
         (SELECT {array} AS a) AS a CROSS JOIN LATERAL pg_catalog.unnest(CASE WHEN a.a IS NULL OR \
         pg_catalog.array_ndims(a.a) = 1 AND pg_catalog.cardinality(a.a) = {len} THEN a.a ELSE {given} END) \
         WITH ORDINALITY AS e(v, i)) AS e ON e.i = s.s",
        first - 1
    )
}

/// A step that makes entries, feature numbers and values, into arrays of features as the model wants them: `x.i` and
/// `x.v`, and in `x.m` whether one is missing so that there is no answer.
fn features(model: &Model, entries: &str) -> String {
    let (least, zero) = (double(2f64.powi(-150)), double(0.0));
    // rounds to infinity
    let beyond = double(2f64.powi(128) - 2f64.powi(103));
    let is_sparse = model.feature_kind.index_base().is_some();
    let null = match (model.nulls, model.fill()) {
        (Nulls::Impute, Some(fill)) if !is_sparse => format!("{}[e.i]::pg_catalog.float8", reals(fill)),
        (Nulls::Error, _) | (Nulls::Impute, None) if !is_sparse || model.nulls == Nulls::Error => {
            fail("float8", &["'feature '", "e.i", "' is NULL'"])
        }
        _ => "NULL".to_owned(),
    };
    let unfit = fail("float8", &["'feature '", "e.i", "' is '", "e.v", "', and not in the range of real'"]);
    let mut rows = format!(
        "SELECT e.i, CASE WHEN e.v IS NULL THEN {null} WHEN pg_catalog.abs(e.v) <= {least} THEN {zero} \
         WHEN pg_catalog.abs(e.v) < {beyond} THEN e.v::pg_catalog.float4::pg_catalog.float8 ELSE {unfit} END AS v\n    \
         FROM ({entries} OFFSET 0) AS e OFFSET 0"
    );
    if let Some(logs) = &model.logs {
        rows = logarithms(logs, &rows);
    }
    if let Some((mean, scale)) = model.scaling() {
        rows = standardized((mean, scale), model.clip, &rows);
    }
    // of what is not sparse, each feature is there once
    let missing = if is_sparse {
        let twice = fail("bool", &["'an index is given twice'"]);
        format!(
            "CASE WHEN pg_catalog.count(e.i) > pg_catalog.count(DISTINCT e.i) THEN {twice} \
             ELSE COALESCE(pg_catalog.bool_or(e.v IS NULL), false) END"
        )
    } else {
        "pg_catalog.bool_or(e.v IS NULL)".to_owned()
    };
    format!(
        "\n  CROSS JOIN LATERAL (SELECT pg_catalog.array_agg(e.i ORDER BY e.i) AS i, pg_catalog.array_agg(e.v ORDER BY e.i) AS v, \
         {missing} AS m\n    FROM ({rows}) AS e OFFSET 0) AS x"
    )
}

/// Rows of which some are taken by their logarithms: sign(v) ln(1 + |v|), with what rounding has taken from the sum.
fn logarithms(logs: &LogTransform, rows: &str) -> String {
    let one = double(1.0);
    let is_one = match logs {
        LogTransform::All => "true".to_owned(),
        LogTransform::Features(features) => {
            let features: Vec<String> = features.iter().map(|feature| (feature + 1).to_string()).collect();
            format!("e.i = ANY ('{{{}}}'::pg_catalog.int4[])", features.join(","))
        }
    };
    format!(
        "SELECT e.i, CASE WHEN {is_one} THEN (pg_catalog.sign(e.v) * (pg_catalog.ln(e.y) + \
         (pg_catalog.abs(e.v) - (e.y - {one})) / e.y))::pg_catalog.float4::pg_catalog.float8 ELSE e.v END AS v\n    \
         FROM (SELECT e.i, e.v, {one} + pg_catalog.abs(e.v) AS y FROM ({rows}) AS e OFFSET 0) AS e OFFSET 0"
    )
}

/// Rows standardized, and cut off if they are to be.
fn standardized((mean, scale): (&[f64], &[f64]), clip: Option<f32>, rows: &str) -> String {
    let (mean, factor) = (doubles(mean.iter().copied()), doubles(scale.iter().map(|scale| scale.recip())));
    let mut scaled = format!("(e.v - {mean}[e.i]) * {factor}[e.i]");
    if let Some(clip) = clip {
        let (most, least) = (double(clip.into()), double(-f64::from(clip)));
        // NULL is not taken for an end
        scaled = format!("CASE WHEN e.v IS NOT NULL THEN GREATEST({least}, LEAST({most}, {scaled})) END");
    }
    let rounded = rounded("e.v");
    format!(
        "SELECT e.i, {rounded} AS v\n    FROM (SELECT e.i, {scaled} AS v FROM ({rows}) AS e OFFSET 0) AS e OFFSET 0"
    )
}

// -------------------------------------------------------------------------------------------------------------- layers

/// A step for each layer, whose outputs are array `o`, and `d`, with the decisions in array `z`.
fn push_layers(sql: &mut String, linear: ParametersView<'_>) {
    let (mut weights, mut intercepts) = (linear.weights, linear.intercepts);
    let layers: Vec<(usize, usize)> = match linear.network {
        Some(network) => network.layers(linear.dim, linear.outputs).collect(),
        None => vec![(linear.dim, linear.outputs)],
    };
    let mut entries = "ROWS FROM (pg_catalog.unnest(x.i), pg_catalog.unnest(x.v)) AS e(i, v)".to_owned();
    for (layer, (inputs, outputs)) in layers.iter().enumerate() {
        let (own, rest) = weights.split_at(inputs * outputs);
        let (own_intercepts, rest_intercepts) = intercepts.split_at(*outputs);
        (weights, intercepts) = (rest, rest_intercepts);
        let (own, own_intercepts, zero) = (reals(own), reals(own_intercepts), double(0.0));
        let activation = linear.network.filter(|_| layer + 1 < layers.len()).map(|network| network.activation);
        let (name, array, output) = match activation {
            Some(activation) => (format!("l{}", layer + 1), "o", activated(activation)),
            None => ("d".to_owned(), "z", "u.z".to_owned()),
        };
        // SQL's own operator refuses a product that is next to nothing, as that of a weight and a tiny output would be
        let rounded = rounded("a.v");
        let _ = write!(
            // no String refuses
            sql,
            "\n  CROSS JOIN LATERAL (SELECT pg_catalog.array_agg({rounded} ORDER BY a.k) AS {array}\n    \
             FROM (SELECT u.k, {output} AS v FROM (SELECT k.k, {power} AS e, k.z FROM (SELECT k.k, COALESCE((SELECT pg_catalog.sum(e.v * {own}\
             [(k.k - 1) * {inputs} + e.i]) FROM {entries}), {zero}) + {own_intercepts}[k.k] AS z\n      \
             FROM pg_catalog.generate_series(1, {outputs}) AS k(k) OFFSET 0) AS k OFFSET 0) AS u OFFSET 0) AS a OFFSET 0) AS {name}",
            power = if activation == Some(Activation::Sigmoid) { falling_power("k.z") } else { "NULL".to_owned() },
        );
        entries = format!("pg_catalog.unnest({name}.{array}) WITH ORDINALITY AS e(v, i)");
    }
}

/// What a hidden unit makes of `u.z`.
fn activated(activation: Activation) -> String {
    match activation {
        Activation::Sigmoid => logistic("u.z", "u.e"),
        Activation::Relu => format!("GREATEST(u.z, {})", double(0.0)),
        Activation::Tanh => "pg_catalog.tanh(u.z)".to_owned(),
    }
}

/// Steps for what probabilities consist of: array `s.z`, the decisions or what was fitted to them; and of one of them
/// `q.e`, of several array `q.e`, each divided by the greatest of them.
fn push_powers(sql: &mut String, model: &Model, answer: Answer) {
    if answer != Answer::Probabilities {
        return;
    }
    let linear = model.linear();
    let decisions = "pg_catalog.unnest(s.z) WITH ORDINALITY AS g(z, k)";
    *sql += &match &model.sigmoids {
        Some(sigmoids) => {
            let opposite = |numbers: Vec<f64>| doubles(numbers.into_iter().map(|number| -number));
            format!(
                "\n  CROSS JOIN LATERAL (SELECT pg_catalog.array_agg({}[g.k] * g.z + {}[g.k] ORDER BY g.k) AS z \
                 FROM pg_catalog.unnest(d.z) WITH ORDINALITY AS g(z, k) OFFSET 0) AS s",
                opposite(sigmoids.slopes()),
                opposite(sigmoids.offsets())
            )
        }
        None => "\n  CROSS JOIN LATERAL (SELECT d.z AS z) AS s".to_owned(),
    };
    if linear.outputs == 1 {
        *sql += &format!("\n  CROSS JOIN LATERAL (SELECT {} AS e OFFSET 0) AS q", falling_power("s.z[1]"));
        return;
    }
    let has_own = linear.network.is_some_and(|network| network.output == Output::Sigmoid) || model.sigmoids.is_some();
    let logs = if has_own {
        // of each output's own probability: -ln(1 + e^-z)
        let (zero, one) = (double(0.0), double(1.0));
        format!(
            "(SELECT g.k, LEAST(g.z, {zero}) - (pg_catalog.ln(g.y) + (g.e - (g.y - {one})) / g.y) AS z \
             FROM (SELECT g.k, g.z, g.e, {one} + g.e AS y FROM (SELECT g.k, g.z, {power} AS e FROM {decisions} OFFSET 0) \
             AS g OFFSET 0) AS g) AS g",
            power = falling_power("g.z"),
        )
    } else {
        decisions.to_owned()
    };
    let power = falling_power("g.z");
    *sql += &format!(
        "\n  CROSS JOIN LATERAL (SELECT pg_catalog.array_agg({power} ORDER BY g.k) AS e FROM (SELECT g.k, \
         g.z - pg_catalog.max(g.z) OVER () AS z FROM {logs} OFFSET 0) AS g OFFSET 0) AS q"
    );
}

/// What the decisions mean.
fn meaning(model: &Model, answer: Answer) -> String {
    let (zero, one) = (double(0.0), double(1.0));
    let outputs = model.linear().outputs;
    let class = match outputs {
        1 => format!("CASE WHEN d.z[1] > {zero} THEN 2 ELSE 1 END"),
        _ => "pg_catalog.array_position(d.z, (SELECT pg_catalog.max(g.z) FROM pg_catalog.unnest(d.z) AS g(z)))"
            .to_owned(),
    };
    match (answer, &model.values) {
        (Answer::Value, Some(values)) if model.kind.is_classifier() => {
            format!("{}[{class}]", doubles(values.iter().copied()))
        }
        (Answer::Value, _) => match model.kind.link() {
            Link::Identity => "d.z[1]".to_owned(),
            Link::Logarithm => rising_power("d.z[1]"),
        },
        (Answer::Label, _) => format!("{}[{class}]", texts(model.classes.iter())),
        (Answer::Probabilities, _) if outputs == 1 => {
            let (less, more) = (format!("q.e / ({one} + q.e)"), format!("{one} / ({one} + q.e)"));
            format!("CASE WHEN s.z[1] < {zero} THEN ARRAY[{more}, {less}] ELSE ARRAY[{less}, {more}] END")
        }
        (Answer::Probabilities, _) => {
            // divided by the sum, it would be nothing, which SQL's own operator refuses
            let least = double(1e-319);
            format!(
                "(SELECT pg_catalog.array_agg(CASE WHEN g.e < {least} THEN {zero} ELSE g.e / g.s END ORDER BY g.k) \
                 FROM (SELECT g.k, g.e, pg_catalog.sum(g.e) OVER () AS s \
                 FROM pg_catalog.unnest(q.e) WITH ORDINALITY AS g(e, k)) AS g)"
            )
        }
    }
}

/// When there is an answer: no array is NULL, and no feature is missing.
fn answerable(model: &Model, columns: &Columns) -> String {
    let arrays = match &model.feature_kind {
        FeatureKind::Columns(_) => 0,
        FeatureKind::Array | FeatureKind::Sparse { .. } => model.features.len(),
    };
    let of_array = |i: usize| match model.nulls {
        Nulls::Error => {
            let fails = fail("bool", &[&format!("'feature column {} is NULL'", i + 1)]);
            format!("CASE WHEN {} IS NULL THEN {fails} ELSE true END AND ", columns.value(i))
        }
        Nulls::Skip | Nulls::Impute => format!("{} IS NOT NULL AND ", columns.value(i)),
    };
    (0..arrays).map(of_array).collect::<String>() + "NOT x.m"
}
