"""What a workload costs by the model, and what of it ends first.

python -m benchmarks.scale --events 1000000 --partitions 64 --cores 16 [--rtt 11] ...
python -m benchmarks.scale --page                                # write the tables of docs/capacity.md
python -m benchmarks.scale --calibrate                           # measure and fit all units: half an hour
python -m benchmarks.scale --predict NAME KIND SIZE=VALUE ...    # keep a prediction; commit it
python -m benchmarks.scale --check                               # measure what was predicted and not measured
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields, replace

from benchmarks.scale.load import Load, LoadRefused
from benchmarks.scale.report import describe
from benchmarks.scale.units import read_units


def parse_sizes(words: list[str]) -> dict[str, float]:
    """Parse ``name=number`` words."""
    return {name: float(number) for name, _, number in (word.partition("=") for word in words)}


def build_parser() -> argparse.ArgumentParser:
    """Make an option of each field of a load."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for each in fields(Load):
        whole = isinstance(each.default, int) and not isinstance(each.default, bool)
        parser.add_argument(
            f"--{each.name.replace('_', '-')}", type=int if whole else float, default=each.default
        )
    for name in ("page", "calibrate", "check", "fit"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--predict", nargs="+", metavar=("NAME KIND", "SIZE=VALUE"))
    return parser


def main(argv: list[str]) -> int:
    """Do what is asked for; 2 for a load that cannot be."""
    asked = build_parser().parse_args(argv)
    if asked.calibrate:
        from benchmarks.scale.calibration import calibrate

        calibrate()
    elif asked.fit:
        from benchmarks.scale.calibration import keep_units

        keep_units()
    elif asked.predict:
        from benchmarks.scale.predictions import add_prediction

        name, kind, *words = asked.predict
        print(add_prediction(name, kind, parse_sizes(words), read_units()).predicted)
    elif asked.check:
        from benchmarks.scale.predictions import check_predictions

        for each in check_predictions():
            for figure, said, found, error in each.errors():
                print(f"{each.name:16}{figure:22}{said:12.4g}{found:12.4g}{error:8.0%}")
    elif asked.page:
        from benchmarks.scale.page import PAGE, write_page

        PAGE.write_text(write_page(PAGE.read_text(), read_units()))
    else:
        try:
            load = replace(Load(), **{each.name: getattr(asked, each.name) for each in fields(Load)})
        except LoadRefused as problem:
            print(problem, file=sys.stderr)
            return 2
        print("\n".join(describe(load, read_units())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
