"""``python -m seamline.cli``."""

from seamline.cli import run

run()
