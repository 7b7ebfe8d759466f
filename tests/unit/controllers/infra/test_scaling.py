"""Who comes and who goes in a pool."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.controllers.infra.machinepool.scaling import DeletePolicy, Member, decide

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def a_member(name: str, *, age: int = 0, ready: bool = True, **marks: bool) -> Member:
    return Member(name=name, created=EPOCH - timedelta(minutes=age), ready=ready, **marks)


@st.composite
def pools(draw: st.DrawFn) -> list[Member]:
    names = draw(st.lists(st.text("abcd", min_size=1, max_size=3), unique=True, max_size=12))
    flags = st.booleans()
    return [
        Member(
            name=name, created=EPOCH + timedelta(minutes=draw(st.integers(0, 3))), deleting=draw(flags), lost=draw(flags),
            marked=draw(flags), ready=draw(flags), outdated=draw(flags),
        )
        for name in names
    ]  # fmt: skip


def active(members: list[Member]) -> list[Member]:
    return [m for m in members if not m.deleting and not m.lost]


@given(pools(), st.integers(0, 12), st.sampled_from(DeletePolicy))
def test_never_more_than_the_surplus_is_taken(members: list[Member], desired: int, policy: DeletePolicy) -> None:
    decision = decide(members, desired, policy)
    assert len(decision.remove) <= max(0, len(active(members)) - desired)
    assert set(decision.remove) <= {m.name for m in active(members)}
    assert not (decision.create and decision.remove)


@given(pools(), st.integers(0, 12), st.sampled_from(DeletePolicy), st.randoms())
def test_the_order_of_the_members_does_not_matter(
    members: list[Member], desired: int, policy: DeletePolicy, shuffler: Random
) -> None:
    shuffled = shuffler.sample(members, len(members))
    assert decide(members, desired, policy) == decide(shuffled, desired, policy)


@given(pools(), st.integers(0, 12))
def test_a_pass_that_sees_its_own_deletions_takes_nobody_else(members: list[Member], desired: int) -> None:
    first = decide(members, desired)
    seen = [replace(m, deleting=m.deleting or m.name in (*first.remove, *first.clear)) for m in members]
    again = decide(seen, desired)
    assert not again.remove
    assert not again.clear


@given(pools(), st.integers(0, 12))
def test_as_many_ready_ones_stay_as_can(members: list[Member], desired: int) -> None:
    unmarked = [replace(m, marked=False) for m in members]
    gone = set(decide(unmarked, desired).remove)
    ready = [m for m in active(unmarked) if m.ready]
    left = [m for m in ready if m.name not in gone]
    assert len(left) >= min(len(ready), desired)


@given(pools(), st.integers(0, 8), st.randoms(use_true_random=False))
def test_every_pool_settles_at_ready_members_of_the_present_template(
    members: list[Member], desired: int, shuffler: Random
) -> None:
    world, made = list(members), 0
    for turn in range(200):
        decision = decide(world, desired)
        taken = {*decision.remove, *decision.clear}
        world = [replace(m, deleting=m.deleting or m.name in taken) for m in world]
        world += [Member(name=f"new-{made + i}", created=EPOCH) for i in range(decision.create)]
        made += decision.create
        if "ready" in (step := shuffler.choice(["ready", "gone", "nothing"]), ("ready", "gone")[turn % 2]):
            world = [replace(m, ready=True) for m in world]
        if "gone" in (step, ("ready", "gone")[turn % 2]):
            world = [m for m in world if not m.deleting]
    assert len(world) == desired
    assert not any(m.outdated or m.lost for m in world)


@pytest.mark.parametrize(
    ("members", "desired", "gone"),
    [
        pytest.param(
            [a_member("a"), a_member("b"), a_member("c", deleting=True)], 2, (), id="one that is leaving counts first"
        ),
        pytest.param(
            [a_member("a", age=9), a_member("b"), a_member("c", marked=True)], 2, ("c",), id="the marked one goes first"
        ),
        pytest.param(
            [a_member("a", age=9), a_member("b", ready=False)], 1, ("b",), id="the unready one before the oldest"
        ),
        pytest.param(
            [a_member("a", age=9), a_member("b", outdated=True)], 1, ("b",), id="the outdated one before the oldest"
        ),
        pytest.param(
            [a_member("a", marked=True), a_member("b", outdated=True)], 1, ("a",), id="a mark beats an old template"
        ),
        pytest.param([a_member("a"), a_member("b", age=9)], 1, ("b",), id="else the oldest"),
        pytest.param([a_member("b"), a_member("a")], 1, ("a",), id="ties by name"),
        pytest.param([a_member("a"), a_member("b")], 0, ("a", "b"), id="down to nothing"),
        pytest.param([a_member("a", marked=True)], 1, (), id="a mark alone deletes nothing"),
    ],
)
def test_who_goes(members: list[Member], desired: int, gone: tuple[str, ...]) -> None:
    assert decide(members, desired).remove == gone


def test_the_newest_goes_first_if_the_policy_says_so() -> None:
    assert decide([a_member("a"), a_member("b", age=9)], 1, DeletePolicy.NEWEST).remove == ("a",)


def test_lost_and_leaving_instances_are_replaced_at_once() -> None:
    decision = decide([a_member("a"), a_member("b", lost=True), a_member("c", deleting=True)], 3)
    assert (decision.create, decision.clear) == (2, ("b",))


def test_a_rolling_update_makes_the_new_one_first_and_waits_for_it() -> None:
    old = [a_member(name, outdated=True) for name in "abc"]
    assert decide(old, 3).create == 1
    assert decide([*old, a_member("n", ready=False)], 3) == decide([], 0)
    assert decide([*old, a_member("n")], 3).remove == ("a",)


def test_a_rolling_update_waits_until_the_old_one_is_really_gone() -> None:
    world = [
        a_member("a", outdated=True, deleting=True),
        a_member("b", outdated=True),
        a_member("c", outdated=True),
        a_member("n"),
    ]
    assert decide(world, 3) == decide([], 0)
    assert decide(world[1:], 3).create == 1
