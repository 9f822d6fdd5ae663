"""``python -m seamline.local.demo``: everything it starts it stops, and nothing else."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

from seamline.local.demo.options import Options
from seamline.local.demo.stages import Demo
from seamline.model.errors import SeamlineError


def main(argv: list[str]) -> int:
    """Run the demo; one clear sentence for what is missing, before anything is started."""
    demo = Demo(Options.parse(argv), Path(__file__).resolve().parents[4])
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


def raise_interrupt(signum: int, frame: FrameType | None) -> None:
    """Treat SIGTERM as Ctrl-C, so that everything is stopped."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
