"""Annotations for fault injection: what they mean, and that what means nothing is named."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capi.backends.port import Delay, Limit, Simulation
from capi.controllers.infra import knobs
from capi.controllers.infra.knobs import InvalidKnob, Outage
from capi.controllers.infra.machine import plan as machine_plan
from capi.controllers.infra.machine.scope import Scope
from tests.unit.controllers.infra.builders import an_infra

PREFIX = "devmachine.infrastructure.cluster.x-k8s.io/simulated-"
NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
VM, NODE = Delay(timedelta(seconds=10), 0.2), Delay(timedelta(seconds=2), 0.2)
KINDS = (knobs.OF_MACHINES, knobs.OF_POOLS, knobs.OF_CLUSTERS)


def notes(**given: str) -> dict[str, str]:
    return {PREFIX + key: value for key, value in given.items()}


def simulation(joined: bool = False, **given: str) -> Simulation:
    return knobs.simulation(notes(**given), VM, NODE, joined=joined)


def test_without_annotations_nothing_goes_wrong() -> None:
    assert simulation() == Simulation(vm=VM, node=NODE)
    assert simulation(failure="", provisioning="", deletion="") == Simulation(vm=VM, node=NODE)
    assert knobs.lingering({}) == timedelta()
    assert (knobs.capacity({}), knobs.outage({}, NOW)) == (None, None)


def test_failures() -> None:
    assert simulation(failure="InstanceLost").lost
    assert simulation(failure="NeverJoin").never_joins
    assert [simulation(failure=f).ready for f in ("NotReady", "Unreachable", "NeverJoin")] == [
        "False",
        "Unknown",
        "True",
    ]


def test_a_machine_that_has_joined_is_not_held_up_again() -> None:
    assert not simulation(joined=True, failure="NeverJoin").never_joins
    assert simulation(joined=True, provisioning="3x") == Simulation(vm=VM, node=NODE)
    assert simulation(joined=True, failure="NotReady").ready == "False"


def test_a_factor_slows_machine_and_node_and_a_duration_the_machine() -> None:
    tripled, longer = simulation(provisioning="3x"), simulation(provisioning="1m30s")
    assert (tripled.vm.base, tripled.node.base) == (timedelta(seconds=30), timedelta(seconds=6))
    assert (longer.vm.base, longer.node.base) == (timedelta(seconds=100), timedelta(seconds=2))
    assert simulation(provisioning="0x").vm.base == timedelta()


def test_a_shortage_says_whose_it_is() -> None:
    assert knobs.limit(notes(capacity="0"), 3, "workers") == (Limit(0, "workers", 3),)
    assert knobs.limit(notes(capacity="7"), 2) == (Limit(7, "", 2),)


def test_an_outage_lasts_until_its_time() -> None:
    soon = "2030-01-31T12:00:30Z"
    assert knobs.outage(notes(outage="true"), NOW) == Outage()
    assert knobs.outage(notes(outage=soon), NOW) == Outage(NOW + timedelta(seconds=30))
    assert knobs.outage(notes(outage=soon), NOW + timedelta(seconds=30)) is None
    assert knobs.outage(notes(outage="false"), NOW) is None


@pytest.mark.parametrize(
    "what, value",
    [
        ("failure", "notready"),
        ("provisioning", "3"),
        ("provisioning", "x"),
        ("provisioning", "nanx"),
        ("provisioning", "-1x"),
        ("provisioning", "1001x"),
        ("deletion", "-1s"),
        ("deletion", "99999999h"),
    ],
)
def test_a_value_that_means_nothing_is_named_with_its_annotation(what: str, value: str) -> None:
    with pytest.raises(InvalidKnob) as raised:
        knobs.check(notes(**{what: value}), knobs.OF_MACHINES, NOW)
    assert PREFIX + what in raised.value.message and repr(value) in raised.value.message
    assert "of Pool a" in raised.value.of("Pool a").message


@pytest.mark.parametrize("value", ["-1", "1.5", "many", "1000001", "9" * 5000, "٣"])
def test_a_capacity_that_is_no_number(value: str) -> None:
    with pytest.raises(InvalidKnob, match="capacity"):
        knobs.capacity(notes(capacity=value))


@pytest.mark.parametrize("value", ["soon", "30s", "2030-01-31", "0001-01-01T00:00:00+23:59", "True"])
def test_an_outage_that_is_no_time(value: str) -> None:
    with pytest.raises(InvalidKnob, match="outage"):
        knobs.outage(notes(outage=value), NOW)


@pytest.mark.parametrize(
    "known, wrong",
    [
        (knobs.OF_MACHINES, "capacity"),
        (knobs.OF_MACHINES, "outage"),
        (knobs.OF_POOLS, "outage"),
        (knobs.OF_CLUSTERS, "failure"),
        (knobs.OF_POOLS, "capactiy"),
    ],
)
def test_an_annotation_in_the_wrong_place_or_misspelt_is_named(known: tuple[str, ...], wrong: str) -> None:
    assert PREFIX + wrong in knobs.misread(notes(**{wrong: "1"}), known, NOW)
    assert knobs.misread({**notes(), "example.com/other": "1"}, known, NOW) == ""


def test_a_pool_may_not_lose_all_that_it_makes() -> None:
    assert "InstanceLost" in knobs.misread(notes(failure="InstanceLost"), knobs.OF_POOLS, NOW)
    assert knobs.misread(notes(failure="InstanceLost"), knobs.OF_MACHINES, NOW) == ""


def test_a_new_machine_takes_over_what_is_of_machines() -> None:
    pool = notes(failure="NotReady", deletion="30s", capacity="3")
    assert knobs.inherited({**pool, "example.com/other": "1"}) == notes(failure="NotReady", deletion="30s")


@given(
    st.dictionaries(st.sampled_from([PREFIX + k for k in ("failure", "provisioning", "deletion", "capacity", "outage")]),
                    st.text(max_size=20) | st.from_regex(r"[0-9.+\-]{1,9}[a-zµ]{0,2}x?", fullmatch=True)),
    st.sampled_from(KINDS),
)  # fmt: skip
def test_whatever_is_written_is_understood_or_refused(annotations: dict[str, str], known: tuple[str, ...]) -> None:
    """Never anything but InvalidKnob; and what passes the check passes everywhere."""
    if knobs.misread(annotations, known, NOW):
        return
    found = knobs.simulation(annotations, VM, NODE, joined=False)
    assert timedelta() <= found.vm.base and timedelta() <= found.node.base
    assert knobs.lingering(annotations) >= timedelta()
    assert all(limit.most >= 0 for limit in knobs.limit(annotations, 0))
    knobs.outage(annotations, NOW)


@pytest.mark.parametrize(
    "simulated, deletion, wanted",
    [(True, "90s", 90), (True, "0s", 0), (True, "long", 0), (True, "", 0), (False, "90s", 0)],
)
def test_only_simulated_machines_stay_when_they_are_deleted(simulated: bool, deletion: str, wanted: int) -> None:
    going = an_infra("a", deleting=True, annotations=notes(deletion=deletion))
    seen = Scope(infra=going, machine=None, machine_pool=None, cluster=None, simulated=simulated)
    since = going.metadata.deletion_timestamp
    assert since is not None
    assert machine_plan.lingers(seen, since) == timedelta(seconds=wanted)
    assert machine_plan.lingers(seen, since + timedelta(seconds=90)) == timedelta()
