//! What the decisions mean: a graph's outputs.

use crate::description::{Answer, Description, Fitted, Probabilities};
use crate::graph::{Behind, Graph, Name, integer_attribute};
use crate::layers::Decisions;
use crate::proto::Type;

/// Writes them.
pub fn write(graph: &mut Graph, model: &Description<'_>, decisions: &Decisions) {
    let outputs = model.layers.last().map_or(1, |(_, outputs)| *outputs);
    match &model.answer {
        Answer::Number | Answer::Exponential => {
            let decision = graph.squeezed(&decisions.doubles);
            let number = match model.answer {
                Answer::Exponential => graph.node("Exp", &[&decision]),
                _ => decision,
            };
            let value = graph.output_name("value");
            masked(graph, &decisions.unanswered, &number, &value);
            graph.output(&value, Type::Double, Behind::Nothing, "the prediction; NaN without an answer".to_owned());
        }
        Answer::Classes { labels, values, probabilities, fitted } => {
            let class = class(graph, outputs, labels.len(), decisions);
            if let Some(values) = values {
                let values = graph.doubles(&[values.len() + 1], values.iter().copied().chain([f64::NAN]));
                let value = graph.output_name("value");
                graph.last_node("Gather", &[&values, &class], Vec::new(), &value);
                let doc = "the label as a number; NaN without an answer".to_owned();
                graph.output(&value, Type::Double, Behind::Nothing, doc);
            }
            let texts = graph.texts(labels.iter().map(String::as_str).chain([""]));
            let label = graph.output_name("label");
            graph.last_node("Gather", &[&texts, &class], Vec::new(), &label);
            graph.output(&label, Type::String, Behind::Nothing, "the label; empty without an answer".to_owned());

            let unanswered = graph.unsqueezed(&decisions.unanswered, 1);
            if *probabilities != Probabilities::None {
                let of = fitted.as_ref().map(|fitted| line(graph, fitted, &decisions.doubles));
                let of = of.as_ref().unwrap_or(&decisions.doubles);
                let found = probabilities_of(graph, *probabilities, outputs, of);
                let name = graph.output_name("probabilities");
                masked(graph, &unanswered, &found, &name);
                let doc = "of the classes, in the order of the metadata's; NaN without an answer".to_owned();
                graph.output(&name, Type::Double, Behind::Fixed(labels.len()), doc);
            }
            let name = graph.output_name("decisions");
            masked(graph, &unanswered, &decisions.doubles, &name);
            let doc = match outputs {
                1 => "above 0 for the second class; NaN without an answer",
                _ => "the class is that of the largest; NaN without an answer",
            };
            graph.output(&name, Type::Double, Behind::Fixed(outputs), doc.to_owned());
        }
    }
}

/// Makes an output of doubles, and of NaN where there is no answer.
fn masked(graph: &mut Graph, unanswered: &Name, value: &Name, output: &Name) {
    let nothing = graph.double(f64::NAN);
    graph.last_node("Where", &[unanswered, &nothing, value], Vec::new(), output);
}

/// The place of the class, and behind all of them where there is no answer.
fn class(graph: &mut Graph, outputs: usize, classes: usize, decisions: &Decisions) -> Name {
    let class = match outputs {
        1 => {
            let decision = graph.squeezed(&decisions.floats);
            let zero = graph.float(0.0);
            let is_second = graph.node("Greater", &[&decision, &zero]);
            graph.cast(&is_second, Type::Int64)
        }
        _ => {
            let attributes = vec![integer_attribute("axis", 1), integer_attribute("keepdims", 0)];
            graph.node_with("ArgMax", &[&decisions.floats], attributes)
        }
    };
    let nothing = graph.integer(classes as i64);
    graph.node("Where", &[&decisions.unanswered, &nothing, &class])
}

fn line(graph: &mut Graph, fitted: &Fitted, decisions: &Name) -> Name {
    let shape = [1, fitted.factors.len()];
    let factors = graph.doubles(&shape, fitted.factors.iter().copied());
    let terms = graph.doubles(&shape, fitted.terms.iter().copied());
    let product = graph.node("Mul", &[decisions, &factors]);
    graph.node("Add", &[&product, &terms])
}

/// The probability of each class.
fn probabilities_of(graph: &mut Graph, what: Probabilities, outputs: usize, decisions: &Name) -> Name {
    if outputs == 1 {
        let opposite = graph.node("Neg", &[decisions]);
        let (first, second) = (graph.node("Sigmoid", &[&opposite]), graph.node("Sigmoid", &[decisions]));
        return graph.node_with("Concat", &[&first, &second], vec![integer_attribute("axis", 1)]);
    }
    let logarithms = match what {
        Probabilities::Sigmoid => {
            // ln of 1 / (1 + e^-z), which is min(z, 0) - ln(1 + e^-|z|): all of them may be next to nothing
            let (zero, one) = (graph.double(0.0), graph.double(1.0));
            let size = graph.node("Abs", &[decisions]);
            let falling = graph.node("Neg", &[&size]);
            let power = graph.node("Exp", &[&falling]);
            let sum = graph.node("Add", &[&power, &one]);
            let logarithm = graph.node("Log", &[&sum]);
            let least = graph.node("Min", &[decisions, &zero]);
            graph.node("Sub", &[&least, &logarithm])
        }
        Probabilities::Softmax | Probabilities::None => decisions.clone(),
    };
    graph.node_with("Softmax", &[&logarithms], vec![integer_attribute("axis", 1)])
}
