//! The layers behind the first, up to the decisions.

use crate::description::{Activation, Description};
use crate::features::{FirstLayer, product};
use crate::graph::{Graph, Name};
use crate::proto::Type;

/// What a model decides.
pub struct Decisions {
    /// a row of floats for each row
    pub floats: Name,
    /// the same as doubles
    pub doubles: Name,
    /// by row: is there no answer?
    pub unanswered: Name,
}

/// Writes them.
pub fn write(graph: &mut Graph, model: &Description<'_>, features: FirstLayer) -> Decisions {
    let FirstLayer { mut sums, mut unanswered } = features;
    let (inputs, outputs) = model.layers[0];
    let (mut weights, mut intercepts) = (&model.weights[inputs * outputs..], &model.intercepts[outputs..]);
    for (inputs, outputs) in &model.layers[1..] {
        let (own, rest) = weights.split_at(inputs * outputs);
        let (own_intercepts, rest_intercepts) = intercepts.split_at(*outputs);
        (weights, intercepts) = (rest, rest_intercepts);
        let activated = match model.activation {
            Activation::Sigmoid => graph.node("Sigmoid", &[&sums]),
            Activation::Relu => graph.node("Relu", &[&sums]),
            Activation::Tanh => graph.node("Tanh", &[&sums]),
        };
        let own = graph.floats(&[*outputs, *inputs], own.iter().copied());
        let own_intercepts = graph.doubles(&[*outputs], own_intercepts.iter().map(|intercept| f64::from(*intercept)));
        sums = product(graph, &activated, &own, &own_intercepts);
    }
    let floats = graph.cast(&sums, Type::Float);
    let doubles = graph.cast(&floats, Type::Double);
    // a sum beyond the range of float is no answer either
    let unfit = graph.is_unfit(&floats);
    unanswered.push(graph.any(&unfit));
    let any = |graph: &mut Graph, a: Name, b: &Name| graph.node("Or", &[&a, b]);
    let (first, others) = (unanswered[0].clone(), &unanswered[1..]);
    let unanswered = others.iter().fold(first, |a, b| any(graph, a, b));
    Decisions { floats, doubles, unanswered }
}
