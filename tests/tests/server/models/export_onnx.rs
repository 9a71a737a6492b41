//! Models as graphs of ONNX: who may have them, of which models, and what says no. What a graph computes is tested with
//! onnxruntime: python/tests/test_onnx.py.

use super::export;
use corgipile_tests::Database;
use corgipile_tests::stored::SPARSE;

#[test]
fn every_kind_of_model_is_a_graph_by_id_and_by_name() {
    let mut db = Database::new();
    export::table(&mut db);
    let ids = export::train(&mut db);
    for id in &ids {
        // a message whose first field is the version of the form, 8, and whose second is who wrote it
        let head = db.line(&format!("SELECT substring(corgipile_export_onnx({id}) FOR 13)"));
        assert_eq!(head, r"\x08081209636f72676970696c65", "model {id}");
    }
    let last = ids.last().expect("some were trained");
    let same = format!("SELECT corgipile_export_onnx('m') = corgipile_export_onnx({last})");
    assert_eq!(db.line(&same), "t");
    // the same each time, and another of another model
    assert_eq!(db.line("SELECT corgipile_export_onnx('m') = corgipile_export_onnx('m')"), "t");
    assert_eq!(db.line(&format!("SELECT corgipile_export_onnx('m') = corgipile_export_onnx({})", ids[0])), "f");
    let nulls = "SELECT corgipile_export_onnx(NULL::text) IS NULL, corgipile_export_onnx(NULL::bigint) IS NULL";
    assert_eq!(db.line(nulls), "t|t");
    // names of columns and categories are in it, and weights as they are
    let has = |text: &str| format!("SELECT position('{text}'::bytea IN corgipile_export_onnx({}::bigint)) > 0", ids[7]);
    for text in ["colour", "red", "blue"] {
        assert_eq!(db.line(&has(text)), "t", "{text}");
    }
    assert_eq!(db.line(&has("mood")), "f");
}

#[test]
fn who_may_use_a_model_may_have_its_graph() {
    let mut db = Database::with_small_table(100);
    db.train("'t', max_epochs => 1, name => 'm'");
    let (friend, stranger) = (db.role("friend"), db.role("stranger"));
    db.run(&format!("SELECT corgipile_grant('m', '{friend}')"));
    let id: i64 = db.value("SELECT model_id FROM corgipile.models");
    db.run(&format!("SET ROLE {friend}"));
    assert_eq!(db.line("SELECT length(corgipile_export_onnx('m')) > 500"), "t");
    db.run(&format!("SET ROLE {stranger}"));
    db.rejects(&format!("SELECT corgipile_export_onnx({id})"), "42501").says(&["permission denied for model"]);
    db.rejects("SELECT corgipile_export_onnx('m')", "42501").says(&["permission denied for model"]);
    db.run("RESET ROLE");
    db.rejects("SELECT corgipile_export_onnx('nobody')", "42704").says(&["nobody"]);
    db.rejects("SELECT corgipile_export_onnx(99)", "42704").says(&["99"]);
}

#[test]
fn the_function_of_texts_names_the_one_of_graphs() {
    let mut db = Database::with_small_table(100);
    db.train("'t', max_epochs => 1, name => 'm'");
    db.rejects("SELECT corgipile_export('m', format => 'onnx')", "22023")
        .says(&["format", "onnx is not a text format"])
        .hints(&["corgipile_export_onnx(model)", "bytea"]);
    db.rejects("SELECT corgipile_export('m', 'pmml')", "22023").says(&["format", "pmml", "\"onnx\""]);
}

#[test]
fn a_model_that_no_graph_holds_is_not_exported() {
    let mut db = Database::new();
    let id = SPARSE.store(&mut db, "large");
    db.run("UPDATE corgipile.stored_models SET weights = array_fill(1::real, ARRAY[67200000])");
    db.rejects(&format!("SELECT corgipile_export_onnx({id})"), "54000")
        .says(&["268800004 bytes of ONNX", "268435456"])
        .hints(&["pg_dump"]);
}
