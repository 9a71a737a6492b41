//! The running example of the paper.

use serde_json::Value;

use super::logical::Logical;
use super::{Stored, Tree, encode};
use crate::opened::open_tree;
use crate::{Layout, Rows, decode, stored};

/// The running example of the paper (Figure 3 and Table 3).
const EXAMPLE: &str = include_str!("example.json");

fn example() -> Value {
    serde_json::from_str(EXAMPLE).unwrap()
}

fn floats(json: &Value) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(json: &Value) -> Vec<Vec<f64>> {
    json.as_array().unwrap().iter().map(floats).collect()
}

fn rows(json: &Value) -> Rows {
    let a = matrix(&json["A"]);
    let mut rows = Rows::new(a[0].len());
    a.iter().for_each(|row| rows.push_dense(row).unwrap());
    rows
}

/// "2:1.1": column, from 1, and value.
fn pair(rows: &Logical, node: usize) -> String {
    let (column, place) = rows.first_layer[node];
    format!("{}:{}", column + 1, rows.table.values()[place as usize])
}

fn strings(json: &Value) -> Vec<String> {
    json.as_array().unwrap().iter().map(|x| x.as_str().unwrap().to_owned()).collect()
}

fn close(ours: &[f64], truth: &[f64]) {
    assert_eq!(ours.len(), truth.len());
    assert!(ours.iter().zip(truth).all(|(a, b)| (a - b).abs() < 1e-12), "{ours:?} {truth:?}");
}

#[test]
fn the_example_of_the_paper_is_encoded_as_there() {
    let json = example();
    let logical = Logical::new(&rows(&json));
    let pairs: Vec<String> = (0..logical.first_layer.len()).map(|node| pair(&logical, node)).collect();
    assert_eq!(pairs, strings(&json["I"]));
    let codes: Vec<Vec<u64>> = logical
        .starts
        .windows(2)
        .map(|ends| logical.codes[ends[0] as usize..ends[1] as usize].iter().map(|code| u64::from(*code) + 1).collect())
        .collect();
    assert_eq!(serde_json::to_value(codes).unwrap(), json["D"]);
}

#[test]
fn the_decode_tree_of_the_example_is_that_of_the_paper() {
    let json = example();
    let rows = rows(&json);
    let logical = Logical::new(&rows);
    let bytes = encode(&rows, &logical, Layout::Bits);
    let (info, reader) = stored::open(&bytes).unwrap();
    let stored = Stored::read(&info, reader).unwrap();
    // so few rows save nothing
    assert_eq!(Tree::<f64, u16>::new(&info, &stored, false).unwrap().unwrap_err(), rows.nnz());
    let tree = Tree::<f64, u16>::new(&info, &stored, true).unwrap().unwrap();
    // a node for the last code of each row is no one's
    let last = |place: &usize| stored.starts[1..].contains(&(*place as u32 + 1));
    let nodes: Vec<usize> = (0..tree.codes.len()).filter(|place| !last(place)).collect();
    let first_layer = stored.columns.len();
    let keys = nodes.iter().map(|place| usize::from(tree.keys[*place]));
    let keys: Vec<String> = (0..first_layer).chain(keys).map(|node| pair(&logical, node)).collect();
    assert_eq!(keys, strings(&json["Cprime_key"]));
    // numbers of nodes without those
    let number = |node: u16| match usize::from(node).checked_sub(first_layer) {
        None => usize::from(node),
        Some(place) => first_layer + nodes.iter().position(|other| *other == place).unwrap(),
    };
    let parents: Vec<usize> =
        std::iter::repeat_n(0, first_layer).chain(nodes.iter().map(|place| number(tree.codes[*place]) + 1)).collect();
    assert_eq!(serde_json::to_value(parents).unwrap(), json["Cprime_parent"]);
    assert_eq!(decode(&bytes).unwrap(), rows);
}

#[test]
fn products_of_the_example_are_those_of_the_paper() {
    let json = example();
    let rows = rows(&json);
    let toc = open_tree::<f64>(&encode(&rows, &Logical::new(&rows), Layout::Bytes), true);
    let scratch = &mut Vec::new();

    let mut out = vec![0.0; 4];
    toc.times_vector(&floats(&json["right_vector"]["v"]), &mut out, scratch);
    close(&out, &floats(&json["right_vector"]["A_dot_v"]));

    let mut out = vec![0.0; 4];
    toc.vector_times(&floats(&json["left_vector"]["w"]), &mut out, scratch);
    close(&out, &floats(&json["left_vector"]["w_dot_A"]));

    let mut out = vec![0.0; 8];
    toc.times_matrix(&matrix(&json["right_matrix"]["M"]).concat(), 2, &mut out, scratch);
    close(&out, &matrix(&json["right_matrix"]["A_dot_M"]).concat());

    // M·A as the transpose of Aᵀ·Mᵀ
    let transpose =
        |m: &[Vec<f64>]| -> Vec<f64> { (0..m[0].len()).flat_map(|j| m.iter().map(move |row| row[j])).collect() };
    let mut out = vec![0.0; 8];
    toc.transposed_times_matrix(&transpose(&matrix(&json["left_matrix"]["M"])), 2, &mut out, scratch);
    close(&out, &transpose(&matrix(&json["left_matrix"]["M_dot_A"])));
}

#[test]
fn the_bytes_of_the_example_are_those_of_the_format_page() {
    let page = include_str!("../../FORMAT.md");
    let block = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let hex = block.lines().flat_map(|line| line.trim_start().split("  ").next().unwrap().split(' '));
    let bytes: Vec<u8> = hex.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let rows = rows(&example());
    assert_eq!(encode(&rows, &Logical::new(&rows), Layout::Bits), bytes);
    assert_eq!(decode(&bytes).unwrap(), rows);
}

/// 12 non-zeros in 4 rows; 4 values, 5 pairs, 9 codes, all below 256.
#[test]
fn the_paper_s_layout_counts_each_array() {
    let sparse = 8 + 4 * 4 + 12 * 12;
    let logical = 8 + 5 * (4 + 8) + 9 * 4 + 4 * 4;
    let physical = 8 + 2 * (5 + 5) + (4 + 4 * 8) + (5 + 9) + (5 + 4);
    assert_eq!(crate::paper_bytes_by_step(&rows(&example())), [sparse, logical, physical]);
}
