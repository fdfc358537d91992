"""`python -m pytest_cre.cli`: the command without its script."""

import sys

from pytest_cre.cli import main

sys.exit(main())
