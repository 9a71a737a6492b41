"""`python -m corgipile`: what it writes where, and that errors are one line."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from joader_fixtures import until

from corgipile.cli import main

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(autouse=True)
def environment(database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGDATABASE", database)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module", autouse=True)
def pumps(database: str) -> None:
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute(
            """CREATE TABLE "odd pumps" AS
               SELECT i AS id, CASE WHEN i % 10 > 0 THEN sin(i) END AS hours,
                      CASE WHEN i % 11 > 0 THEN (ARRAY['mine', 'quarry', 'a,"b"'])[1 + i % 3] END AS site,
                      i % 2 = 0 AS fast, timestamp '2024-01-01' + i * interval '7 hours' AS at, sin(i) > 0.2 AS failed
                 FROM generate_series(1, 25000) AS i"""
        )
        connection.execute('VACUUM ANALYZE "odd pumps"')


def run(*words: str) -> int:
    return main(list(words))


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("corgipile: "), (out, err)
    return err.removeprefix("corgipile: ").rstrip("\n")


def train(name: str) -> None:
    words = [
        "--label",
        "failed",
        "--name",
        name,
        "--set",
        "max_epochs=3",
        "--set",
        "seed=1",
        "--set",
        "date_parts=true",
    ]
    assert run("train", '"odd pumps"', *words, "--features", "hours,site,fast,at") == 0


def test_train_writes_epochs_and_tells_notices(capsys: pytest.CaptureFixture[str]) -> None:
    train("told")
    out, err = capsys.readouterr()
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert head[:3] == ["model_id", "epoch", "loss"] and [row[1] for row in rows] == ["1", "2", "3"]
    assert "NOTICE: NULLs are imputed" in err
    settings = ["--set", 'grid={"l2": [0.1, 0.2]}', "--set", "shuffle=no_shuffle"]
    assert run("train", 'SELECT hours, failed FROM "odd pumps"', "--label", "failed", "--json", *settings) == 0
    epochs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {epoch["grid_point"]["l2"] for epoch in epochs} == {0.1, 0.2} and epochs[0]["r2"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "nowhere"], 'relation "nowhere" does not exist'),
        (["train", '"odd pumps"', "--label", "failed", "--set", "l2"], "--set 'l2' is not KEY=VALUE"),
        (["train", '"odd pumps"', "--label", "failed", "--set", "max_epochs=NaN"], "max_epochs"),
        (["train", '"odd pumps"', "--name", "a", "--set", "name=b"], "name is given twice, by --name and by --set"),
        (["train", '"odd pumps"', "--set", "model=svm"], "model is given by --model, not by --set"),
        (["train", '"odd pumps"', "--dsn", "dbname=nowhere"], 'database "nowhere" does not exist'),
        (["predict", "nowhere", "x.csv"], "nowhere"),
        (["predict", "nowhere.json", "x.csv"], "nowhere.json"),
        (["report", "12345"], "there is no model 12345 that you may use"),
        (["report", "a", "b", "--versions", "1"], "--versions goes with one name"),
        (["shuffle", "nowhere"], 'relation "nowhere" does not exist'),
        (["shuffle", '"odd pumps"', "--shuffle", "x' || 'y"], "x' || 'y"),
        (["shuffle", '"odd pumps"', "b"], "several sources are files"),
        (["shuffle", '"odd pumps"', "-o", "nowhere/out.csv"], "No such file or directory: 'nowhere/out.csv'"),
        (["report", "a", "--versions", "1,x"], "--versions '1,x' is not numbers with commas between them"),
        (["watch", "--interval", "-1"], "interval is -1.0, and must be at least 0 seconds"),
        (["watch", "--interval", "inf"], "interval is inf, and must be at least 0 seconds"),
        (["report", "a", "--max-rows", "0"], "max_rows: 0 is not between 1 and"),
        (["report", "a", "--source", ""], "source: the text is empty"),
        (["predict", "a", "x.csv", "--version", "0"], "version: 0 is not between 1 and"),
        (["predict", "\u00b2", "x.csv"], "\u00b2"),
        (["shuffle", '"odd pumps"', "--seed", str(2**63)], f"seed: {2**63} is not between {-(2**63)} and {2**63 - 1}"),
        (["shuffle", '"odd pumps"', "--epoch", str(2**63)], f"--epoch: {2**63} is not between 1 and"),
        (["index", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 1
    assert message in one_line(capsys)


def test_wrong_arguments_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["dance"], ["train"], ["predict", "m", "x.csv", "--nulls", "drop"]):
        with pytest.raises(SystemExit) as ended:
            run(*words)
        assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        run("shuffle", "--help")
    assert ended.value.code == 0 and "10%" in capsys.readouterr().out


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_shuffle_writes_every_row_once_in_the_servers_order(database: str, capfdbinary: Any, tmp_path: Path) -> None:
    assert run("shuffle", '"odd pumps"', "--seed", "7", "--epoch", "2", "--buffer-size", "10%") == 0
    rows = rows_of(capfdbinary.readouterr().out.decode())
    with psycopg.connect(dbname=database) as connection:
        query = """SELECT id FROM corgipile_shuffle(NULL::"odd pumps", seed => 7, epoch => 2, buffer_size => '10%')"""
        expected = [row[0] for row in connection.execute(query)]
    ids = [int(row["id"]) for row in rows]
    assert ids == expected and sorted(ids) == list(range(1, 25001)) and ids != sorted(ids)
    pyarrow = pytest.importorskip("pyarrow.parquet")
    assert (
        run("shuffle", '"odd pumps"', "--seed", "7", "--epoch", "2", "--buffer-size", "10%", "-o", "out.parquet") == 0
    )
    table = pyarrow.read_table(tmp_path / "out.parquet")
    assert table.column("id").to_pylist() == expected and str(table.schema.field("at").type) == "timestamp[us]"


def test_parquet_has_the_types_of_the_table_whatever_comes_first(database: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute(
            """CREATE TABLE late AS
               SELECT i AS id, i::int2 AS small, CASE WHEN i > 20990 THEN 'x' END AS word, i / 8.0::numeric AS n,
                      CASE WHEN i > 20990 THEN ARRAY[i::real, NULL] END AS v, '{"a": 1}'::jsonb AS document,
                      '5 days'::interval AS "a while", CASE WHEN i > 20990 THEN timestamptz '2024-01-01 UTC' END AS at
                 FROM generate_series(1, 21000) AS i"""
        )
        connection.execute("CREATE TABLE nothing AS SELECT * FROM late LIMIT 0")
    types = ["int32", "int16", "string", "double", "list<element: float>", "string", "string", "timestamp[us, tz=UTC]"]
    for source, rows in (("late", 21000), ("nothing", 0)):
        assert run("shuffle", source, "--shuffle", "no_shuffle", "-o", "out.parquet") == 0
        table = parquet.read_table(tmp_path / "out.parquet")
        assert [str(kind) for kind in table.schema.types] == types and table.num_rows == rows
    assert run("shuffle", "late", "--shuffle", "no_shuffle", "-o", "out.parquet") == 0
    last = parquet.read_table(tmp_path / "out.parquet").slice(20999).to_pylist()[0]
    assert (last["word"], last["n"], last["v"]) == ("x", 2625.0, [21000.0, None])
    assert (last["document"], last["a while"]) == ('{"a": 1}', "5 days")


def test_predictions_of_files_are_those_of_sql(
    database: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    train("files")
    assert run("shuffle", '"odd pumps"', "--seed", "1", "-o", "rows.csv") == 0
    capsys.readouterr()
    assert run("predict", "files", "rows.csv", "--proba") == 0
    out, err = capsys.readouterr()
    found = {int(row["id"]): (row["prediction"], float(row["probability of True"])) for row in rows_of(out)}
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        query = """SELECT id, corgipile_predict_label('files', p), (corgipile_predict_proba('files', p))[2]
                     FROM "odd pumps" AS p"""
        expected = {row[0]: (str(row[1] == "t"), pytest.approx(row[2], rel=1e-14)) for row in connection.execute(query)}
        document = connection.execute("SELECT corgipile_export('files')").fetchone()
    assert found == expected and err == "" and len(found) == 25000
    Path("model.json").write_text(json.dumps(document[0] if document else None))
    assert run("predict", "model.json", "rows.csv", "--dsn", "dbname=nowhere", "-o", "out.csv") == 0
    assert [row["prediction"] for row in rows_of(Path("out.csv").read_text())] == [
        row["prediction"] for row in rows_of(out)
    ]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert run("shuffle", '"odd pumps"', "--seed", "1", "-o", "rows.parquet") == 0
    assert run("predict", "files", "rows.parquet", "-o", "out.parquet", "--column", "failed?") == 0
    table = parquet.read_table("out.parquet")
    assert [str(p) for p in table.column("failed?").to_pylist()] == [row["prediction"] for row in rows_of(out)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "rows.csv is empty"),
        ("hours,hours\n1,2\n", "rows.csv has a column twice"),
        ("hours,site\n1\n", "rows.csv, line 2: 1 values for 2 columns"),
        ("hours\n1\n", "X has no column 'site'"),
        (
            "hours,site,fast,at\nfar,mine,t,2024-01-01\n",
            "column 'hours' has 'far', where the model was trained on numbers",
        ),
        ("hours,site,fast,at\n1,mine,t,soon\n", "column 'at', row 0: 'soon' is not a date in ISO format"),
        ("hours,site,fast,at,prediction\n1,mine,t,2024-01-01,1\n", "has a column 'prediction' already"),
        ("hours,site,fast,at\n1_0,mine,t,2024-01-01\n", "column 'hours' has '1_0', where the model was trained on num"),
        (
            "hours,site,fast,at\n1,m\ud800ne,t,2024-01-01\n",
            "rows.csv is not text in UTF-8: 'utf-8' codec can't decode byte",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_told_by_its_name(
    content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    train("fit")
    capsys.readouterr()
    Path("rows.csv").write_text(content, encoding="utf-8", errors="surrogatepass")
    Path("out.csv").write_text("as it was")
    assert run("predict", "fit", "rows.csv", "-o", "out.csv") == 1
    assert message in one_line(capsys)
    assert Path("out.csv").read_text() == "as it was"
    assert sorted(path.name for path in Path().iterdir()) == ["out.csv", "rows.csv"]


def test_a_file_may_be_predicted_onto_itself_and_keeps_its_types(capsys: pytest.CaptureFixture[str]) -> None:
    train("itself")
    capsys.readouterr()
    marked = "\ufeffhours,site,fast,at,note\n1,mine,t,2024-01-01," + "x" * 200_000 + "\n"
    Path("rows.csv").write_text(marked, encoding="utf-8")
    assert run("predict", "itself", "rows.csv", "-o", "rows.csv") == 0
    (row,) = rows_of(Path("rows.csv").read_text())
    assert list(row) == ["hours", "site", "fast", "at", "note", "prediction"] and row["prediction"] == "True"
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kinds = {
        "hours": pyarrow.float32(), "site": pyarrow.string(), "fast": pyarrow.bool_(), "at": pyarrow.timestamp("ms"),
        "note": pyarrow.int8(),
    }  # fmt: skip
    # what is missing at first has its type all the same
    notes = [None] * 15_000 + [7] * 5_000
    for rows in (20_000, 0):
        given = {"hours": [1.5], "site": ["mine"], "fast": [True], "at": [0], "note": [0]}
        columns = {name: pyarrow.array(given[name] * rows, kind) for name, kind in kinds.items() if name != "note"}
        columns["note"] = pyarrow.array(notes[:rows], kinds["note"])
        parquet.write_table(pyarrow.table(columns), "rows.parquet")
        assert run("predict", "itself", "rows.parquet", "--proba", "-o", "rows.parquet") == 0
        found = parquet.read_table("rows.parquet")
        assert {name: found.schema.field(name).type for name in kinds} == kinds
        assert [str(kind) for kind in found.schema.types[5:]] == ["bool", "double", "double"]
        assert found.column("note").to_pylist() == notes[:rows]
    with pytest.raises(SystemExit):
        run("predict")


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    train("warned")
    Path("rows.csv").write_text("hours,site,fast,at\n1,mine    ,t,2024-01-01\n")
    capsys.readouterr()
    assert run("predict", "warned", "rows.csv") == 0
    told = capsys.readouterr().err
    assert told.startswith("corgipile: warning: feature 'site': category 'mine ' is unknown")
    assert told.count("\n") == 1


def test_a_line_of_one_column_may_be_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", 'SELECT hours, failed FROM "odd pumps"', "--label", "failed", "--name", "one") == 0
    Path("rows.csv").write_text("hours\n1\n\n-1\n")
    capsys.readouterr()
    assert run("predict", "one", "rows.csv") == 0
    assert [row["hours"] for row in rows_of(capsys.readouterr().out)] == ["1", "", "-1"]


@pytest.mark.alone
def test_report_and_watch(capsys: pytest.CaptureFixture[str]) -> None:
    train("shown")
    train("shown")
    capsys.readouterr()
    assert run("report", "shown", "--versions", "1,2", "-o", "page.html", "--max-rows", "100", "--title", "<both>") == 0
    assert capsys.readouterr().out == "page.html\n"
    assert "&lt;both&gt;" in Path("page.html").read_text()
    assert run("watch", "--once") == 0
    assert capsys.readouterr().out == "no training runs\n"
    assert run("report", "shown", "-o", "nowhere/page.html") == 1
    assert "nowhere/page.html" in one_line(capsys)


def process(*words: str, **arguments: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "corgipile", *words]
    started: Any = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=as_in_a_terminal, **arguments
    )
    return started


def as_in_a_terminal() -> None:
    """What runs these tests may have been started by nohup, and ignore signals that they send."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.alone
def test_ctrl_c_cancels_a_training_within_a_second(database: str) -> None:
    words = ("train", '"odd pumps"', "--label", "failed", "--set", "max_epochs=1000000", "--set", "learning_rate=1e-6")
    training = process(*words)
    running = "SELECT count(*) FROM corgipile.stat_progress_train WHERE epoch > 0 AND datname = current_database()"
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        until(lambda: connection.execute(running).fetchone() == (1,))
        training.send_signal(signal.SIGINT)
        start = time.monotonic()
        _, err = training.communicate(timeout=10)
        assert time.monotonic() - start < 1.5
        assert (training.returncode, err) == (130, b"corgipile: cancelled\n")
        assert connection.execute(running).fetchone() == (0,)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize(
    "command", [pytest.param("watch", marks=pytest.mark.alone), "report", "shuffle a table", "shuffle files"]
)
def test_what_is_interrupted_says_so_by_its_exit_code(database: str, number: int, code: int, command: str) -> None:
    """As `train` and `predict` do, above and below, and `index` in its own tests."""
    slow = 'SELECT hours, site, fast, at, failed, pg_sleep(0.01) FROM "odd pumps"'
    words, is_busy = {
        "watch": (["watch", "--interval", "30"], None),
        "report": (["report", "slow", "--source", slow, "--max-rows", "25000"], "pg_sleep"),
        "shuffle a table": (["shuffle", '"odd pumps"', "-o", "pipe"], None),
        "shuffle files": (["shuffle", "rows.csv", "-o", "pipe"], None),
    }[command]
    if command == "report":
        train("slow")
    if command == "shuffle files":
        Path("rows.csv").write_text("a,b\n" + f"1,{'2' * 250}\n" * 20_000)
    if "pipe" in words:
        os.mkfifo("pipe")
    running = process(*words)
    reader = None
    if command == "watch":
        assert running.stdout is not None and running.stdout.readline() == b"no training runs\n"
    elif "pipe" in words:
        reader = os.open("pipe", os.O_RDONLY)
        assert os.read(reader, 1) != b""  # and then no more, so that it waits
    with psycopg.connect(autocommit=True) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND query LIKE %s"
        while is_busy and connection.execute(query, [database, f"%{is_busy}%OFFSET 0%"]).fetchone() == (0,):
            assert running.poll() is None
            time.sleep(0.05)
    running.send_signal(number)
    if reader is not None:
        # what was written before is still to go out
        threading.Thread(target=os.fdopen(reader, "rb").read).start()
    out, err = running.communicate(timeout=10)
    assert (running.returncode, out, err) == (code, b"", b"corgipile: cancelled\n")


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    shuffle = process("shuffle", '"odd pumps"')
    assert shuffle.stdout is not None and shuffle.stdout.readline().startswith(b"id,hours")
    shuffle.stdout.close()
    assert shuffle.stderr is not None and shuffle.stderr.read() == b""
    assert shuffle.wait(timeout=10) == 141


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_what_is_interrupted_leaves_the_output_as_it_was(number: int, code: int) -> None:
    train("interrupted")
    with open("rows.csv", "w") as file:
        file.write("hours,site,fast,at\n" + "1,mine,t,2024-01-01\n" * 1_000_000)
    Path("out.csv").write_text("as it was")
    predict = process("predict", "interrupted", "rows.csv", "-o", "out.csv")
    while not list(Path().glob("out.csv.*")):
        assert predict.poll() is None
        time.sleep(0.01)
    predict.send_signal(number)
    assert predict.communicate(timeout=10) == (b"", b"corgipile: cancelled\n")
    assert predict.returncode == code
    assert Path("out.csv").read_text() == "as it was"
    assert sorted(path.name for path in Path().iterdir()) == ["out.csv", "rows.csv"]


def test_standard_input_and_output_that_are_closed_or_full_are_one_line() -> None:
    train("closed")
    for arguments, told in [
        ("train p >&-", "standard output is closed"),
        ("predict closed - <&-", "standard input is closed"),
        ("shuffle '\"odd pumps\"' >/dev/full", "No space left on device"),
    ]:
        done = subprocess.run(
            f"{sys.executable} -m corgipile {arguments}", shell=True, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and told in done.stderr
    nobody_listens = ["bash", "-c", f"{sys.executable} -m corgipile --help | true; exit ${{PIPESTATUS[0]}}"]
    assert subprocess.run(nobody_listens, capture_output=True, check=False).stderr == b""


def test_a_server_that_ends_is_one_line(database: str) -> None:
    training = process(
        "train", '"odd pumps"', "--label", "failed", "--set", "max_epochs=1000000", "--set", "learning_rate=1e-6"
    )
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        query = "SELECT pg_terminate_backend(pid) FROM corgipile.stat_progress_train WHERE epoch > 0 AND datname = %s"
        until(lambda: connection.execute(query, [database]).fetchone())
    _, err = training.communicate(timeout=10)
    assert training.returncode == 1 and err.count(b"\n") == 1 and b"terminating connection" in err


def test_predict_reads_standard_input(database: str, capfd: pytest.CaptureFixture[str]) -> None:
    train("piped")
    capfd.readouterr()
    predict = process("predict", "piped", "-", stdin=subprocess.PIPE, env={**os.environ, "PYTHONUTF8": "1"})
    out, err = predict.communicate(b'hours,site,fast,at\n0.9,mine,t,2024-01-01 10:00:00\n-0.9,"a,""b""",f,\n')
    assert (predict.returncode, err) == (0, b"")
    assert [row["prediction"] for row in rows_of(out.decode())] == ["True", "False"]


def test_index_is_left_to_the_module_that_writes_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    import corgipile

    given: list[list[str]] = []
    module: Any = types.ModuleType("corgipile.index")
    module.main = given.append
    monkeypatch.setitem(sys.modules, "corgipile.index", module)
    monkeypatch.setattr(corgipile, "index", module, raising=False)
    assert run("index", "--help") == 0 and run("index", "a.tar", "--kind", "tar") == 0
    assert given == [["--help"], ["a.tar", "--kind", "tar"]]


@pytest.fixture
def files(database: str, capsys: pytest.CaptureFixture[str]) -> Path:
    """The rows of the table as CSV and Parquet files."""
    pytest.importorskip("corgipile._native", reason="the native module is not built")
    pytest.importorskip("pyarrow")
    query = "SELECT id, id % 10 AS digit, sin(id) AS hours, 'a,' || id AS word FROM \"odd pumps\" WHERE id <= 5000"
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS plain")
        connection.execute(f"CREATE TABLE plain AS {query} ORDER BY id")
    for file in ("rows.csv", "rows.parquet"):
        assert run("shuffle", "plain", "--shuffle", "no_shuffle", "-o", file) == 0
    assert run("index", "rows.csv") == 0
    capsys.readouterr()
    return Path.cwd()


@pytest.mark.parametrize("file", ["rows.csv", "rows.parquet"])
def test_files_are_shuffled_into_csv_and_parquet(files: Path, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    words = ["--seed", "3", "--buffer-size", "20%", "--block-size", "100"]
    assert run("shuffle", file, *words) == 0
    out, err = capsys.readouterr()
    rows = rows_of(out)
    ids = [int(row["id"]) for row in rows]
    assert err == "" and sorted(ids) == list(range(1, 5001)) and ids != sorted(ids)
    assert all(row["word"] == f"a,{row['id']}" for row in rows)
    assert run("shuffle", file, *words, "-o", "out.parquet") == 0
    assert parquet.read_table("out.parquet").column("id").to_pylist() == ids
    assert run("shuffle", file, *words, "--epoch", "2", "-o", "out.csv") == 0
    assert [int(row["id"]) for row in rows_of(Path("out.csv").read_text())] != ids


def test_parquet_of_files_has_their_types_whatever_comes_first(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    late = [None] * 9990
    columns = {
        "word": pyarrow.array([*late, *["x"] * 10]),
        "bytes": pyarrow.array([*late, *[b"x"] * 10]),
        "tokens": pyarrow.array([[] for _ in late] + [[1, 2]] * 10, pyarrow.list_(pyarrow.int16())),
        "at": pyarrow.array([*late, *[1_704_067_200_000_000_001] * 10], pyarrow.timestamp("ns")),
    }
    parquet.write_table(pyarrow.table(columns), "late.parquet")
    assert run("shuffle", "late.parquet", "--shuffle", "no_shuffle", "-o", "out.parquet") == 0
    table = parquet.read_table("out.parquet")
    assert [str(kind) for kind in table.schema.types] == ["string", "binary", "list<element: int16>", "timestamp[ns]"]
    assert all(table.column(name).to_pylist() == column.to_pylist() for name, column in columns.items())
    assert run("shuffle", "late.parquet", "--shuffle", "no_shuffle", "-o", "out.csv") == 0
    rows = rows_of(Path("out.csv").read_text())
    assert (rows[0]["at"], rows[-1]["at"]) == ("", "2024-01-01T00:00:00.000000001")


def test_files_that_cannot_be_read_are_one_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cut.parquet").write_bytes(Path("rows.parquet").read_bytes()[:5000])
    for words, message in (
        (["cut.parquet"], "cut.parquet"),
        (["nowhere.csv"], "nowhere.csv"),
        (["rows.csv", "rows.parquet"], "files have to be of one kind"),
        (["rows.csv", "--buffer-size", "3x"], "buffer_size"),
        (["rows.csv", "--shuffle", "mrs"], "shuffle"),
    ):
        assert run("shuffle", *words) == 1
        assert message in one_line(capsys)
