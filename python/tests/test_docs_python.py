"""The page about Python runs from top to bottom and prints what it says; the reference is what docstrings say."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/python.md"
PAGE_OF_JOADER = ROOT / "docs/how-to/joader.md"

#: A block of Python, and what it prints if a block of text follows it.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


@pytest.fixture
def notebook(database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for package in ("pandas", "matplotlib", "sklearn"):
        pytest.importorskip(package)
    monkeypatch.setenv("PGDATABASE", database)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_runs_and_prints_what_it_says(notebook: Path) -> None:
    assert len(BLOCK.findall(PAGE.read_text(encoding="utf-8"))) > 8
    names = run(PAGE)
    names["conn"].close()
    png = (notebook / "epochs.png").read_bytes()
    assert png.startswith(b"\x89PNG") and len(png) > 10_000
    assert "ROC curve" in (notebook / "pumps.html").read_text()


def run(page: Path) -> dict[str, Any]:
    """Runs the blocks of a page, each of which has to print what it says; the names that are there then."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for code, expected in BLOCK.findall(page.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        assert [line.rstrip() for line in printed.getvalue().splitlines()] == expected.splitlines(), code
    return names


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

    modules = {"db", "joader", "sklearn"}
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
