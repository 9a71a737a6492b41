//! A graph while it is written: nodes, constants, and the names of what lies between them.
//!
//! Guarantees: every name is given once, and never one that an input has; a node comes behind those whose outputs it
//! takes, because it is given their names.

use crate::proto::{self, Attribute, Dimension, Length, Node, Shape, Tensor, TensorOf, TensorType, Type, ValueInfo};
use std::collections::HashSet;

/// The name of an input, of a constant, or of what a node gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

/// The name of the dimension that is as long as there are rows.
const ROWS: &str = "rows";

/// The length of an input or output behind the first dimension, which is that of the rows.
pub enum Behind<'a> {
    /// one value for each row
    Nothing,
    /// this many
    Fixed(usize),
    /// as many as the caller gives, and as all others of this name have
    Named(&'a str),
}

#[derive(Default)]
pub struct Graph {
    nodes: Vec<Node>,
    constants: Vec<Tensor>,
    inputs: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
    names: HashSet<String>,
    named: usize,
}

impl Graph {
    /// An input. Two of one name and type are one; of another type, the second has a `_` behind its name. Inputs come
    /// before all else, so that nothing else has their names.
    pub fn input(&mut self, name: &str, r#type: Type, behind: Behind<'_>, doc: String) -> Name {
        // in ONNX the empty name stands for an input that is left out
        let name = if name.is_empty() { "_" } else { name };
        let info = value_info(name, r#type, behind, doc);
        if self.inputs.iter().any(|known| known.name == name && known.r#type == info.r#type) {
            return Name(name.to_owned());
        }
        let name = self.output_name(name);
        self.inputs.push(ValueInfo { name: name.0.clone(), ..info });
        name
    }

    /// What is seen from outside and wants this name: it has a `_` behind it if another has the name.
    pub fn output_name(&mut self, name: &str) -> Name {
        let mut name = name.to_owned();
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        Name(name)
    }

    /// Makes what a node gives under this name an output.
    pub fn output(&mut self, name: &Name, r#type: Type, behind: Behind<'_>, doc: String) {
        self.outputs.push(value_info(&name.0, r#type, behind, doc));
    }

    /// A node without attributes.
    pub fn node(&mut self, operator: &str, inputs: &[&Name]) -> Name {
        self.node_with(operator, inputs, Vec::new())
    }

    /// A node with attributes.
    pub fn node_with(&mut self, operator: &str, inputs: &[&Name], attributes: Vec<Attribute>) -> Name {
        let name = self.fresh();
        self.push(operator, "", inputs, attributes, &[&name]);
        name
    }

    /// Integers in two dimensions, each row in descending order. `count` is how long the rows are.
    pub fn sorted(&mut self, value: &Name, count: &Name) -> Name {
        let (sorted, places) = (self.fresh(), self.fresh());
        self.push("TopK", "", &[value, count], vec![integer_attribute("axis", 1)], &[&sorted, &places]);
        sorted
    }

    /// A node that gives an output.
    pub fn last_node(&mut self, operator: &str, inputs: &[&Name], attributes: Vec<Attribute>, output: &Name) {
        self.push(operator, "", inputs, attributes, &[output]);
    }

    /// A node of the operators of machine learning.
    pub fn learning_node(&mut self, operator: &str, inputs: &[&Name], attributes: Vec<Attribute>) -> Name {
        let name = self.fresh();
        self.push(operator, proto::LEARNING, inputs, attributes, &[&name]);
        name
    }

    fn push(&mut self, operator: &str, domain: &str, inputs: &[&Name], attribute: Vec<Attribute>, outputs: &[&Name]) {
        let names = |names: &[&Name]| names.iter().map(|name| name.0.clone()).collect();
        self.nodes.push(Node {
            input: names(inputs),
            output: names(outputs),
            op_type: operator.to_owned(),
            attribute,
            domain: domain.to_owned(),
        });
    }

    /// A constant of type float.
    pub fn floats(&mut self, dims: &[usize], values: impl IntoIterator<Item = f32>) -> Name {
        let bytes = values.into_iter().flat_map(f32::to_le_bytes).collect();
        self.constant(dims, Type::Float, bytes)
    }

    /// A constant of type double.
    pub fn doubles(&mut self, dims: &[usize], values: impl IntoIterator<Item = f64>) -> Name {
        let bytes = values.into_iter().flat_map(f64::to_le_bytes).collect();
        self.constant(dims, Type::Double, bytes)
    }

    /// A constant of type int64.
    pub fn integers(&mut self, dims: &[usize], values: impl IntoIterator<Item = i64>) -> Name {
        let bytes = values.into_iter().flat_map(i64::to_le_bytes).collect();
        self.constant(dims, Type::Int64, bytes)
    }

    /// A constant of texts, in one dimension.
    pub fn texts<'a>(&mut self, values: impl IntoIterator<Item = &'a str>) -> Name {
        let string_data: Vec<Vec<u8>> = values.into_iter().map(|text| text.as_bytes().to_vec()).collect();
        let name = self.fresh();
        self.constants.push(Tensor {
            dims: vec![string_data.len() as i64],
            data_type: Type::String as i32,
            string_data,
            name: name.0.clone(),
            raw_data: None,
        });
        name
    }

    /// One double, which goes with any shape.
    pub fn double(&mut self, value: f64) -> Name {
        self.doubles(&[], [value])
    }

    /// One float.
    pub fn float(&mut self, value: f32) -> Name {
        self.floats(&[], [value])
    }

    /// One integer.
    pub fn integer(&mut self, value: i64) -> Name {
        self.integers(&[], [value])
    }

    fn constant(&mut self, dims: &[usize], r#type: Type, bytes: Vec<u8>) -> Name {
        let name = self.fresh();
        self.constants.push(Tensor {
            dims: dims.iter().map(|dim| *dim as i64).collect(),
            data_type: r#type as i32,
            string_data: Vec::new(),
            name: name.0.clone(),
            raw_data: Some(bytes),
        });
        name
    }

    // -------------------------------------------------------------------------------- operators that are used often

    pub fn cast(&mut self, value: &Name, to: Type) -> Name {
        self.node_with("Cast", &[value], vec![integer_attribute("to", to as i64)])
    }

    /// A double as the double that its nearest float has.
    pub fn rounded(&mut self, value: &Name) -> Name {
        let float = self.cast(value, Type::Float);
        self.cast(&float, Type::Double)
    }

    /// For each row, is one of the columns true?
    pub fn any(&mut self, value: &Name) -> Name {
        let count = self.cast(value, Type::Float);
        let axis = self.integers(&[1], [1]);
        let sum = self.node_with("ReduceSum", &[&count, &axis], vec![integer_attribute("keepdims", 0)]);
        let zero = self.float(0.0);
        self.node("Greater", &[&sum, &zero])
    }

    /// Are these values of type float no numbers, or infinite?
    pub fn is_unfit(&mut self, value: &Name) -> Name {
        let (nan, infinite) = (self.node("IsNaN", &[value]), self.node("IsInf", &[value]));
        self.node("Or", &[&nan, &infinite])
    }

    /// With a dimension of length 1 at `axis`.
    pub fn unsqueezed(&mut self, value: &Name, axis: i64) -> Name {
        let axes = self.integers(&[1], [axis]);
        self.node("Unsqueeze", &[value, &axes])
    }

    /// Without the dimension 1, whose length is 1.
    pub fn squeezed(&mut self, value: &Name) -> Name {
        let axes = self.integers(&[1], [1]);
        self.node("Squeeze", &[value, &axes])
    }

    fn fresh(&mut self) -> Name {
        loop {
            self.named += 1;
            let name = format!("t{}", self.named);
            if self.names.insert(name.clone()) {
                return Name(name);
            }
        }
    }

    /// The whole graph.
    pub fn finish(self, name: &str) -> proto::Graph {
        proto::Graph {
            node: self.nodes,
            name: name.to_owned(),
            initializer: self.constants,
            input: self.inputs,
            output: self.outputs,
        }
    }
}

fn value_info(name: &str, r#type: Type, behind: Behind<'_>, doc_string: String) -> ValueInfo {
    let named = |name: &str| Dimension { value: Some(Length::Named(name.to_owned())) };
    let mut dim = vec![named(ROWS)];
    match behind {
        Behind::Nothing => {}
        Behind::Fixed(length) => dim.push(Dimension { value: Some(Length::Fixed(length as i64)) }),
        Behind::Named(name) => dim.push(named(name)),
    }
    let tensor_type = Some(TensorType { elem_type: r#type as i32, shape: Some(Shape { dim }) });
    ValueInfo { name: name.to_owned(), r#type: Some(TensorOf { tensor_type }), doc_string }
}

/// AttributeProto.AttributeType
const INT: i32 = 2;
const INTS: i32 = 7;
const STRINGS: i32 = 8;

pub fn integer_attribute(name: &str, value: i64) -> Attribute {
    Attribute { name: name.to_owned(), i: Some(value), r#type: INT, ..Attribute::default() }
}

pub fn integers_attribute(name: &str, values: impl IntoIterator<Item = i64>) -> Attribute {
    Attribute { name: name.to_owned(), ints: values.into_iter().collect(), r#type: INTS, ..Attribute::default() }
}

pub fn texts_attribute<'a>(name: &str, values: impl IntoIterator<Item = &'a str>) -> Attribute {
    let strings = values.into_iter().map(|text| text.as_bytes().to_vec()).collect();
    Attribute { name: name.to_owned(), strings, r#type: STRINGS, ..Attribute::default() }
}
