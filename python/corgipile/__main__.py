"""`python -m corgipile`: the most common tasks from a shell."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
