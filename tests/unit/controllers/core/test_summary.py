"""Mirrors, summaries and aggregates of conditions."""

from typing import Any

import pytest

from capi.controllers.core.summary import Part, Reasons, aggregate, false, mirror, summarize, true, unknown
from capi.kube.conditions import Condition
from tests.unit.controllers.builders import LONG_AGO, condition

REASONS = Reasons("Good", "Bad", "Unclear")
FALLBACK = unknown("T", "NotYetReported")


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        pytest.param(None, "Unknown", "NotYetReported", id="nothing reported"),
        pytest.param(condition("Ready", "False", "Mine"), "False", "Mine", id="as reported"),
        pytest.param(condition("Ready", "True", "NoReasonReported"), "True", "Ready", id="True without a reason"),
        pytest.param(Condition(type="Ready", status="False", reason=""), "False", "NoReasonReported", id="False without one"),
        pytest.param(Condition(type="Ready", status="Perhaps", reason="x"), "Unknown", "InvalidConditionReported", id="no status"),
    ],
)  # fmt: skip
def test_mirrors(source: Any, status: str, reason: str) -> None:
    made = mirror(source, "T", FALLBACK)
    assert (made.type, made.status, made.reason) == ("T", status, reason)


def test_a_mirror_keeps_the_time_of_its_source() -> None:
    assert mirror(condition("Ready", "True"), "T", FALLBACK).last_transition_time == LONG_AGO


@pytest.mark.parametrize(
    ("parts", "present", "status", "message"),
    [
        pytest.param([Part("A")], [true("A", "x", "fine")], "True", "", id="all good says nothing"),
        pytest.param([Part("A")], [], "Unknown", "* A: Condition A not yet reported", id="missing is unknown"),
        pytest.param([Part("A", optional=True)], [], "True", "", id="missing but optional"),
        pytest.param([Part("A"), Part("B")], [false("A", "x", "no"), unknown("B", "y")], "False", "* A: no\n* B: y", id="bad before unknown"),
        pytest.param([Part("A", negative=True)], [true("A", "x", "going")], "False", "* A: going", id="negative polarity"),
        pytest.param([Part("A", negative=True)], [false("A", "x")], "True", "", id="negative and good"),
        pytest.param([Part("A", info=True), Part("B")], [false("A", "x"), true("B", "y")], "True", "", id="only for information"),
        pytest.param([Part("A", message="short")], [false("A", "x", "long")], "False", "* A: short", id="another message"),
        pytest.param([Part("A")], [false("A", "x", "* B: no\n* C: no")], "False", "* A:\n  * B: no\n  * C: no", id="nested"),
    ],
)  # fmt: skip
def test_summaries(parts: Any, present: Any, status: str, message: str) -> None:
    made = summarize("S", REASONS, parts, present)
    assert (made.status, made.message) == (status, message)
    assert made.reason == {"True": "Good", "False": "Bad", "Unknown": "Unclear"}[status]


def test_an_aggregate_names_issues_first_then_the_most_frequent_and_counts_the_rest() -> None:
    named = [(f"m{i}", unknown("R", "x", "who knows")) for i in range(5)]
    named += [
        ("a", false("R", "x", "no disk")),
        ("b", false("R", "x", "no memory")),
        ("c", false("R", "x", "no memory")),
    ]
    named += [("d", false("R", "x", "late")), ("ok", true("R", "x"))]
    made = aggregate("S", REASONS, "Machine", named)
    assert (made.status, made.reason) == ("False", "Bad")
    assert made.message.splitlines() == [
        "* Machines b, c: no memory",
        "* Machine d: late",
        "* Machine a: no disk",
        "And 5 Machines with other issues",
    ]
