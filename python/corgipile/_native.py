"""The native module: that of corgipile-joader, or that of corgipile-loader, which has a part of it."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from . import __version__

#: The distributions' modules, by what they are installed as.
_MODULES = {"joader": "corgipile_joader._native", "loader": "corgipile_loader._native"}


def _found() -> ModuleType:
    for extra, name in _MODULES.items():
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            # one that is there and fails for a reason of its own says so itself
            if error.name is None or error.name.split(".")[0] != name.split(".")[0]:
                raise
            continue
        if module.__version__ != __version__:
            raise ImportError(
                f"corgipile is of version {__version__}, and corgipile-{extra} of {module.__version__}: "
                f"pip install 'corgipile[{extra}]=={__version__}'"
            )
        return module
    raise ImportError(
        "files and tables in CorgiPile's order need the native module: pip install 'corgipile[loader]' "
        "(or 'corgipile[joader]', for JOADER)"
    )


_module = _found()
globals().update({name: value for name, value in vars(_module).items() if not name.startswith("_")})


def __getattr__(name: str) -> Any:
    if name.startswith("_") or "corgipile_joader" in _module.__name__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise ImportError(f"{name} needs JOADER: pip install 'corgipile[joader]'")
