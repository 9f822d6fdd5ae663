"""``python -m seamline.local.demo``: everything it starts it stops, and nothing else."""

from __future__ import annotations

import signal
import sys

import click

from seamline.local.demo.options import Options
from seamline.local.demo.stages import Demo
from seamline.model.errors import SeamlineError
from seamline.runtime.interrupts import raise_interrupt


def main(argv: list[str]) -> int:
    """Parse the command line and run the demo."""
    try:
        return run_demo(Options.parse(argv))
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except click.ClickException as wrong:
        wrong.show()
        return wrong.exit_code


def run_demo(options: Options) -> int:
    """Run the demo; one clear sentence for what is missing, before anything is started."""
    demo = Demo(options)
    signal.signal(signal.SIGTERM, raise_interrupt)
    try:
        demo.scene.check()
        demo.scene.prepare()
        return demo.run()
    except KeyboardInterrupt:
        print("\nstopped", flush=True)
        return 130
    except SeamlineError as error:
        print(f"\n{error}", file=sys.stderr, flush=True)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
