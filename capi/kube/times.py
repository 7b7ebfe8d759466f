"""RFC 3339 times as Kubernetes writes them: metav1.Time (whole seconds) and metav1.MicroTime. Always UTC, always `Z`."""

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)")


def parse(text: str) -> datetime:
    """An aware UTC time. Digits beyond microseconds are dropped. Raises ValueError for anything but RFC 3339."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}"')
    seconds, fraction, zone = match.groups()
    micro = (fraction or "")[:6].ljust(6, "0")
    return datetime.fromisoformat(f"{seconds}.{micro}{'+00:00' if zone == 'Z' else zone}").astimezone(UTC)


def format(moment: datetime) -> str:
    """`2026-01-01T00:00:00Z`; fractions of seconds are dropped."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro(moment: datetime) -> str:
    """`2026-01-01T00:00:00.000000Z`, as in a Lease's renewTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
