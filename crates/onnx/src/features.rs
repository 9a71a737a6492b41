//! From a graph's inputs to the sums of the first layer.
//!
//! Numbers are multiplied by their weights. Of categories, buckets and sparse features the weights are looked up in
//! tables, a row for each, so that a column of a million categories costs what one has.

use crate::description::{Column, Description, Features, Instead, Kind, Logarithms};
use crate::graph::{Behind, Graph, Name, integer_attribute, integers_attribute, texts_attribute};
use crate::proto::Type;
use crate::{Error, NULL_TEXT};

/// What the features come to.
pub struct FirstLayer {
    /// a row of doubles for each row: the sums of the first layer, with its intercepts
    pub sums: Name,
    /// by row, each of them: is there no answer?
    pub unanswered: Vec<Name>,
}

/// Writes inputs, what is done to them, and the first layer.
pub fn write(graph: &mut Graph, model: &Description<'_>) -> Result<FirstLayer, Error> {
    let mut writer = Writer { model, units: model.layers[0].1, unanswered: Vec::new() };
    let sums = match &model.features {
        Features::Array(name) => writer.array(graph, name),
        Features::Columns(columns) => writer.columns(graph, columns)?,
        Features::Sparse { indices, values, base, unseen } => {
            let doc = format!("indices from {base}; -1 where a row has fewer entries than others");
            let indices = graph.input(indices, Type::Int64, Behind::Named(ENTRIES), doc);
            let doc = "the numbers at these indices".to_owned();
            let values = graph.input(values, Type::Float, Behind::Named(ENTRIES), doc);
            writer.sparse(graph, (&indices, &values), i64::from(*base), *unseen)
        }
    };
    Ok(FirstLayer { sums, unanswered: writer.unanswered })
}

/// The name of the dimension that is as long as the row with most entries.
const ENTRIES: &str = "entries";

/// The index that stands for no index.
const PADDING: i64 = -1;

/// The bucket of NULL, from outside.
const NULL_BUCKET: i64 = -1;

struct Writer<'a> {
    model: &'a Description<'a>,
    /// outputs of the first layer
    units: usize,
    unanswered: Vec<Name>,
}

/// Inputs of columns, in their order.
enum Input {
    Number(Name),
    Vector(Name, usize),
    Text(Name),
    Bucket(Name),
}

impl Writer<'_> {
    fn array(&mut self, graph: &mut Graph, name: &str) -> Name {
        let dim = self.model.layers[0].0;
        let given = graph.input(name, Type::Float, Behind::Fixed(dim), format!("numbers, NaN for NULL; {dim} of them"));
        let all: Vec<usize> = (0..dim).collect();
        let numbers = self.numbers(graph, &given, &all);
        self.products(graph, &numbers, &all)
    }

    fn columns(&mut self, graph: &mut Graph, columns: &[Column<'_>]) -> Result<Name, Error> {
        // before all else, so that nothing has their names
        let inputs: Vec<Input> = columns.iter().map(|column| input(graph, column)).collect();
        let mut first = 0;
        let (mut numbers, mut features) = (Vec::new(), Vec::new());
        let (mut texts, mut hashed) = (Vec::new(), Vec::new());
        for (column, input) in columns.iter().zip(&inputs) {
            match (&column.kind, input) {
                (Kind::Categories { values, null, unseen }, Input::Text(name)) => {
                    if values.iter().any(|value| value == NULL_TEXT) {
                        return Err(Error::NullText(column.name.to_owned()));
                    }
                    let width = values.len() + usize::from(*null == Instead::Place(values.len()));
                    texts.push((name, *values, first, width, [*null, *unseen]));
                    first += width;
                }
                (Kind::Hashed { buckets, null }, Input::Bucket(name)) => hashed.push((name, *buckets as usize, *null)),
                (_, Input::Vector(name, len)) => {
                    numbers.push(name.clone());
                    features.extend(first..first + len);
                    first += len;
                }
                (_, Input::Number(name) | Input::Text(name) | Input::Bucket(name)) => {
                    numbers.push(graph.unsqueezed(name, 1));
                    features.push(first);
                    first += 1;
                }
            }
        }
        let mut sums = if numbers.is_empty() {
            self.intercepts(graph)
        } else {
            let given: Vec<&Name> = numbers.iter().collect();
            let given = graph.node_with("Concat", &given, vec![integer_attribute("axis", 1)]);
            let numbers = self.numbers(graph, &given, &features);
            self.products(graph, &numbers, &features)
        };
        for (name, values, first, width, instead) in texts {
            let places = self.places(graph, name, values, width, instead);
            let table = self.table(graph, first, width, 2);
            let weights = self.looked_up(graph, &table, &places);
            sums = graph.node("Add", &[&sums, &weights]);
        }
        if let Some((_, buckets, _)) = hashed.first() {
            let table = self.table(graph, first, *buckets, 1);
            for (name, buckets, null) in hashed {
                let places = self.buckets(graph, name, buckets, null);
                let weights = self.looked_up(graph, &table, &places);
                sums = graph.node("Add", &[&sums, &weights]);
            }
        }
        Ok(sums)
    }

    // ------------------------------------------------------------------------------------------------------- numbers

    /// Floats, a column for each of these features, as the doubles that the weights are for.
    fn numbers(&mut self, graph: &mut Graph, given: &Name, features: &[usize]) -> Name {
        let (filled, unfit) = match self.model.fill {
            Some(fill) => {
                let fill = graph.floats(&[1, features.len()], features.iter().map(|i| fill[*i]));
                let (missing, infinite) = (graph.node("IsNaN", &[given]), graph.node("IsInf", &[given]));
                (graph.node("Where", &[&missing, &fill, given]), infinite)
            }
            None => (given.clone(), graph.is_unfit(given)),
        };
        self.unanswered.push(graph.any(&unfit));
        let zero = graph.float(0.0);
        let floats = graph.node("Where", &[&unfit, &zero, &filled]);
        let mut numbers = graph.cast(&floats, Type::Double);
        let logarithms = &self.model.logarithms;
        if features.iter().any(|i| logarithms.contains(*i)) {
            let chosen =
                graph.floats(&[1, features.len()], features.iter().map(|i| f32::from(logarithms.contains(*i))));
            numbers = logarithm(graph, &numbers, &chosen);
        }
        if let Some((mean, scale)) = self.model.scaling {
            let mean = graph.doubles(&[1, features.len()], features.iter().map(|i| mean[*i]));
            let factor = graph.doubles(&[1, features.len()], features.iter().map(|i| scale[*i].recip()));
            numbers = self.standardized(graph, &numbers, [&mean, &factor]);
        }
        numbers
    }

    /// (number - mean) * factor, cut off if it is to be.
    fn standardized(&self, graph: &mut Graph, numbers: &Name, [mean, factor]: [&Name; 2]) -> Name {
        let centred = graph.node("Sub", &[numbers, mean]);
        let scaled = graph.node("Mul", &[&centred, factor]);
        let rounded = graph.rounded(&scaled);
        match self.model.clip {
            None => rounded,
            Some(clip) => {
                let (least, most) = (graph.double(f64::from(-clip)), graph.double(f64::from(clip)));
                graph.node("Clip", &[&rounded, &least, &most])
            }
        }
    }

    /// The sums of these features' products with their weights, and of the intercepts.
    fn products(&self, graph: &mut Graph, numbers: &Name, features: &[usize]) -> Name {
        let (dim, weights) = (self.model.layers[0].0, self.weights());
        let those = (0..self.units).flat_map(|unit| features.iter().map(move |i| weights[unit * dim + i]));
        let weights = graph.floats(&[self.units, features.len()], those);
        let intercepts = self.intercepts(graph);
        product(graph, numbers, &weights, &intercepts)
    }

    /// The first layer's weights.
    fn weights(&self) -> &[f32] {
        &self.model.weights[..self.model.layers[0].0 * self.units]
    }

    /// The first layer's intercepts, as doubles.
    fn intercepts(&self, graph: &mut Graph) -> Name {
        let intercepts = self.model.intercepts[..self.units].iter();
        graph.doubles(&[self.units], intercepts.map(|intercept| f64::from(*intercept)))
    }

    // -------------------------------------------------------------------------------------------------------- tables

    /// The weights of `count` features from `first` on, a row for each, times what the feature is if it is there, and
    /// rows of zeros behind them.
    fn table(&self, graph: &mut Graph, first: usize, count: usize, zeros: usize) -> Name {
        let (dim, units, weights) = (self.model.layers[0].0, self.units, self.weights());
        let values: Vec<f32> = (first..first + count).map(|i| self.value_of_one(i)).collect();
        let dims = [count + zeros, units];
        let weight = |i: usize, unit: usize| weights[unit * dim + first + i];
        let places = (0..count).flat_map(|i| (0..units).map(move |unit| (i, unit)));
        if values.iter().all(|value| *value == 1.0) {
            let none = std::iter::repeat_n(0.0, zeros * units);
            return graph.floats(&dims, places.map(|(i, unit)| weight(i, unit)).chain(none));
        }
        let none = std::iter::repeat_n(0.0, zeros * units);
        let product = |(i, unit): (usize, usize)| f64::from(weight(i, unit)) * f64::from(values[i]);
        graph.doubles(&dims, places.map(product).chain(none))
    }

    /// What the weights see of feature `i`, which is no number, where it is there.
    fn value_of_one(&self, i: usize) -> f32 {
        let scaling = self.model.scaling.and_then(|(mean, scale)| Some((mean.get(i)?, scale.get(i)?)));
        let Some((mean, scale)) = scaling else { return 1.0 };
        let value = ((1.0 - mean) * scale.recip()) as f32;
        self.model.clip.map_or(value, |clip| value.clamp(-clip, clip))
    }

    /// Rows of a table, as doubles.
    fn looked_up(&self, graph: &mut Graph, table: &Name, places: &Name) -> Name {
        let rows = graph.node_with("Gather", &[table, places], vec![integer_attribute("axis", 0)]);
        graph.cast(&rows, Type::Double)
    }

    /// Places of texts in a table of `width` rows, behind which are one for what counts for nothing, and one for what
    /// has no answer.
    fn places(
        &mut self,
        graph: &mut Graph,
        given: &Name,
        values: &[String],
        width: usize,
        instead: [Instead; 2],
    ) -> Name {
        let no_answer = width as i64 + 1;
        let [null, unseen] = instead.map(|instead| match instead {
            Instead::Place(place) => place as i64,
            Instead::Nothing => width as i64,
            Instead::NoAnswer => no_answer,
        });
        let keys = values.iter().map(String::as_str).chain([NULL_TEXT]);
        let attributes = vec![
            texts_attribute("keys_strings", keys),
            integers_attribute("values_int64s", (0..values.len() as i64).chain([null])),
            integer_attribute("default_int64", unseen),
        ];
        let places = graph.learning_node("LabelEncoder", &[given], attributes);
        if instead.contains(&Instead::NoAnswer) {
            let no_answer = graph.integer(no_answer);
            self.unanswered.push(graph.node("Equal", &[&places, &no_answer]));
        }
        places
    }

    /// Places of buckets in a table, which has a row more.
    fn buckets(&mut self, graph: &mut Graph, given: &Name, buckets: usize, null: Instead) -> Name {
        let mut bucket = given.clone();
        if let Instead::Place(place) = null {
            let (null, place) = (graph.integer(NULL_BUCKET), graph.integer(place as i64));
            let is_null = graph.node("Equal", &[given, &null]);
            bucket = graph.node("Where", &[&is_null, &place, given]);
        }
        let (first, beyond) = (graph.integer(0), graph.integer(buckets as i64));
        let (below, within) = (graph.node("Less", &[&bucket, &first]), graph.node("Less", &[&bucket, &beyond]));
        let above = graph.node("Not", &[&within]);
        let unfit = graph.node("Or", &[&below, &above]);
        let places = graph.node("Where", &[&unfit, &beyond, &bucket]);
        self.unanswered.push(unfit);
        places
    }

    // -------------------------------------------------------------------------------------------------------- sparse

    fn sparse(&mut self, graph: &mut Graph, given: (&Name, &Name), base: i64, unseen: Instead) -> Name {
        let (indices, values) = given;
        let dim = self.model.layers[0].0;
        let (padding, first) = (graph.integer(PADDING), graph.integer(base));
        let beyond = graph.integer(base + dim as i64);
        let is_padding = graph.node("Equal", &[indices, &padding]);
        let is_below = graph.node("Less", &[indices, &first]);
        let is_known = graph.node("Less", &[indices, &beyond]);
        let is_beyond = graph.node("Not", &[&is_known]);
        let is_used = {
            let is_within = graph.node("Not", &[&is_below]);
            graph.node("And", &[&is_within, &is_known])
        };
        let is_none = graph.node("Not", &[&is_padding]);
        let mut wrong = graph.node("And", &[&is_below, &is_none]);
        if unseen == Instead::NoAnswer {
            wrong = graph.node("Or", &[&wrong, &is_beyond]);
        }
        // a number counts if its index does
        let is_unfit = graph.is_unfit(values);
        let is_unfit = graph.node("And", &[&is_unfit, &is_used]);
        wrong = graph.node("Or", &[&wrong, &is_unfit]);
        self.unanswered.push(graph.any(&wrong));
        // places in a table that has a row more, for what does not count
        let (base, nowhere) = (graph.integer(base), graph.integer(dim as i64));
        let places = graph.node("Sub", &[indices, &base]);
        let places = graph.node("Where", &[&is_used, &places, &nowhere]);
        self.refuse_twice(graph, &places, &nowhere);

        let is_fit = {
            let is_fit = graph.node("Not", &[&is_unfit]);
            graph.node("And", &[&is_fit, &is_used])
        };
        let zero = graph.float(0.0);
        let values = graph.node("Where", &[&is_fit, values, &zero]);
        let mut values = graph.cast(&values, Type::Double);
        let logarithms = &self.model.logarithms;
        if !matches!(logarithms, Logarithms::None) {
            let chosen = (0..dim).map(|i| f32::from(logarithms.contains(i))).chain([0.0]);
            let chosen = graph.floats(&[dim + 1], chosen);
            let chosen = graph.node("Gather", &[&chosen, &places]);
            values = logarithm(graph, &values, &chosen);
        }
        if let Some((mean, scale)) = self.model.scaling {
            let mean = graph.doubles(&[dim + 1], mean.iter().copied().chain([0.0]));
            let factor = graph.doubles(&[dim + 1], scale.iter().map(|scale| scale.recip()).chain([0.0]));
            let (mean, factor) = (graph.node("Gather", &[&mean, &places]), graph.node("Gather", &[&factor, &places]));
            values = self.standardized(graph, &values, [&mean, &factor]);
        }
        let weights = {
            let (units, weights) = (self.units, self.weights());
            let rows = (0..dim).flat_map(|i| (0..units).map(move |unit| weights[unit * dim + i]));
            let table = graph.floats(&[dim + 1, units], rows.chain(std::iter::repeat_n(0.0, units)));
            self.looked_up(graph, &table, &places)
        };
        let values = graph.unsqueezed(&values, 2);
        let products = graph.node("Mul", &[&weights, &values]);
        let axis = graph.integers(&[1], [1]);
        let sums = graph.node_with("ReduceSum", &[&products, &axis], vec![integer_attribute("keepdims", 0)]);
        let intercepts = self.intercepts(graph);
        graph.node("Add", &[&sums, &intercepts])
    }

    /// There is no answer to a row in which a place is given twice: sorted, it is next to itself. A row and a column
    /// more are sorted, because onnxruntime divides by zero without any.
    fn refuse_twice(&mut self, graph: &mut Graph, places: &Name, nowhere: &Name) {
        let more = graph.integers(&[4], [0, 0, 1, 1]);
        let places = graph.node("Pad", &[places, &more, nowhere]);
        let shape = graph.node("Shape", &[&places]);
        let (one, first, last, end) = (
            graph.integers(&[1], [1]),
            graph.integers(&[1], [0]),
            graph.integers(&[1], [-1]),
            graph.integers(&[1], [i64::MAX]),
        );
        let count = graph.node_with("Gather", &[&shape, &one], vec![integer_attribute("axis", 0)]);
        let sorted = graph.sorted(&places, &count);
        let these = graph.node("Slice", &[&sorted, &first, &last, &one]);
        let others = graph.node("Slice", &[&sorted, &one, &end, &one]);
        let (same, known) = (graph.node("Equal", &[&these, &others]), graph.node("Less", &[&these, nowhere]));
        let twice = graph.node("And", &[&same, &known]);
        let twice = graph.any(&twice);
        self.unanswered.push(graph.node("Slice", &[&twice, &first, &last, &first]));
    }
}

fn input(graph: &mut Graph, column: &Column<'_>) -> Input {
    if let Kind::Vector(len) = column.kind {
        let doc = format!("numbers, NaN for NULL; {len} of them");
        return Input::Vector(graph.input(column.name, Type::Float, Behind::Fixed(len), doc), len);
    }
    let mut named = |r#type, doc: String| graph.input(column.name, r#type, Behind::Nothing, doc);
    match column.kind {
        Kind::Number | Kind::Vector(_) => Input::Number(named(Type::Float, "a number, NaN for NULL".to_owned())),
        Kind::Categories { .. } => Input::Text(named(Type::String, "a text, U+FFFF for NULL".to_owned())),
        Kind::Hashed { buckets, .. } => {
            let what = "XXH3 (64 bits) of the text, seeded by XXH3 of the column's name";
            let doc = format!("the bucket of a text, {what}, modulo {buckets}; -1 for NULL");
            Input::Bucket(named(Type::Int64, doc))
        }
    }
}

/// The doubles that are chosen (by a 1) by their logarithms, sign(x) ln(1 + |x|), with what rounding has taken from the
/// sum; the others as they are.
fn logarithm(graph: &mut Graph, numbers: &Name, chosen: &Name) -> Name {
    let one = graph.double(1.0);
    let size = graph.node("Abs", &[numbers]);
    let sum = graph.node("Add", &[&size, &one]);
    let logarithm = graph.node("Log", &[&sum]);
    let taken = graph.node("Sub", &[&sum, &one]);
    let lost = graph.node("Sub", &[&size, &taken]);
    let lost = graph.node("Div", &[&lost, &sum]);
    let logarithm = graph.node("Add", &[&logarithm, &lost]);
    let sign = graph.node("Sign", &[numbers]);
    let logarithm = graph.node("Mul", &[&sign, &logarithm]);
    let logarithm = graph.rounded(&logarithm);
    let zero = graph.float(0.0);
    let is_chosen = graph.node("Greater", &[chosen, &zero]);
    graph.node("Where", &[&is_chosen, &logarithm, numbers])
}

/// Doubles times weights, which lie output by output, and the intercepts.
pub fn product(graph: &mut Graph, inputs: &Name, weights: &Name, intercepts: &Name) -> Name {
    let weights = graph.cast(weights, Type::Double);
    graph.node_with("Gemm", &[inputs, &weights, intercepts], vec![integer_attribute("transB", 1)])
}
