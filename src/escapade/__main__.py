"""``python -m escapade`` is the command ``escapade``."""

from __future__ import annotations

import sys

from escapade.cli import main

sys.exit(main())
