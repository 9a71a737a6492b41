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
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) > 8 and sum(bool(expected) for _, expected in blocks) > 6
    for code, expected in blocks:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        assert [line.rstrip() for line in printed.getvalue().splitlines()] == expected.splitlines(), code
    names["conn"].close()
    png = (notebook / "epochs.png").read_bytes()
    assert png.startswith(b"\x89PNG") and len(png) > 10_000
    assert "ROC curve" in (notebook / "pumps.html").read_text()


def test_the_reference_is_what_the_docstrings_say() -> None:
    subprocess.run([sys.executable, ROOT / "scripts/reference-python", "--check"], check=True)


def test_every_public_name_is_in_the_reference() -> None:
    import corgipile.db
    from corgipile.cli import COMMANDS

    modules = {"db", "sklearn"}
    errors = {"SourceError"}  # described above the sources
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    for name in [*corgipile.db.__all__, *(set(corgipile.__all__) - modules - errors)]:
        assert f"\n### {name}\n" in page
    for name in COMMANDS.keys() - {"index"}:
        assert f"\n### python -m corgipile {name}\n" in page
