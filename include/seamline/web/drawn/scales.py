"""Scales: where a value is between the least and the greatest that are drawn, and the values written beside them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

LARGEST = math.log10(sys.float_info.max)
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k"))


class ScaleKind(StrEnum):
    """How places follow values.

    SYMLOG is linear around zero and logarithmic beyond, for values of which some are zero or negative.
    """

    LINEAR = "linear"
    LOG = "log"
    SYMLOG = "symlog"


@dataclass(frozen=True)
class Scale:
    """Maps values to places from 0 to 1."""

    low: float
    """The value at 0."""
    high: float
    """The value at 1, at least ``low``."""
    kind: ScaleKind = ScaleKind.LINEAR
    """How places follow values."""
    linear_to: float = 1.0
    """Of SYMLOG the distance from zero up to which it is about linear; positive."""

    @classmethod
    def fit(cls, values: Iterable[float], *, log: bool = False, zero: bool = False) -> Scale:
        """Fit one to values; a linear one has zero in it if ``zero``. Values that are not finite have no place."""
        known = [each for each in values if math.isfinite(each)]
        if not known:
            return cls(0.0, 1.0)
        low, high = min(known), max(known)
        if log and low > 0:
            return cls(low, high, ScaleKind.LOG)
        if log:
            # What is smaller beside the largest by twelve powers of ten is about zero.
            reach = max(-low, high)
            least = max(min((abs(each) for each in known if each), default=1.0), reach * 1e-12, 1e-290)
            power = math.pow(10.0, math.floor(math.log10(least)))
            return cls(low, high, ScaleKind.SYMLOG, power)
        return cls(min(low, 0.0), max(high, 0.0)) if zero else cls(low, high)

    def stretch(self, value: float) -> float:
        """Return what is linear in a value's place."""
        match self.kind:
            case ScaleKind.LOG:
                return math.log10(value)
            case ScaleKind.SYMLOG:
                return math.copysign(math.log1p(abs(value) / self.linear_to), value)
        return value

    def place(self, value: float) -> float:
        """Return the place of a value, within 0 and 1; the middle where all values are equal."""
        # Halves, since the difference of two doubles may be too large for one.
        low, high = self.stretch(self.low) / 2, self.stretch(self.high) / 2
        if high <= low:
            return 0.5
        return min(max((self.stretch(value) / 2 - low) / (high - low), 0.0), 1.0)

    def value_at(self, place: float) -> float:
        """Return the value at a place from 0 to 1."""
        low, high = self.stretch(self.low), self.stretch(self.high)
        stretched = low * (1 - place) + high * place
        match self.kind:
            case ScaleKind.LOG:
                # The power is rounded: that of the largest double is above it.
                found = math.pow(10.0, stretched) if stretched < LARGEST else self.high
            case ScaleKind.SYMLOG:
                found = math.copysign(math.expm1(abs(stretched)) * self.linear_to, stretched)
            case _:
                found = stretched
        return min(max(found, self.low), self.high)

    def step(self, value: float, steps: int) -> int:
        """Return in which of so many equal parts of the scale a value is, from 0."""
        return min(int(self.place(value) * steps), steps - 1)

    def ticks(self, most: int = 4) -> list[float]:
        """List round values to write beside the scale, ascending: about ``most``, and all within it."""
        if self.kind is ScaleKind.LINEAR:
            return list_round_values(self.low, self.high, most)
        found = list_powers(self)
        if len(found) < 2:
            return list_round_values(self.low, self.high, most)
        stride = -(-len(found) // most)
        return found[::stride]

    def told(self) -> str:
        """Say what a reader must know of it; empty for what is usual."""
        match self.kind:
            case ScaleKind.LOG:
                return "The scale is logarithmic."
            case ScaleKind.SYMLOG:
                return (
                    "The scale is logarithmic in both directions and about linear from "
                    f"{format_short(-self.linear_to)} to {format_short(self.linear_to)}, since some values are not "
                    "above zero."
                )
        return ""


def list_round_values(low: float, high: float, most: int) -> list[float]:
    """List the multiples of a step of 1, 2 or 5 times a power of ten that are in ``[low, high]``."""
    if not low < high or math.isinf(high - low):
        return [low]
    rough = max((high - low) / max(most, 1), 1e-300)
    power = math.pow(10.0, math.floor(math.log10(rough)))
    step = next((each * power for each in (1, 2, 5) if each * power >= rough), 10 * power)
    first, last = math.ceil(low / step), math.floor(high / step)
    found = [each for number in range(first, last + 1) if low <= (each := number * step) <= high]
    return found or [low]


def list_powers(scale: Scale) -> list[float]:
    """List the powers of ten within a scale that is not linear; of SYMLOG zero and the negative ones too."""
    reach = max(abs(scale.low), abs(scale.high))
    least = scale.low if scale.kind is ScaleKind.LOG else scale.linear_to
    exponents = range(math.floor(math.log10(least)), math.floor(math.log10(max(reach, least))) + 1)
    powers = [math.pow(10.0, each) for each in exponents]
    if scale.kind is ScaleKind.SYMLOG:
        # Those at the border of what is linear would be written over zero.
        powers = powers[1:]
        powers = [*(-each for each in reversed(powers)), 0.0, *powers]
    return [each for each in powers if scale.low <= each <= scale.high]


def format_short(value: float) -> str:
    """Format a value in a few characters: 950, 1,250, 12.5k, 3.2M."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    for unit, name in UNITS:
        # What is rounded up to a thousand is one of the next unit.
        if size >= unit * (1 if name == "k" else 0.9995):
            # Thousands are written out below ten of them.
            shown = value / (1e3 if name == "k" else unit)
            return f"{shown:.3g}{name}" if abs(shown) < 999.5 else f"{shown:,.0f}{name}"
    return f"{value:,.0f}" if size >= 999.5 or float(value).is_integer() else f"{value:.3g}"


def list_drawable(values: Iterable[object]) -> list[float]:
    """List the numbers that have a place: no NULL, and nothing infinite."""
    return [number for each in values if (number := as_place(each)) is not None]


def as_place(value: object) -> float | None:
    """Return a number as a double, as which it is drawn; None for NULL and what has no place."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def spread(scale: Scale, most: int) -> Sequence[float]:
    """List values at equal distances on a scale, its ends first and last."""
    return [scale.value_at(each / (most - 1)) for each in range(most)]
