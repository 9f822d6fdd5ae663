"""``python -m seamline.cli``."""

import sys

from seamline.cli import main

sys.exit(main())
