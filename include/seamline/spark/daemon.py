"""The parent of Spark's Python workers: PySpark's own, found where it is installed.

On processors of AMD numpy is told not to sort with AVX-512 before it is imported: those up to Zen 4 run the
instruction that its sort lives by (compress-store to memory) in microcode, and take five times as long as with AVX2.
"""

import os
from contextlib import suppress
from pathlib import Path

CPU = Path("/proc/cpuinfo")
FAST = "avx512_vp2intersect"
"""What processors from Zen 5 on have."""
SLOW_SORTS = "X86_V4 AVX512_ICL"
"""What numpy calls the sets of instructions by which it would sort so."""


def avoid_slow_sorts(cpu: Path = CPU) -> None:
    """Set numpy's environment where this machine's processor is one of those; what a user has set stays."""
    with suppress(OSError):
        said = cpu.read_text()
        if "AuthenticAMD" in said and "avx512f" in said and FAST not in said:
            os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", SLOW_SORTS)


avoid_slow_sorts()
from pyspark.daemon import manager  # noqa: E402 - it may import numpy

if __name__ == "__main__":
    manager()
