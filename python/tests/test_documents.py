"""The examples of the documents run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python" / "pytorch.md"


@pytest.mark.torch
def test_the_examples_of_the_page_on_pytorch_run(tmp_path: Path) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(examples) >= 5
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(examples))
    subprocess.run([sys.executable, str(script)], check=True, cwd=tmp_path, timeout=120)
