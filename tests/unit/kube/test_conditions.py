"""Lists of conditions: times, generations, order."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from capi.kube import conditions
from capi.kube.conditions import Condition

THEN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = THEN + timedelta(hours=1, microseconds=7)


def ready(status: str = "True", message: str = "", **more: object) -> Condition:
    return Condition(type="Ready", status=status, reason="Because", message=message, **more)


OLD = ready(last_transition_time=THEN, observed_generation=1)


@dataclass(frozen=True)
class Case:
    new: Condition
    time: datetime
    generation: int


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case(ready(), THEN, 2), id="the same of a new generation: stamped, not later"),
        pytest.param(Case(ready(message="more"), THEN, 2), id="another message is no transition"),
        pytest.param(Case(ready("False"), NOW.replace(microsecond=0), 2), id="another status is one, in whole seconds"),
        pytest.param(Case(ready("False", last_transition_time=THEN + timedelta(minutes=1)), THEN + timedelta(minutes=1), 2), id="mirrored with its time"),
        pytest.param(Case(ready(observed_generation=7), THEN, 7), id="mirrored with its generation"),
    ],
)  # fmt: skip
def test_times_follow_the_status_and_generations_the_pass(case: Case) -> None:
    [found] = conditions.merge([OLD], [case.new], NOW, 2)
    assert (found.last_transition_time, found.observed_generation) == (case.time, case.generation)
    assert (found.status, found.message) == (case.new.status, case.new.message)


def test_what_was_told_of_this_generation_already_stays_the_same() -> None:
    assert conditions.merge([OLD], [ready()], NOW, 1) == (OLD,)
    assert conditions.merge([OLD], [ready()], NOW) == (OLD,)


def test_conditions_that_are_not_told_any_more_go() -> None:
    assert conditions.merge([OLD], [], NOW, 1) == ()


def test_the_order_is_the_table_s_then_the_name_s_and_the_pause_comes_late() -> None:
    told = [
        Condition(type=t, status="True", reason="R")
        for t in ("Deleting", "Zeta", "Paused", "Alpha", "Ready", "Available")
    ]
    found = conditions.merge((), told, NOW, 1)
    assert [c.type for c in found] == ["Available", "Ready", "Alpha", "Zeta", "Paused", "Deleting"]


def test_a_condition_is_true_only_when_it_is_there_and_says_so() -> None:
    assert conditions.is_true([OLD], "Ready")
    assert not conditions.is_true([ready("Unknown")], "Ready")
    assert not conditions.is_true([], "Ready")
