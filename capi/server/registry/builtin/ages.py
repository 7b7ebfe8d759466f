"""Durations as tables show them: "5m3s", "47h", "3d".

Source: k8s.io/apimachinery/pkg/util/duration (HumanDuration).
"""

from datetime import datetime

from capi.kube import times

UNKNOWN = "<unknown>"
_TABLE = (  # below so many seconds, print these units
    (120, ((1, "s"),)),
    (10 * 60, ((60, "m"), (1, "s"))),
    (3 * 3600, ((60, "m"),)),
    (8 * 3600, ((3600, "h"), (60, "m"))),
    (48 * 3600, ((3600, "h"),)),
    (8 * 86400, ((86400, "d"), (3600, "h"))),
    (2 * 365 * 86400, ((86400, "d"),)),
    (8 * 365 * 86400, ((365 * 86400, "y"), (86400, "d"))),
)


def human(seconds: float) -> str:
    """A duration to about two digits; what lies in the future by more than a second is <invalid>."""
    whole = int(seconds)
    if whole < 0:
        return "<invalid>" if whole < -1 else "0s"
    units = next((units for limit, units in _TABLE if whole < limit), ((365 * 86400, "y"),))
    text = ""
    for position, (size, unit) in enumerate(units):
        count, whole = divmod(whole, size)
        if count or position == 0:
            text += f"{count}{unit}"
    return text


def since(moment: str | None, now: datetime) -> str:
    """The age of a wire timestamp; <unknown> when it is missing, <invalid> when it is not a time."""
    if not moment:
        return UNKNOWN
    try:
        return human((now - times.parse(moment)).total_seconds())
    except ValueError:
        return "<invalid>"
