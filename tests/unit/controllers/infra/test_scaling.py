"""Who comes and who goes in a pool."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.controllers.infra.machinepool.scaling import Decision, Member, decide
from capi.controllers.infra.machinepool.strategy import DeletePolicy, Strategy

STATES = 100_000
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


@st.composite
def strategies(draw: st.DrawFn) -> Strategy:
    surge = draw(st.integers(0, 4))
    return Strategy(
        on_delete=draw(st.booleans()), max_surge=surge, max_unavailable=draw(st.integers(0 if surge else 1, 4)),
        delete_policy=draw(st.sampled_from(DeletePolicy)),
    )  # fmt: skip


def rolling(members: list[Member], strategy: Strategy) -> bool:
    return not strategy.on_delete and any(m.outdated and not m.lost for m in members)


@given(pools(), st.integers(0, 12), strategies())
def test_never_more_than_the_surplus_is_taken(members: list[Member], desired: int, strategy: Strategy) -> None:
    check_takings(members, desired, strategy, decide(members, desired, strategy))


def check_takings(members: list[Member], desired: int, strategy: Strategy, decision: Decision) -> None:
    """The surplus, and what a rolling update may make do without; of those nobody who would be missed."""
    there = active(members)
    allowed = strategy.max_unavailable if rolling(there, strategy) else 0
    assert len(decision.remove) <= max(0, len(there) - desired + allowed)
    assert set(decision.remove) <= {m.name for m in there}
    assert not (decision.create and decision.remove)
    ready = [m for m in there if m.ready]
    left = [m for m in ready if m.name not in decision.remove]
    marked = sum(m.marked and m.name in decision.remove for m in ready)
    assert len(left) >= min(len(ready), desired - allowed) - marked


def check_makings(members: list[Member], desired: int, strategy: Strategy, decision: Decision) -> None:
    """No more than wanted; while a rolling update lasts no more than its surge, unless others took instances away."""
    there = active(members)
    most = desired + (strategy.max_surge if rolling(members, strategy) else 0)
    assert not decision.create or len(there) + decision.create <= most
    live = sum(not m.lost for m in members)
    if rolling(members, strategy) and decision.create:
        missing = 0 if strategy.max_unavailable else max(0, desired - len(there))
        assert decision.create <= max(missing, desired + strategy.max_surge - live)


def check_again(members: list[Member], desired: int, strategy: Strategy, first: Decision) -> None:
    """The same pass over its own deletions, whether or not it sees all of them."""
    seen = [replace(m, deleting=m.deleting or m.name in (*first.remove, *first.clear)) for m in members]
    again = decide(seen, desired, strategy)
    assert not again.remove
    assert not again.clear


def a_state(random: Random) -> tuple[list[Member], int, Strategy]:
    surge = random.randint(0, 4)
    strategy = Strategy(
        on_delete=random.random() < 0.2, max_surge=surge, max_unavailable=random.randint(0 if surge else 1, 4),
        delete_policy=random.choice(list(DeletePolicy)),
    )  # fmt: skip
    often = [random.random() for _ in range(5)]
    members = [
        Member(
            name=f"m{number}", created=EPOCH + timedelta(minutes=random.randint(0, 3)), deleting=random.random() < often[0] / 2,
            lost=random.random() < often[1] / 2, marked=random.random() < often[2], ready=random.random() < often[3],
            outdated=random.random() < often[4],
        )
        for number in range(random.randint(0, 14))
    ]  # fmt: skip
    return members, random.randint(0, 12), strategy


def test_a_hundred_thousand_states() -> None:
    random = Random(5)
    for _ in range(STATES):
        members, desired, strategy = a_state(random)
        decision = decide(members, desired, strategy)
        assert decide(members[::-1], desired, strategy) == decision
        check_takings(members, desired, strategy, decision)
        check_makings(members, desired, strategy, decision)
        check_again(members, desired, strategy, decision)


@pytest.mark.parametrize("seed", range(300))
def test_whatever_happens_an_update_ends_and_keeps_to_its_bounds(seed: int) -> None:
    """A pool that is full and ready, a new template: instances start, become ready and shut down at random."""
    random = Random(seed)
    _, desired, strategy = a_state(random)
    strategy = replace(strategy, on_delete=False)
    world = [Member(name=f"old-{i}", created=EPOCH, ready=True, outdated=True) for i in range(desired)]
    made = 0
    for _turn in range(600):
        decision = decide(world, desired, strategy)
        world = [replace(m, deleting=m.deleting or m.name in decision.remove) for m in world]
        world += [Member(name=f"new-{made + i}", created=EPOCH) for i in range(decision.create)]
        made += decision.create
        assert len(world) <= desired + strategy.max_surge
        assert sum(m.ready for m in active(world)) >= desired - strategy.max_unavailable
        world = [m for m in world if not (m.deleting and random.random() < 0.3)]
        world = [replace(m, ready=m.ready or random.random() < 0.3) for m in world]
    assert made == desired
    assert [m for m in world if m.outdated or not m.ready] == []
    assert len(world) == desired


@given(pools(), st.integers(0, 12), strategies(), st.randoms())
def test_the_order_of_the_members_does_not_matter(
    members: list[Member], desired: int, strategy: Strategy, shuffler: Random
) -> None:
    shuffled = shuffler.sample(members, len(members))
    assert decide(members, desired, strategy) == decide(shuffled, desired, strategy)


@given(pools(), st.integers(0, 12), strategies())
def test_a_pass_that_sees_its_own_deletions_takes_nobody_else(
    members: list[Member], desired: int, strategy: Strategy
) -> None:
    check_again(members, desired, strategy, decide(members, desired, strategy))


@given(pools(), st.integers(0, 12))
def test_as_many_ready_ones_stay_as_can(members: list[Member], desired: int) -> None:
    unmarked = [replace(m, marked=False) for m in members]
    gone = set(decide(unmarked, desired).remove)
    ready = [m for m in active(unmarked) if m.ready]
    left = [m for m in ready if m.name not in gone]
    assert len(left) >= min(len(ready), desired)


@given(pools(), st.integers(0, 8), strategies(), st.randoms(use_true_random=False))
def test_every_pool_settles_at_ready_members_of_the_present_template(
    members: list[Member], desired: int, strategy: Strategy, shuffler: Random
) -> None:
    world, made = list(members), 0
    for turn in range(200):
        decision = decide(world, desired, strategy)
        taken = {*decision.remove, *decision.clear}
        world = [replace(m, deleting=m.deleting or m.name in taken) for m in world]
        world += [Member(name=f"new-{made + i}", created=EPOCH) for i in range(decision.create)]
        made += decision.create
        if "ready" in (step := shuffler.choice(["ready", "gone", "nothing"]), ("ready", "gone")[turn % 2]):
            world = [replace(m, ready=True) for m in world]
        if "gone" in (step, ("ready", "gone")[turn % 2]):
            world = [m for m in world if not m.deleting]
    assert len(world) == desired
    assert not any(m.lost or (m.outdated and not strategy.on_delete) for m in world)


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
    assert decide([a_member("a"), a_member("b", age=9)], 1, Strategy(delete_policy=DeletePolicy.NEWEST)).remove == (
        "a",
    )


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


def test_an_update_may_make_do_with_fewer_and_waits_for_room() -> None:
    """Surge 0: one goes, its place is taken when it has gone."""
    strategy = Strategy(max_surge=0, max_unavailable=1)
    old = [a_member(name, outdated=True) for name in "abc"]
    assert decide(old, 3, strategy) == Decision(remove=("a",))
    leaving = [replace(old[0], deleting=True), *old[1:]]
    assert decide(leaving, 3, strategy) == Decision()
    assert decide(old[1:], 3, strategy) == Decision(create=1)
    assert decide([*old[1:], a_member("n", ready=False)], 3, strategy) == Decision()


def test_a_surge_of_several_makes_them_at_once() -> None:
    old = [a_member(name, outdated=True) for name in "abc"]
    assert decide(old, 3, Strategy(max_surge=2)) == Decision(create=2)


def test_old_ones_that_are_not_ready_go_first_and_cost_nothing() -> None:
    old = [a_member("a", outdated=True, age=9), a_member("b", outdated=True, ready=False)]
    assert decide(old, 2, Strategy(max_unavailable=1)) == Decision(remove=("b",))


def test_instances_that_others_took_away_are_replaced_at_once_in_an_update() -> None:
    world = [a_member("a", outdated=True), a_member("b", deleting=True), a_member("c", deleting=True)]
    assert decide(world, 3) == Decision(create=2)


def test_new_ones_that_never_get_ready_cost_no_old_one() -> None:
    world = [*(a_member(name, outdated=True) for name in "abc"), a_member("n", ready=False)]
    assert decide(world, 3) == Decision()


def test_a_marked_one_goes_before_an_outdated_one_when_the_pool_shrinks_in_an_update() -> None:
    world = [a_member("a", outdated=True, age=9), a_member("b"), a_member("c", marked=True)]
    assert decide(world, 2) == Decision(remove=("c",))


def test_on_delete_leaves_old_ones_until_somebody_deletes_them() -> None:
    strategy = Strategy(on_delete=True)
    old = [a_member(name, outdated=True) for name in "abc"]
    assert decide(old, 3, strategy) == Decision()
    assert decide(old, 2, strategy) == Decision(remove=("a",))
    assert decide([replace(old[0], deleting=True), *old[1:]], 3, strategy) == Decision(create=1)


def test_random_is_drawn_once() -> None:
    """Neither the oldest nor the first by name; the same in every process."""
    world = [a_member(name, age=number) for number, name in enumerate("abcdef")]
    strategy = Strategy(delete_policy=DeletePolicy.RANDOM)
    assert decide(world, 4, strategy) == decide(world[::-1], 4, strategy)
    assert decide(world, 4, strategy).remove == ("d", "f")
