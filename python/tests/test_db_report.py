"""`report`: its numbers against scikit-learn and the server, what no one can inject, and how it looks in chromium."""

from __future__ import annotations

import functools
import html
import html.parser
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corgipile import db
from corgipile.db.reporting import collect, figures, measures, sample

psycopg = pytest.importorskip("psycopg")

EVIL = "<script>alert('x')</script>\"' onload=evil() &amp; </svg></style> \u202eltr\x07"

FEATURES = ["site", "hours", "volume", "maintained"]


@pytest.fixture(scope="module")
def pumps(database: str) -> str:
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            psycopg.sql.SQL(
                """CREATE TABLE pumps AS
                   SELECT i AS id, (ARRAY['harbour', 'mine', {evil}])[1 + i % 3] AS site, random() * 10 AS hours,
                          exp(random() * 9)::real AS volume, i % 2 = 0 AS maintained, i % 4 = 0 AS held,
                          random() AS noise
                     FROM generate_series(1, 9000) AS i"""
            ).format(evil=psycopg.sql.Literal(EVIL))
        )
        connection.execute(
            """ALTER TABLE pumps ADD failed boolean, ADD kind text, ADD litres float8, ADD digit int;
               UPDATE pumps SET failed = hours + 5 * noise > 7, litres = 3 * hours + ln(volume) + noise,
                      kind = CASE WHEN hours < 3 THEN 'low' WHEN noise > 0.7 THEN 'shaky' ELSE 'fine' END,
                      digit = floor(hours * 3)"""
        )
        connection.execute("VACUUM ANALYZE pumps")
    return "pumps"


def trained(conn: Any, label: str, kind: str, name: str | None = None, **arguments: Any) -> Any:
    given = {"features": FEATURES, "max_epochs": 5, "seed": 1, "validation_column": "held", **arguments}
    return db.train(conn, "pumps", model=kind, label=label, name=name, **given)


class Checker(html.parser.HTMLParser):
    """Collects what a page is made of, and what is not closed as it was opened."""

    VOID = frozenset(("meta", "br"))

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def page_of(conn: Any, tmp_path: Path, model: Any, **arguments: Any) -> tuple[str, Checker]:
    path = db.report(conn, model, path=tmp_path / "report.html", **arguments)
    page = path.read_text(encoding="utf-8")
    return page, Checker(page)


def test_curves_and_measures_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(3)
    for ties in (2, 7, 100_000):
        scores = np.round(generator.random(500) * ties) / ties
        positive = generator.random(500) < scores
        roc, precise = measures.roc(positive, scores), measures.precision_recall(positive, scores)
        assert roc is not None and precise is not None
        assert roc.area == pytest.approx(metrics.roc_auc_score(positive, scores), rel=1e-12)
        assert precise.area == pytest.approx(metrics.average_precision_score(positive, scores), rel=1e-12)
        x, y, _ = metrics.roc_curve(positive, scores, drop_intermediate=False)
        np.testing.assert_allclose(np.stack([roc.x, roc.y]), np.stack([x, y]))
        thin = measures.thinned(roc, 50)
        assert len(thin.x) <= 50 and (thin.x[-1], thin.y[-1]) == (1, 1) and (np.diff(thin.x) >= 0).all()
    actual, predicted = generator.integers(0, 4, 300), generator.integers(0, 3, 300)
    for labels in ([0, 1, 2, 3], [0, 3], [2]):
        matrix = measures.confusion(actual, predicted, np.array(labels))
        np.testing.assert_array_equal(
            matrix, metrics.confusion_matrix(actual, predicted, labels=range(4))[labels][:, labels]
        )
    expected = metrics.precision_recall_fscore_support(actual, predicted, labels=range(4), zero_division=0)
    of = measures.by_class(actual, predicted, 4)
    np.testing.assert_allclose([of.precision, of.recall, of.f1, of.rows], np.stack(expected))
    assert measures.roc(np.ones(3, bool), np.ones(3)) is None
    assert measures.precision_recall(np.zeros(3, bool), np.ones(3)) is None


def test_lift_is_the_precision_over_the_share_of_the_class() -> None:
    positive = np.array([True, True, False, True, False, False, False, False, False, False])
    found = measures.lift(positive, np.linspace(1, 0, 10))
    assert found is not None
    for i in range(10):
        assert found.x[i] == pytest.approx((i + 1) / 10)
        assert found.y[i] == pytest.approx(positive[: i + 1].mean() / 0.3)
    assert found.area == pytest.approx(1 / 0.3)
    assert measures.lift(~np.ones(3, bool), np.zeros(3)) is None


def test_calibration_is_exact_where_it_is_known() -> None:
    found = measures.calibration(np.array([True, False, True, True]), np.array([0.05, 0.05, 0.95, 1.0]))
    assert (found.predicted.tolist(), found.observed.tolist(), found.rows.tolist()) == (
        [0.05, 0.975],
        [0.5, 1.0],
        [2, 2],
    )
    assert found.error == pytest.approx((2 * 0.45 + 2 * 0.025) / 4)


@pytest.mark.parametrize(
    ("label", "kind", "shared"),
    [
        ("failed", "logistic", {"accuracy": "accuracy", "ROC area": "roc_auc", "F1": "f1", "log loss": "log_loss"}),
        (
            "failed",
            "svm",
            {"accuracy": "accuracy", "ROC area": "roc_auc", "precision": "precision", "recall": "recall"},
        ),
        ("failed", "mlp", {"accuracy": "accuracy", "ROC area": "roc_auc", "log loss": "log_loss"}),
        ("kind", "softmax", {"accuracy": "accuracy", "log loss": "log_loss"}),
        ("digit", "softmax", {"accuracy": "accuracy", "log loss": "log_loss"}),
        ("litres", "linear", {"R²": "r2", "RMSE": "rmse", "MAE": "mae"}),
        ("litres", "mlp_regression", {"R²": "r2", "RMSE": "rmse"}),
    ],
)
def test_measures_of_all_rows_are_those_of_corgipile_evaluate(
    conn: Any, pumps: str, label: str, kind: str, shared: dict[str, str]
) -> None:
    model_id = trained(conn, label, kind).model_id
    found = collect.collect(conn, model_id, [])
    collect.evaluate(conn, found, None, 20_000)
    expected = dict(conn.execute("SELECT * FROM corgipile_evaluate(%s, 'SELECT * FROM pumps WHERE held')", [model_id]))
    summary = figures.summary(found)
    assert found.evaluation is not None and found.evaluation.rows == 2250 and found.evaluation.are_held_out
    assert found.evaluation.told.startswith("all 2,250 rows that column held")
    precision = 1e-9 if found.is_classifier else 1e-7  # the server takes labels that are numbers as reals
    for own, name in shared.items():
        assert summary[own] == pytest.approx(expected[name], rel=precision), own


def test_a_large_source_is_sampled_in_the_server_and_the_page_says_so(conn: Any, pumps: str, tmp_path: Path) -> None:
    epochs = trained(conn, "failed", "logistic")
    page, _ = page_of(conn, tmp_path, epochs, max_rows=500)
    assert re.search(r"Measured on a random sample of 500 of about 2,\d\d\d rows that column held", page)
    for source in ("pumps", "SELECT * FROM pumps", "(SELECT * FROM pumps)"):
        page, _ = page_of(conn, tmp_path, epochs, source=source, max_rows=500)
        assert (
            "Measured on a random sample of 500 of about 9,000 rows of the source that the report was asked for" in page
        )
    page, _ = page_of(
        conn, tmp_path, epochs, source="SELECT * FROM pumps WHERE id <= 500 AND failed IS NOT NULL", max_rows=500
    )
    assert "Measured on all 500 rows of the source" in page
    drawn = sample.draw(conn, "pumps", 500)
    assert "TABLESAMPLE SYSTEM" in drawn.relation
    buffers = conn.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT 1 FROM {drawn.relation}").fetchone()[0][0]
    pages = conn.execute("SELECT relpages FROM pg_class WHERE relname = 'pumps'").fetchone()[0]
    assert buffers["Plan"]["Shared Hit Blocks"] + buffers["Plan"]["Shared Read Blocks"] < pages / 4


def test_names_that_begin_like_queries_are_names() -> None:
    for name in (
        "tablets",
        "selected",
        "with_gaps",
        "values$1",
        "table.x",
        '"select"',
        " within",
        "values",
        "table -- x",
    ):
        assert not sample.is_query(name), name
    for query in (
        "select 1",
        "(SELECT 1)",
        " \nVALUES (1)",
        "TABLE a",
        "select*from a",
        "/* a /* b */ */ -- c\n select 1",
    ):
        assert sample.is_query(query), query


def test_the_same_rows_are_drawn_from_a_table_again(conn: Any, pumps: str) -> None:
    found = [collect.collect(conn, trained(conn, "failed", kind).model_id, []) for kind in ("logistic", "mlp")]
    for one in found:
        collect.evaluate(conn, one, None, 300)
    first, second = (one.evaluation for one in found)
    assert first is not None and second is not None
    np.testing.assert_array_equal(first.actual, second.actual)


def test_rows_that_were_learned_from_are_told(conn: Any, pumps: str, tmp_path: Path) -> None:
    epochs = trained(conn, "failed", "logistic", validation_column=None)
    page, _ = page_of(conn, tmp_path, epochs)
    assert "The model has learned from such rows" in page and "all 9,000 rows that the model was trained on" in page
    drawn = trained(conn, "failed", "logistic", validation_column=None, validation_fraction=0.25)
    assert "Which 25% validation_fraction held out is not recorded" in page_of(conn, tmp_path, drawn)[0]
    page, _ = page_of(conn, tmp_path, epochs, source="SELECT * FROM pumps WHERE held")
    assert "The model has learned from such rows" not in page


def test_a_source_that_is_gone_is_told_unless_it_was_asked_for(conn: Any, pumps: str, tmp_path: Path) -> None:
    conn.execute("CREATE TABLE gone AS SELECT * FROM pumps")
    epochs = db.train(conn, "gone", label="failed", features=FEATURES, max_epochs=2, name="gone")
    conn.execute("DROP TABLE gone")
    page, _ = page_of(conn, tmp_path, "gone")
    assert "The rows that the model was trained on cannot be read: relation &quot;gone&quot; does not exist" in page
    with pytest.raises(psycopg.Error, match="nowhere"):
        db.report(conn, epochs, source="nowhere", path=tmp_path / "no.html")
    assert not (tmp_path / "no.html").exists()
    assert conn.execute("SELECT 1").fetchone() == (1,)


def test_what_others_say_that_a_model_was_trained_on_is_not_run(
    conn: Any, database: str, pumps: str, tmp_path: Path
) -> None:
    conn.execute("CREATE TABLE called (at timestamptz)")
    conn.execute("CREATE ROLE mallory LOGIN")
    conn.execute("GRANT CREATE ON SCHEMA public TO mallory")
    trap = "LANGUAGE sql AS $$ INSERT INTO called VALUES (now()); SELECT 1.0::float8 $$"
    with psycopg.connect(dbname=database, user="mallory", autocommit=True) as mallory:
        mallory.execute("CREATE TABLE rows AS SELECT i % 2 = 0 AS label, sin(i) AS a FROM generate_series(1, 50) AS i")
        own = db.train(mallory, "SELECT label, a FROM rows", name="mallory's", max_epochs=1)
        document = {**own.model(mallory).to_dict(), "source": "SELECT label, trap() AS a FROM rows"}
        mallory.execute(f"CREATE FUNCTION trap() RETURNS float8 {trap}")
        trapped = mallory.execute("SELECT corgipile_import(%s, 'trapped')", [json.dumps(document)]).fetchone()[0]
    page, _ = page_of(conn, tmp_path, trapped)
    assert "What a model of another role was trained on is not read by itself" in page
    # a source that is more than a query is not one
    conn.execute("CREATE TABLE precious AS SELECT 1 AS one")
    document["source"] = "SELECT label, a FROM rows) AS x; COMMIT; DROP TABLE precious; SELECT (1"
    more = conn.execute("SELECT corgipile_import(%s, 'more')", [json.dumps(document)]).fetchone()[0]
    assert "cannot be read" in page_of(conn, tmp_path, more)[0]
    for source in (document["source"], "rows; DROP TABLE precious", "rows AS r, precious"):
        with pytest.raises(psycopg.Error):
            db.report(conn, more, source=source, path=tmp_path / "report.html")
    assert conn.execute("SELECT * FROM precious").fetchone() == (1,)
    document["source"] = "SELECT label, trap() AS a FROM rows"
    # what is one's own may only read
    mine = conn.execute("SELECT corgipile_import(%s, 'mine')", [json.dumps(document)]).fetchone()[0]
    page, _ = page_of(conn, tmp_path, mine)
    assert "cannot execute INSERT in a read-only transaction" in page
    assert conn.execute("SELECT count(*) FROM called").fetchone() == (0,)
    with psycopg.connect(dbname=database) as other:
        other.execute("CREATE TABLE kept AS SELECT 1 AS one")
        db.report(other, mine, path=tmp_path / "report.html")
        other.execute("INSERT INTO kept VALUES (2)")
        other.rollback()
    # who may only predict sees no report, and no document
    conn.execute("SELECT corgipile_grant(%s, 'mallory', 'predict')", [mine])
    with psycopg.connect(dbname=database, user="mallory", autocommit=True) as mallory:
        with pytest.raises(PermissionError, match="to predict with"):
            db.report(mallory, mine, path=tmp_path / "report.html")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="granted for predictions only"):
            db.Model.from_database(mallory, mine)
    conn.execute("DROP OWNED BY mallory CASCADE")
    conn.execute("SELECT corgipile_drop_owned('mallory')")
    conn.execute("DROP ROLE mallory")


def test_no_value_gets_out_of_its_place(conn: Any, pumps: str, tmp_path: Path) -> None:
    quoted = psycopg.sql.Identifier('l" <i>%s')
    conn.execute(
        psycopg.sql.SQL(
            """CREATE TABLE {} AS SELECT CASE WHEN failed THEN {} ELSE 'no' END AS {}, site, hours AS {} FROM pumps"""
        ).format(
            psycopg.sql.Identifier("t <b>%s"), psycopg.sql.Literal(EVIL), quoted, psycopg.sql.Identifier("<img src=x>%")
        )
    )
    epochs = db.train(conn, '"t <b>%s"', label='l" <i>%s', name=EVIL, max_epochs=3, seed=1)
    conn.execute("SELECT corgipile_comment(%s::text, %s)", [EVIL, EVIL])
    page, checker = page_of(conn, tmp_path, [epochs, epochs.model_id], title=EVIL)
    allowed = {
        *("html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section", "div"),
        *("h1", "h2", "h3", "h4", "p", "dl", "dt", "dd", "ul", "li", "bdi", "code", "a", "strong", "span"),
        *("table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "details", "summary"),
        *("svg", "desc", "line", "polyline", "circle", "rect", "text"),
    }
    assert {name for name, _ in checker.found} <= allowed
    assert not [k for _, attributes in checker.found for k in attributes if k.startswith("on") or k == "src"]
    assert "<script" not in page and "\u202e" not in page and "\x07" not in page
    assert any("<script>alert('x')</script>" in text for text in checker.texts)
    assert page.count("<style>") == 1 and page.count("</style>") == 1


def test_nothing_comes_from_elsewhere(conn: Any, pumps: str, tmp_path: Path) -> None:
    page, checker = page_of(conn, tmp_path, trained(conn, "kind", "softmax"))
    policy = next(meta for meta in checker.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert str(policy["content"]).startswith("default-src 'none'")
    assert not re.search(r"(?<!xmlns=\")https?://", page) and "@import" not in page and "url(" not in page
    assert not [link for link in checker.all("a") if not str(link["href"]).startswith("#")]


def test_every_figure_has_a_title_a_description_and_its_numbers(conn: Any, pumps: str, tmp_path: Path) -> None:
    for label, kind in (("failed", "logistic"), ("kind", "softmax"), ("litres", "linear"), ("failed", "mlp")):
        page, checker = page_of(conn, tmp_path, trained(conn, label, kind))
        pictures = [svg for svg in checker.all("svg") if svg.get("role") == "img"]
        ids = {attributes.get("id") for _, attributes in checker.found}
        for svg in pictures:
            assert set(str(svg["aria-labelledby"]).split()) <= ids
        assert len(pictures) >= 5 and page.count("<title") == len(pictures) + 1 and page.count("<desc") == len(pictures)
        # a table for each picture, and the confusion matrix is one
        assert page.count("<details>") == len(pictures)
        assert all(head.get("scope") in ("row", "col", "colgroup") for head in checker.all("th"))


def test_several_models_and_versions_are_compared_in_one_page(conn: Any, pumps: str, tmp_path: Path) -> None:
    for kind in ("logistic", "mlp"):
        trained(conn, "failed", kind, "compared")
    page, checker = page_of(conn, tmp_path, [("compared", 1), ("compared", 2)])
    assert "compared (version 1)" in page and "compared (version 2)" in page
    targets = {str(link["href"])[1:] for link in checker.all("a")}
    assert targets == {section["id"] for section in checker.all("section") if section.get("id")} and len(targets) == 2
    assert len(re.findall("<strong>ROC curve</strong>", page)) == 1
    mixed, _ = page_of(conn, tmp_path, [("compared", 1), trained(conn, "litres", "linear")])
    assert "The models are measured on different rows" in mixed or "Measured on" in mixed
    with pytest.raises(ValueError, match="empty list"):
        db.report(conn, [], path=tmp_path / "x.html")


KINDS = ["smallint", "bigint", "numeric(6, 2)", "real", "boolean", "text", "varchar(9)", "char(5)", "colour", "dom"]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_every_type_are_recognized(conn: Any, pumps: str, kind: str) -> None:
    conn.execute("DROP TABLE IF EXISTS typed")
    conn.execute("DROP TYPE IF EXISTS colour")
    conn.execute("DROP DOMAIN IF EXISTS dom")
    conn.execute("CREATE TYPE colour AS ENUM ('no', 'yes')")
    conn.execute("CREATE DOMAIN dom AS int")
    words = {"no", "yes"} if kind in ("text", "varchar(9)", "char(5)", "colour") else {"0", "1"}
    low, high = sorted(words)
    label = f"(CASE WHEN failed THEN '{high}' ELSE '{low}' END)::{kind}"
    conn.execute(f"CREATE TABLE typed AS SELECT {label} AS label, hours FROM pumps")
    epochs = db.train(conn, "typed", features=["hours"], max_epochs=2, seed=1)
    found = collect.collect(conn, epochs.model_id, [])
    collect.evaluate(conn, found, None, 20_000)
    expected = dict(conn.execute("SELECT * FROM corgipile_evaluate(%s, 'typed')", [epochs.model_id]))
    assert found.evaluation is not None and found.evaluation.without_answer == 0
    assert figures.summary(found)["accuracy"] == pytest.approx(expected["accuracy"])
    assert figures.summary(found)["ROC area"] == pytest.approx(expected["roc_auc"])


def test_thousands_of_classes_do_not_need_a_square_of_them(conn: Any, pumps: str, tmp_path: Path) -> None:
    conn.execute(
        """CREATE TABLE thousands AS SELECT i % 2000 AS label, sin(i % 2000) AS a, cos((i % 2000) * 7) AS b
             FROM generate_series(1, 6000) AS i"""
    )
    epochs = db.train(conn, "thousands", model="softmax", features=["a", "b"], max_epochs=1, seed=1)
    page, _ = page_of(conn, tmp_path, epochs, max_rows=3000)
    assert "The 20 commonest of 2,000 classes" in page and len(page) < 400_000


def test_all_models_of_a_grid_are_compared(conn: Any, pumps: str, tmp_path: Path) -> None:
    epochs = trained(conn, "failed", "logistic", "grid", grid={"l2": [0.0, 0.1]})
    page, _ = page_of(conn, tmp_path, epochs)
    assert "grid/1" in page and "grid/2" in page


def test_every_choice_is_in_the_page(conn: Any, pumps: str, tmp_path: Path) -> None:
    conn.execute("CREATE TABLE IF NOT EXISTS gaps AS SELECT *, CASE WHEN id % 10 > 0 THEN hours END AS gap FROM pumps")
    hashed = {"columns": ["site"], "buckets": 32}
    epochs = db.train(conn, "gaps", label="failed", features=["gap", "site"], name="gaps", max_epochs=3, hash=hashed)
    page, _ = page_of(conn, tmp_path, epochs)
    for key, value in epochs.model(conn).hyperparameters.items():
        assert f"<dt>{key}</dt>" in page, (key, value)
    assert "NULLs were imputed in 900 rows." in page
    assert "Hashed columns: <bdi>site</bdi>." in page and "hash[" in page
    columns = page.split("Columns of the source")[-1]
    row = re.search(r"<tr><th scope=.row.><bdi>id</bdi></th>(.*?)</tr>", columns)
    assert row is not None and "left out" in row[1] and "identifies rows" in row[1]
    row = re.search(r"<tr><th scope=.row.><bdi>gap</bdi></th>(.*?)</tr>", columns)
    assert row is not None and ">number<" in row[1] and re.search(r">(9|10)[.][0-9]%<", row[1])
    for notice in epochs.notices:
        assert notice.message.split(":")[0] in page


def test_many_classes_and_many_features_stay_readable(conn: Any, pumps: str, tmp_path: Path) -> None:
    conn.execute(
        """CREATE TABLE many AS SELECT (i % 60)::text AS label,
                  (SELECT array_agg(sin(i % 60 * j)::real + random() * 0.1) FROM generate_series(1, 200) AS j) AS x
             FROM generate_series(1, 3000) AS i"""
    )
    epochs = db.train(conn, "many", model="softmax", max_epochs=3, seed=1)
    page, _ = page_of(conn, tmp_path, epochs)
    assert "The 20 commonest of 60 classes" in page and "The 30 largest of 200" in page
    assert len(page) < 600_000
    svm = db.train(conn, "SELECT label::int % 2 = 0 AS label, x FROM many", model="svm", max_epochs=3, seed=1)
    page_of(conn, tmp_path, svm)


def test_one_row_and_no_rows_and_one_class_make_a_page(conn: Any, pumps: str, tmp_path: Path) -> None:
    for label, kind in (("failed", "logistic"), ("kind", "softmax"), ("litres", "linear")):
        epochs = trained(conn, label, kind)
        for condition in ("false", "id = 1", "failed", "id < 3"):
            page, _ = page_of(conn, tmp_path, epochs, source=f"SELECT * FROM pumps WHERE {condition}")
            assert "nan" not in page.lower().replace("maintenance", "") and "inf" not in re.sub(
                "[Ii]nf(o|ormation)", "", page
            )


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

MEASURE = """<!DOCTYPE html><body><pre id="out"></pre><script>
const wide = [320, 400, 768, 1400], files = %s, out = {};
async function look(file, width) {
  const frame = document.createElement("iframe");
  frame.style.cssText = "border:0;height:900px;width:" + width + "px";
  frame.src = file;
  document.body.append(frame);
  await new Promise(done => frame.onload = done);
  const page = frame.contentDocument, root = page.documentElement, cut = [];
  for (const details of page.querySelectorAll("details")) details.open = true;
  for (const element of page.body.querySelectorAll("*")) {
    if (element.closest(".scroll") && !element.matches(".scroll")) continue;
    const box = element.getBoundingClientRect();
    if (box.right > width + 0.5 || box.left < -0.5) cut.push(element.tagName + ": " + element.textContent.slice(0, 40));
  }
  for (const text of page.querySelectorAll("svg[role=img] text")) {
    const box = text.getBBox(), view = text.ownerSVGElement.viewBox.baseVal;
    if (box.x < -0.5 || box.x + box.width > view.width + 0.5) cut.push("text: " + text.textContent);
  }
  const scrolled = root.scrollWidth - root.clientWidth, height = root.scrollHeight;
  frame.remove();
  return {scrolled, cut, height};
}
(async () => {
  for (const file of files) for (const width of wide) out[file + " " + width] = await look(file, width);
  document.getElementById("out").textContent = JSON.stringify(out);
})();
</script>"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_in_chromium_nothing_overflows_on_a_phone_or_a_desktop(
    conn: Any, pumps: str, tmp_path: Path, site: str
) -> None:
    long = "a_name_without_any_place_to_break_it_that_is_far_wider_than_a_phone_" * 3
    models: dict[str, Any] = {
        "logistic": trained(conn, "failed", "logistic", long),
        "softmax": trained(conn, "kind", "softmax"),
        "digits": trained(conn, "digit", "softmax"),
        "linear": trained(conn, "litres", "linear"),
        "evil": trained(conn, "failed", "mlp", EVIL),
    }
    models["all"] = [models["logistic"], models["evil"], trained(conn, "failed", "svm", "svm")]
    for name, model in models.items():
        db.report(conn, model, path=tmp_path / f"{name}.html")
    (tmp_path / "measure.html").write_text(MEASURE % json.dumps([f"{name}.html" for name in models]))
    shown = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", "--dump-dom",
         f"--user-data-dir={tmp_path}/profile", f"{site}/measure.html"],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    found = re.search(r'<pre id="out">(.*?)</pre>', shown, re.DOTALL)
    assert found is not None and found[1], shown[-2000:]
    measured = json.loads(html.unescape(found[1]))
    assert len(measured) == 4 * len(models)
    wrong = {key: (m["scrolled"], m["cut"]) for key, m in measured.items() if m["scrolled"] > 0 or m["cut"]}
    assert not wrong, wrong
    assert all(m["height"] > 1500 for m in measured.values())
