//! What holds of every graph. What it computes is tested with onnxruntime: python/tests/test_onnx.py.

use super::*;
use crate::proto::{Length, Type};
use std::collections::HashSet;

const LIMIT: usize = 1 << 20;

/// A linear model of a column of arrays of two numbers.
fn plain<'a>() -> Description<'a> {
    Description {
        name: "plain",
        producer_version: "1",
        metadata: Vec::new(),
        features: Features::Array("x"),
        fill: None,
        logarithms: Logarithms::None,
        scaling: None,
        clip: None,
        layers: vec![(2, 1)],
        weights: &[0.5, -2.0],
        intercepts: &[0.25],
        activation: Activation::Relu,
        answer: Answer::Number,
    }
}

fn read(description: &Description<'_>) -> proto::Model {
    proto::Model::decode(&model(description, LIMIT).unwrap()[..]).unwrap()
}

fn names(infos: &[proto::ValueInfo]) -> Vec<&str> {
    infos.iter().map(|info| info.name.as_str()).collect()
}

/// Asserts that names are given once, that nodes take what is there before them, and that outputs are given.
fn assert_sound(model: &proto::Model) {
    let graph = model.graph.as_ref().unwrap();
    let mut known = HashSet::new();
    let constants = graph.initializer.iter().map(|tensor| &tensor.name);
    for name in graph.input.iter().map(|input| &input.name).chain(constants) {
        assert!(!name.is_empty() && known.insert(name), "{name} is there twice");
    }
    for node in &graph.node {
        node.input.iter().for_each(|name| assert!(known.contains(name), "{}: {name} is not there", node.op_type));
        node.output.iter().for_each(|name| assert!(known.insert(name), "{name} is there twice"));
        let domain = if node.op_type == "LabelEncoder" { proto::LEARNING } else { "" };
        assert_eq!(node.domain, domain);
    }
    assert!(!graph.output.is_empty());
    graph.output.iter().for_each(|output| assert!(known.contains(&output.name)));
    for tensor in &graph.initializer {
        let count: i64 = tensor.dims.iter().product();
        let found = match tensor.raw_data.as_ref().map(Vec::len) {
            None => tensor.string_data.len(),
            Some(bytes) if tensor.data_type == Type::Float as i32 => bytes / 4,
            Some(bytes) => bytes / 8,
        };
        assert_eq!(found, count as usize, "{}", tensor.name);
    }
}

/// Columns of all kinds: 2 numbers, 3 categories with that of NULLs, 4 buckets.
fn mixed(values: &[String]) -> Description<'_> {
    let column = |name, kind| Column { name, kind };
    let buckets = || Kind::Hashed { buckets: 4, null: Instead::Place(1) };
    Description {
        features: Features::Columns(vec![
            column("a", Kind::Number),
            column("c", Kind::Categories { values, null: Instead::Place(2), unseen: Instead::NoAnswer }),
            column("h", buckets()),
            column("b", Kind::Number),
            column("g", buckets()),
        ]),
        fill: Some(&[1.0, 0.0, 0.0, 0.0, 2.0]),
        logarithms: Logarithms::These(&[4]),
        scaling: Some((&[1.0, 0.0, 0.0, 0.0, 3.0], &[2.0, 1.0, 0.5, 1.0, 4.0])),
        clip: Some(1.5),
        layers: vec![(9, 2), (2, 3)],
        weights: &[
            1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0, 1.0,
            1.0, 2.0, 2.0, 3.0, 3.0,
        ],
        intercepts: &[0.5, 0.25, 1.0, 2.0, 3.0],
        ..plain()
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn graphs_of_all_shapes_are_sound() {
    let (values, labels) = (texts(&["x", "y"]), texts(&["p", "q", "r"]));
    let sparse = |unseen| Features::Sparse { indices: "k".into(), values: "v".into(), base: 1, unseen };
    assert_sound(&read(&plain()));
    assert_sound(&read(&Description { logarithms: Logarithms::All, clip: Some(1.0), ..plain() }));
    for unseen in [Instead::Nothing, Instead::NoAnswer] {
        assert_sound(&read(&Description { features: sparse(unseen), logarithms: Logarithms::All, ..plain() }));
        let scaling = Some((&[0.0, 0.0][..], &[1.0, 2.0][..]));
        assert_sound(&read(&Description { features: sparse(unseen), scaling, ..plain() }));
    }
    for activation in [Activation::Relu, Activation::Sigmoid, Activation::Tanh] {
        for probabilities in [Probabilities::None, Probabilities::Softmax, Probabilities::Sigmoid] {
            let answer =
                Answer::Classes { labels: &labels, values: Some(&[1.0, 2.0, 3.0]), probabilities, fitted: None };
            let read = read(&Description { activation, answer, ..mixed(&values) });
            assert_sound(&read);
            let outputs = read.graph.unwrap().output;
            let has = if probabilities == Probabilities::None { 3 } else { 4 };
            assert_eq!(outputs.len(), has);
        }
    }
    let fitted = Some(Fitted { factors: vec![2.0, 3.0, 4.0], terms: vec![0.5, 0.25, 0.125] });
    let answer = Answer::Classes { labels: &labels, values: None, probabilities: Probabilities::Sigmoid, fitted };
    let graph = read(&Description { answer, ..mixed(&values) });
    assert_sound(&graph);
    let operators = graph.graph.unwrap().node;
    assert!(operators.iter().any(|node| node.op_type == "Mul"), "each decision is multiplied");
}

#[test]
fn inputs_have_the_types_of_their_columns() {
    let values = texts(&["x", "y"]);
    let labels = texts(&["p", "q", "r"]);
    let answer = Answer::Classes { labels: &labels, values: None, probabilities: Probabilities::Softmax, fitted: None };
    let graph = read(&Description { answer, ..mixed(&values) }).graph.unwrap();
    let inputs = graph.input.iter().map(|input| {
        let tensor = input.r#type.as_ref().unwrap().tensor_type.as_ref().unwrap();
        let dims = tensor.shape.as_ref().unwrap().dim.iter().map(|dim| dim.value.clone().unwrap());
        (input.name.as_str(), tensor.elem_type, dims.collect::<Vec<_>>())
    });
    let rows = vec![Length::Named("rows".into())];
    let (float, text, bucket) = (Type::Float as i32, Type::String as i32, Type::Int64 as i32);
    let expected = [("a", float), ("c", text), ("h", bucket), ("b", float), ("g", bucket)];
    assert_eq!(inputs.collect::<Vec<_>>(), expected.map(|(name, r#type)| (name, r#type, rows.clone())));
    assert_eq!(names(&graph.output), ["label", "probabilities", "decisions"]);
}

#[test]
fn tables_have_what_a_feature_is_and_zeros_behind() {
    let values = texts(&["x", "y"]);
    let graph = read(&Description { layers: vec![(9, 1)], ..mixed(&values) }).graph.unwrap();
    let of = |dims: [i64; 2], r#type: Type| {
        let found = graph.initializer.iter().find(|t| t.dims == dims && t.data_type == r#type as i32);
        found.unwrap().raw_data.clone().unwrap()
    };
    // the second category is 1 / 0.5, cut off at 1.5
    let categories = of([5, 1], Type::Double);
    let doubles: Vec<f64> = categories.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(doubles, [2.0, 4.5, 4.0, 0.0, 0.0]);
    let buckets = of([5, 1], Type::Float);
    let floats: Vec<f32> = buckets.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(floats, [6.0, 7.0, 8.0, 9.0, 0.0]);
}

#[test]
fn no_column_has_the_name_of_anything_else() {
    let names_of_columns = ["value", "value_", "t1", "t2", "", "rows", "a", "a"];
    let columns = names_of_columns.map(|name| Column { name, kind: Kind::Number });
    let weights = [1.0; 8];
    let model = read(&Description {
        features: Features::Columns(columns.into()),
        layers: vec![(8, 1)],
        weights: &weights,
        ..plain()
    });
    assert_sound(&model);
    let graph = model.graph.unwrap();
    assert_eq!(names(&graph.input), ["value", "value_", "t1", "t2", "_", "rows", "a"]);
    assert_eq!(names(&graph.output), ["value__"]);
    // of another type, it is another input
    let features = Features::Sparse { indices: "k".into(), values: "k".into(), base: 0, unseen: Instead::Nothing };
    let model = read(&Description { features, ..plain() });
    assert_sound(&model);
    assert_eq!(names(&model.graph.unwrap().input), ["k", "k_"]);
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let values = texts(&["x", NULL_TEXT]);
    assert_eq!(model(&mixed(&values), LIMIT), Err(Error::NullText("c".into())));
    let bytes = model(&plain(), LIMIT).unwrap().len();
    assert!(model(&plain(), bytes).is_ok());
    assert_eq!(model(&plain(), bytes - 1), Err(Error::TooLarge(bytes)));
    // told before it is written
    assert_eq!(model(&plain(), 11), Err(Error::TooLarge(12)));
}
