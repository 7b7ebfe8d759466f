"""Laws of field sets, of apply and of the no-op test, over random objects."""

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capi.kube import noop
from capi.kube.errors import ApiError
from capi.kube.smd import fields
from tests.unit.kube.smd.rig import SCHEMA, a_widget, apply, bare, entries, update


def unhurried(examples: int) -> settings:
    """A busy machine is no failure."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])


NAMES = st.sampled_from(["a", "b", "c"])
WORDS = st.sampled_from(["x", "y", "<z>"])


def some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=members)


def a_set(items: st.SearchStrategy[Any], least: int) -> st.SearchStrategy[Any]:
    return st.lists(items, min_size=least, max_size=3, unique=True)


def specs(least: int) -> st.SearchStrategy[Any]:
    """Specs whose maps and lists have at least `least` members."""
    item = st.builds(
        lambda name, rest: {"name": name, **rest}, NAMES, some(value=st.integers(0, 1), tags=a_set(WORDS, least))
    )
    port = st.builds(
        lambda number, rest: {"port": number, **rest},
        st.integers(80, 81),
        some(protocol=st.sampled_from(["TCP", "UDP"]), name=WORDS),
    )
    return some(
        size=st.integers(0, 2),
        mode=WORDS,
        on=st.booleans(),
        amount=st.sampled_from([1, "1", "50%"]),
        gmap=st.dictionaries(NAMES, WORDS, min_size=least, max_size=2),
        amap=st.dictionaries(NAMES, WORDS, min_size=least, max_size=2),
        atom=st.lists(WORDS, min_size=least, max_size=2),
        names=a_set(WORDS, least),
        items=st.lists(item, min_size=least, max_size=3, unique_by=lambda i: i["name"]),
        ports=st.lists(port, min_size=least, max_size=2, unique_by=lambda p: (p["port"], p.get("protocol", "TCP"))),
        deep=some(a=some(b=st.integers(0, 1), c=st.integers(0, 1)).filter(lambda v: bool(v) or not least)).filter(
            lambda v: bool(v) or not least
        ),
    )


def widgets(least: int = 0) -> st.SearchStrategy[Any]:
    labels = st.dictionaries(NAMES, WORDS, min_size=least, max_size=2)
    meta = some(labels=labels, finalizers=a_set(NAMES, least))
    spec = specs(least).filter(lambda v: bool(v) or not least)
    return st.builds(lambda s, m: a_widget(s, **m), spec, meta)


STEPS = st.lists(
    st.tuples(st.sampled_from(["apply", "update"]), st.sampled_from(["m1", "m2", "m3"]), st.booleans()), max_size=4
)


def history(steps: Any, bodies: list[Any]) -> Any:
    """An object after some writes; refused ones leave it as it is."""
    live = None
    for at, ((kind, manager, force), body) in enumerate(zip(steps, bodies, strict=False)):
        try:
            live = (
                apply(live, body, manager, force=force, at=at)
                if kind == "apply"
                else update(live, body, manager, at=at)
            )
        except ApiError:
            continue
    return live


HISTORIES = st.builds(history, STEPS, st.lists(widgets(), min_size=4, max_size=4))
FULL_HISTORIES = st.builds(history, STEPS, st.lists(widgets(1), min_size=4, max_size=4))


@unhurried(40)
@given(FULL_HISTORIES, widgets(1), st.booleans())
def test_applying_twice_is_applying_once(live: Any, body: Any, force: bool) -> None:
    before = copy.deepcopy(live)
    try:
        once = apply(live, body, force=force, at=10)
    except ApiError:
        return
    finally:
        assert live == before
    assert apply(once, copy.deepcopy(body), force=force, at=20) is once


@unhurried(40)
@given(FULL_HISTORIES, widgets(1))
def test_an_applied_configuration_is_in_the_result(live: Any, body: Any) -> None:
    assert contains(bare(apply(live, body, force=True)), body)


def contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and contains(whole[k], v) for k, v in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(contains(w, p) for w in whole) for p in part)
    return bool(whole == part)


@unhurried(80)
@given(FULL_HISTORIES, widgets(1), st.booleans())
def test_changes_nothing_says_what_apply_would_do(live: Any, body: Any, applied: bool) -> None:
    live = apply(live, body, force=True, at=10) if applied else live
    if live is None or not entries(live):
        return
    unchanged = apply(live, copy.deepcopy(body), force=True, at=20) is live
    assert noop.changes_nothing(live, body, "m1") is unchanged


@unhurried(40)
@given(HISTORIES, widgets(), st.sampled_from(["m1", "m2"]))
def test_what_changes_nothing_is_never_a_change(live: Any, body: Any, manager: str) -> None:
    if live is not None and entries(live) and noop.changes_nothing(live, body, manager):
        assert bare(apply(live, body, manager, force=True, at=20)) == bare(live)


@unhurried(40)
@given(FULL_HISTORIES)
def test_every_owned_leaf_exists(live: Any) -> None:
    """A container may be gone though it has an owner: pruning by another has emptied it."""
    for entry in entries(live) if live else []:
        for path in fields.paths(entry["fieldsV1"]):
            assert found(live, path), fields.path_string(path)


def found(value: Any, path: fields.Path) -> bool:
    node = SCHEMA.root
    for name in path:
        if name.startswith("f:"):
            node = node.member(name[2:])
            if not isinstance(value, dict) or name[2:] not in value:
                return node.is_map or node.is_list
            value = value[name[2:]]
        else:
            value = next((item for item in value or [] if node.path_element(item) == name), None)
            if value is None:
                return False
            node = node.items or node
    return True


ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
SETS = st.recursive(
    st.just({}),
    lambda inner: st.builds(
        lambda below, member: {**({".": {}} if member and below else {}), **below},
        st.dictionaries(ELEMENTS, inner, max_size=3),
        st.booleans(),
    ),
    max_leaves=8,
).filter(lambda s: "." not in s)


def members(owned: Any) -> set[fields.Path]:
    return set(fields.paths(owned))


@unhurried(40)
@given(SETS, SETS)
def test_field_sets_are_sets(left: Any, right: Any) -> None:
    before = copy.deepcopy((left, right))
    assert members(fields.union(left, right)) == members(left) | members(right)
    assert members(fields.difference(left, right)) == members(left) - members(right)
    assert members(fields.intersection(left, right)) == members(left) & members(right)
    gone = {p for p in members(left) if any(p[:n] in members(right) for n in range(1, len(p) + 1))}
    assert members(fields.recursive_difference(left, right)) == members(left) - gone
    assert members(fields.only(left, right)) == gone
    assert all(fields.has(left, path) for path in members(left))
    assert (left, right) == before


@unhurried(40)
@given(SETS)
def test_what_changes_nothing_is_the_same_set(owned: Any) -> None:
    assert fields.union(owned, owned) is owned
    assert fields.difference(owned, {}) is owned
    assert fields.normalized(owned) == owned
