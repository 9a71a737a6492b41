"""What works with which distributions: corgipile alone, and with the native module of one of the others."""

from __future__ import annotations

import subprocess
import sys

import pytest
from test_db_model import LINEAR

import corgipile

# The modules of distributions that are not installed, and those that stand for one.
SETUP = """
import importlib.util, sys, types
from corgipile_joader import _native as whole

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

for name in [name for name in sys.modules if name.startswith("corgipile")]:
    del sys.modules[name]
sys.meta_path.insert(0, Missing())
if {loader!r}:
    module = types.ModuleType("corgipile_loader._native")
    its = {{name: value for name, value in vars(whole).items() if name[0] != "_" and "oader" not in name}}
    vars(module).update(its)
    module.__version__ = {loader!r}
    sys.modules |= {{"corgipile_loader": types.ModuleType("corgipile_loader"), module.__name__: module}}
"""

ALONE = SETUP.format(missing=["corgipile_joader", "corgipile_loader"], loader="")
LOADER = SETUP.format(missing=["corgipile_joader"], loader=corgipile.__version__)
OLD = SETUP.format(missing=["corgipile_joader"], loader="0.2.0")

NEEDED = "need the native module: pip install 'corgipile[loader]' (or 'corgipile[joader]', for JOADER)"


def run(code: str) -> str:
    """What the code prints in a process of its own, with the last line of an error."""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return (found.stdout + found.stderr.strip().rpartition("\n")[2]).strip()


def test_the_package_alone_has_the_database_and_the_models() -> None:
    code = """
import corgipile, corgipile.cli, corgipile.joader.cli
from corgipile import db
loaded = {name for name in sys.modules if name.split(".")[0] in ("psycopg", "pandas", "torch", "sklearn", "matplotlib")}
model = db.Model.from_dict(DOCUMENT)
print(corgipile.__version__, sorted(loaded), model.predict([[16.0, 2.0]]).tolist())
corgipile.cli.main(["report", "--help"])
""".replace("DOCUMENT", repr(LINEAR))
    assert run(ALONE + code).startswith(f"{corgipile.__version__} [] [3.0]\nusage: ")


@pytest.mark.parametrize(
    ("installed", "code", "error"),
    [
        (ALONE, "corgipile.arrays({})", NEEDED),
        (ALONE, "corgipile.torch", NEEDED),
        (ALONE, "corgipile.joader.Job", NEEDED),
        (ALONE, "sys.exit(corgipile.cli.main(['index', 'x']))", NEEDED),
        (LOADER, "corgipile.joader.status('unix:x')", "joader_status needs JOADER: pip install 'corgipile[joader]'"),
        (LOADER, "corgipile.joader.JoaderError", "JoaderError needs JOADER: pip install 'corgipile[joader]'"),
        (OLD, "corgipile.csv", f"-loader of 0.2.0: pip install 'corgipile[loader]=={corgipile.__version__}'"),
    ],
    ids=["arrays", "torch", "a job", "the command", "a status", "an error", "versions"],
)
def test_what_needs_another_distribution_says_which(installed: str, code: str, error: str) -> None:
    if "torch" in code:
        pytest.importorskip("torch")
    assert run(f"{installed}\nimport corgipile, corgipile.cli\n{code}").endswith(error)


def test_the_loader_alone_reads() -> None:
    code = """
import corgipile, numpy
print(sum(batch["x"].sum() for batch in corgipile.CorgiPileDataset(corgipile.arrays({"x": numpy.arange(10)}))))
"""
    assert run(LOADER + code) == "45"


def test_the_command_is_called_as_it_was_called() -> None:
    code = "import sys; sys.argv = ['/usr/bin/corgipile', '--help']; from corgipile.cli import main; main()"
    assert run(code).startswith("usage: corgipile [-h] COMMAND")
