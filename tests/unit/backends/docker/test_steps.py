"""How far a container is, in conditions."""

import pytest

from capi.backends.docker import steps
from capi.backends.docker.backend import addresses
from capi.backends.docker.steps import Phase
from capi.backends.port import Address, IPFamily, Stage
from tests.unit.backends.docker.builders import a_container

TYPES = ("ContainerProvisioned", "CGroupsReady", "PreLoadedImagesReady", "BootstrapCompleted")


def told(phase: Phase, message: str = "busy", reason: str = "") -> list[tuple[str, str]]:
    found = steps.conditions(phase, message, reason=reason)
    assert tuple(c.type for c in found) == TYPES
    return [(c.status, c.reason) for c in found]


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (
            Phase.CREATING,
            [("False", "NotProvisioned"), *[("False", "WaitingForContainer")] * 3],
        ),
        (
            Phase.BOOTING,
            [("True", "Provisioned"), ("False", "NotReady"), *[("False", "WaitingForCGroups")] * 2],
        ),
        (
            Phase.PRELOADING,
            [("True", "Provisioned"), ("True", "Ready"), ("False", "NotReady"), ("False", "WaitingForPreloadedImages")],
        ),
        (
            Phase.BOOTSTRAPPING,
            [("True", "Provisioned"), ("True", "Ready"), ("True", "Ready"), ("False", "NotCompleted")],
        ),
        (
            Phase.DONE,
            [("True", "Provisioned"), ("True", "Ready"), ("True", "Ready"), ("True", "Completed")],
        ),
    ],
)
def test_what_is_over_goes_on_and_waits(phase: Phase, expected: list[tuple[str, str]]) -> None:
    assert told(phase) == expected


def test_a_failure_has_its_reason_and_its_words() -> None:
    assert told(Phase.BOOTSTRAPPING, reason="Failed")[3] == ("False", "Failed")
    assert steps.conditions(Phase.BOOTSTRAPPING, "exit 1", reason="Failed")[3].message == "exit 1"


def test_a_container_that_stopped_is_not_provisioned_and_remembers_what_it_had_become() -> None:
    first, *rest = steps.stopped("it is not running any more", bootstrapped=True)
    assert (first.type, first.status, first.reason) == ("ContainerProvisioned", "False", "NotProvisioned")
    assert first.message == "it is not running any more"
    assert [c.status for c in rest] == ["True", "True", "True"]
    assert [c.status for c in steps.stopped("x", bootstrapped=False)] == ["False"] * 4


def test_it_counts_as_provisioned_while_its_bootstrap_still_runs() -> None:
    found = [steps.stage(phase) for phase in Phase]
    assert found == [Stage.STARTING, Stage.STARTING, Stage.STARTING, Stage.RUNNING, Stage.JOINED]


NAME, FOUR, SIX = Address("Hostname", "c1-w-1"), "172.18.0.2", "fc00::2"


def both(ip: str) -> tuple[Address, ...]:
    return Address("InternalIP", ip), Address("ExternalIP", ip)


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (IPFamily.V4, (NAME, *both(FOUR))),
        (IPFamily.V6, (NAME, *both(SIX))),
        (IPFamily.DUAL, (NAME, *both(FOUR), *both(SIX))),
    ],
)
def test_addresses_of_a_family(family: IPFamily, expected: tuple[Address, ...]) -> None:
    assert addresses(a_container(ipv4=FOUR, ipv6=SIX), family) == expected


def test_an_address_that_is_not_there_is_none() -> None:
    assert addresses(a_container(ipv4=FOUR), IPFamily.DUAL) == (NAME, *both(FOUR))
    assert addresses(a_container(), IPFamily.V4) == (NAME,)
