//! Types that are numbers or texts by their meaning: money, interval, citext, and domains over them; and what is said
//! of those that are not.

use corgipile_tests::Database;

fn table(db: &mut Database) {
    db.run(
        "CREATE EXTENSION citext; CREATE DOMAIN dollars AS money; CREATE DOMAIN span AS interval;
         CREATE TABLE t AS
         SELECT i AS id, i % 2 AS label, (ARRAY['Red', 'RED', 'blue'])[1 + i % 3]::citext AS c, (i * 1.25)::numeric::money AS m,
                (i * 1.5)::numeric::money::dollars AS d, make_interval(days => i % 40, months => i % 29, secs => i / 3.0) AS v,
                make_interval(hours => -i)::span AS w, '10.0.0.1/8'::inet AS ip, point(i, i) AS pt, int4range(i, i + 2) AS r,
                time '10:00' AS tm, B'101' AS b
           FROM generate_series(1, 300) i",
    );
}

#[test]
fn money_and_intervals_are_numbers_and_citext_is_a_category() {
    let mut db = Database::new();
    table(&mut db);
    let train = |source: &str| {
        format!(
            "'{source}', features => '{{c,m,d,v,w}}', max_epochs => 3, seed => 1, shuffle => 'no_shuffle', learning_rate => 0.05, name => 'm'"
        )
    };
    let plain = "SELECT id, label, lower(c::text) AS c, m::numeric::float8 AS m, d::money::numeric::float8 AS d,
                        extract(epoch FROM v)::float8 AS v, extract(epoch FROM w)::float8 AS w FROM t";
    let expected = db.trained(&train(plain));
    let given = db.trained(&train("SELECT * FROM t"));
    assert_eq!(given.bits(), expected.bits());
    let fill: Vec<f32> = db.value(&format!("SELECT feature_fill FROM corgipile.models WHERE model_id = {}", given.id));
    let means: Vec<f32> = db.value("SELECT ARRAY[avg(m::numeric), avg(d::money::numeric), avg(extract(epoch FROM v)), avg(extract(epoch FROM w))]::float4[] FROM t");
    assert!(fill[2..].iter().zip(&means).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs()), "{fill:?} {means:?}");
    let sql: String = db.value("SELECT corgipile_export('m', 'sql', source => 't')");
    let same = format!("SELECT bool_and(corgipile_predict('m', t) = ({sql})) FROM t");
    assert!(db.value::<bool>(&same));
    let as_plain = format!(
        "SELECT bool_and(corgipile_predict('m', t) = corgipile_predict({}, s)) FROM t JOIN ({plain}) s ON s.id = t.id",
        expected.id
    );
    assert!(db.value::<bool>(&as_plain));
    // a single column of citext is passed to the function of a text, and is still one
    db.train("'SELECT c, label FROM t', name => 'c', max_epochs => 3, seed => 1");
    let single = "SELECT count(DISTINCT corgipile_predict_proba('c', c)), bool_and(corgipile_predict_proba('c', c) = corgipile_predict_proba('c', t)) FROM t";
    assert_eq!(db.line(single), "2|t");
    assert_eq!(
        db.line("SELECT categories FROM corgipile.models WHERE name = 'm' ORDER BY version DESC LIMIT 1"),
        r#"{"c": ["blue", "red"]}"#
    );
    // and labels
    db.train("'t', 'linear', 'm', features => '{v,c}', max_epochs => 1");
    db.train("'t', 'linear', 'v', features => '{m,c}', max_epochs => 1");
    // another locale has another number of decimals only where amounts are written so
    db.run("SET lc_monetary = 'C'");
    assert!(db.value::<bool>("SELECT bool_and(corgipile_predict('m', t) IS NOT NULL) FROM t"));
}

#[test]
fn other_types_are_left_out_or_refused_with_an_expression() {
    let mut db = Database::new();
    table(&mut db);
    let told = db.notices(&["SELECT FROM corgipile_train('t', max_epochs => 1)"]);
    for words in [
        "ip (inet: use masklen(ip) as a number or host(ip) as a text)",
        "pt (point: use (pt)[0] and (pt)[1])",
        "r (int4range: use lower(r) and upper(r))",
    ] {
        assert!(told.contains(words), "{told}");
    }
    for (column, expression) in [
        ("ip", "Select masklen(ip) as a number or host(ip) as a text in a query as source."),
        ("pt", "Select (pt)[0] and (pt)[1] in a query as source."),
        ("r", "Select lower(r) and upper(r) in a query as source."),
        ("tm", "Select EXTRACT(hour FROM tm) in a query as source."),
        ("b", "Select (b)::int8 in a query as source."),
    ] {
        let refused = db.rejects(&format!("SELECT corgipile_train('t', features => '{{c,{column}}}')"), "42804");
        assert_eq!(refused.hint, expression);
        // what the hint says works
        let select = expression.trim_start_matches("Select ").trim_end_matches(" in a query as source.");
        let select = select.replace(" as a number or host(ip) as a text", "").replace(" and ", " AS x, ");
        db.train(&format!("'SELECT label, {select} AS y FROM t', max_epochs => 1"));
    }
}
