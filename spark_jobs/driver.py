"""A resident Spark driver, for builds that do not start one each: Spark Connect beside a session as jobs have it."""

from __future__ import annotations

import os
import signal
import threading

from seamline.runtime.process_exit import end
from seamline.spark.session.session import listening
from seamline.supervisor.prespawned import Spare
from seamline.supervisor.resident import TOKEN, client, make_token, port

LOOKS_EVERY = 1.0


def main() -> int:
    """Serve until told to stop; an error where Spark has gone."""
    os.environ[TOKEN] = make_token()
    halt = threading.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: halt.set())
    spark = listening("seamline resident driver", port())
    print(f"Spark Connect on localhost:{port()}, UI: {spark.sparkContext.uiWebUrl or 'off'}", flush=True)
    spare = Spare(port(), *client())
    while not halt.wait(LOOKS_EVERY):
        # It asks the JVM, and raises when there is none.
        spark.conf.get("spark.app.id")
        spare.keep()
    spare.stop()
    spark.stop()
    return 0


if __name__ == "__main__":
    end(main())
