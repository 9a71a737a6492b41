"""`python -m corgipile.joader` is the command `corgipile-joader`."""

import sys

from .cli import main

sys.exit(main())
