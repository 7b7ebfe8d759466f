"""How many Machines may be unhealthy before remediation stops: too many at once means that something else is wrong. Pure.

Upstream: internal/controllers/machinehealthcheck/machinehealthcheck_controller.go (isAllowedRemediation).
"""

import re
from typing import NamedTuple

from capi.api.core.v1beta2 import MachineHealthCheck, RemediationTrigger

_RANGE = re.compile(r"\[([0-9]+)-([0-9]+)\]")
_PERCENT = re.compile(r"([0-9]+)%")


class Gate(NamedTuple):
    """Whether unhealthy Machines may be remediated, and how many more may become unhealthy."""

    allowed: bool
    left: int
    limit: str = ""
    """The limit in words."""
    problem: str = ""
    """Why the limit cannot be understood; nothing is remediated then."""


def gate_of(check: MachineHealthCheck, expected: int, unhealthy: int) -> Gate:
    """The gate for so many expected and unhealthy Machines. `unhealthyInRange` wins over the other limit."""
    remediation = check.spec.remediation
    trigger = (remediation.trigger_if if remediation is not None else None) or RemediationTrigger()
    if trigger.unhealthy_in_range:
        return _in_range(trigger.unhealthy_in_range, unhealthy)
    limit = trigger.unhealthy_less_than_or_equal_to
    most = expected if limit is None else most_of(limit, expected)
    words = f"unhealthyLessThanOrEqualTo: {'100%' if limit is None else limit}"
    if most is None:
        text = f'spec.remediation.triggerIf.unhealthyLessThanOrEqualTo "{limit}" is neither a number nor a percentage'
        return Gate(False, 0, words, text)
    return Gate(unhealthy <= most, max(0, most - unhealthy), words)


def _in_range(text: str, unhealthy: int) -> Gate:
    words = f"unhealthyInRange: {text}"
    match = _RANGE.fullmatch(text)
    if match is None or int(match[2]) < int(match[1]):
        problem = f'spec.remediation.triggerIf.unhealthyInRange "{text}" is no range like [3-5]'
        return Gate(False, 0, words, problem)
    low, high = int(match[1]), int(match[2])
    allowed = low <= unhealthy <= high
    return Gate(allowed, high - unhealthy if allowed else 0, words)


def most_of(limit: int | str, total: int) -> int | None:
    """A number, or a percentage of `total` rounded down; None if it is neither."""
    if isinstance(limit, int):
        return limit
    match = _PERCENT.fullmatch(limit)
    return int(match[1]) * total // 100 if match is not None else None
