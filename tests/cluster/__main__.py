"""``make cluster``: the services of docker-compose.yaml as processes, the demo's check on them, each killed once."""

from __future__ import annotations

import os
import sys

from tests.cluster.hosts import INSIDE, NoNamespaces, enter_own_machine

if __name__ == "__main__":
    if os.environ.get(INSIDE) == "1":
        from tests.cluster.command import main

        sys.exit(main(sys.argv[1:]))
    try:
        child = enter_own_machine([sys.executable, "-m", "tests.cluster", *sys.argv[1:]])
    except NoNamespaces as missing:
        sys.exit(str(missing))
    try:
        code = child.wait()
    except KeyboardInterrupt:
        code = child.wait()
    sys.exit(code)
