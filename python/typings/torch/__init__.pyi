# torch is not there where types are checked; without this, pyright takes corgipile/torch.py for it
from typing import Any

def __getattr__(name: str) -> Any: ...
