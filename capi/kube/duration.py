"""Go durations (metav1.Duration) as timedelta: `1h2m3.5s`. Precision is a microsecond; nanoseconds are cut off.

Source: Go's time.ParseDuration and Duration.String.
"""

import re
from datetime import timedelta
from decimal import Decimal

_MICROS = {"ns": Decimal("0.001"), "us": Decimal(1), "µs": Decimal(1), "μs": Decimal(1), "ms": Decimal(1000)} | {
    unit: Decimal(seconds) * 1_000_000 for unit, seconds in (("s", 1), ("m", 60), ("h", 3600))
}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_MAX_MICROS = Decimal(2**63 - 1) / 1000


def parse(text: str) -> timedelta:
    """Raises ValueError with Go's text for what is not a Go duration."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return timedelta()
    parts = _PART.findall(body)
    if not body or "".join(number + unit for number, unit in parts) != body:
        raise ValueError(_complaint(text, body))
    micros = sum((Decimal(number) * _MICROS[unit] for number, unit in parts), Decimal())
    if micros > _MAX_MICROS:
        raise ValueError(f'time: invalid duration "{text}"')
    return timedelta(microseconds=int(-micros if text[0] == "-" else micros))


def _complaint(text: str, body: str) -> str:
    match = re.match(r"(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))*(?:\d+\.?\d*|\.\d+)([^\d.]*)", body)
    if match is None:
        return f'time: invalid duration "{text}"'
    unit = match[1]
    if unit and unit not in _MICROS:
        return f'time: unknown unit "{unit}" in duration "{text}"'
    return f'time: missing unit in duration "{text}"' if not unit else f'time: invalid duration "{text}"'


def format(value: timedelta) -> str:
    """`1h0m0s`, `1.5s`, `20ms`, `0s`: Go's shape, the one API servers return."""
    micros = value // timedelta(microseconds=1)
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    if micros == 0:
        return "0s"
    if micros < 1000:
        return f"{sign}{micros}µs"
    if micros < 1_000_000:
        return f"{sign}{_plain(Decimal(micros) / 1000)}ms"
    minutes, rest = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds = _plain(Decimal(rest) / 1_000_000)
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}s"
    return f"{sign}{minutes}m{seconds}s" if minutes else f"{sign}{seconds}s"


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
