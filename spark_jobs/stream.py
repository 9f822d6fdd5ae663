"""Run a pipeline's stream: ``stream.py --pipeline NAME --token N``. Started by the supervisor."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "include"))

from seamline.lake.ending import end
from seamline.spark.stream import main

if __name__ == "__main__":
    end(main(sys.argv[1:]))
