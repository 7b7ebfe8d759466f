"""How far a container is, as the conditions of its InfraMachine. Pure.

Upstream: conditions ContainerProvisioned, CGroupsReady, PreLoadedImagesReady and BootstrapCompleted of the docker backend.
Differs: a bootstrap that is under way has reason NotCompleted (upstream takes the constant of another condition).
"""

from enum import IntEnum

from capi.api.core.conditions import Dev, Reason
from capi.backends.port import Stage
from capi.kube.conditions import Condition


class Phase(IntEnum):
    """What is being done, in this order."""

    CREATING = 0
    BOOTING = 1
    PRELOADING = 2
    BOOTSTRAPPING = 3
    DONE = 4


_STEPS = (
    (Phase.CREATING, Dev.CONTAINER_PROVISIONED, Reason.PROVISIONED, Dev.NOT_PROVISIONED),
    (Phase.BOOTING, Dev.CGROUPS_READY, Reason.READY, Reason.NOT_READY),
    (Phase.PRELOADING, Dev.PRELOADED_IMAGES_READY, Reason.READY, Reason.NOT_READY),
    (Phase.BOOTSTRAPPING, Dev.BOOTSTRAP_COMPLETED, Dev.COMPLETED, Dev.NOT_COMPLETED),
)
"""Phase, its condition, the reason when it is over, the reason while it goes on."""
_WAITS = {
    Phase.CREATING: (Dev.WAITING_FOR_CONTAINER, "Waiting for the container"),
    Phase.BOOTING: (Dev.WAITING_FOR_CGROUPS, "Waiting for the container to boot"),
    Phase.PRELOADING: (Dev.WAITING_FOR_PRELOADED_IMAGES, "Waiting for images to be loaded"),
}
"""What later steps wait for."""


def conditions(phase: Phase, message: str, *, reason: str = "") -> tuple[Condition, ...]:
    """Steps before `phase` are over, it goes on (or has failed, for a `reason`), the later ones wait for it."""
    found: list[Condition] = []
    for step, type_, over, going in _STEPS:
        if step < phase:
            found.append(Condition(type=type_, status="True", reason=over))
        elif step == phase:
            found.append(Condition(type=type_, status="False", reason=reason or going, message=message))
        else:
            why, text = _WAITS[phase]
            found.append(Condition(type=type_, status="False", reason=why, message=text))
    return tuple(found)


def stopped(message: str, *, bootstrapped: bool) -> tuple[Condition, ...]:
    """The container is there and does not run. What it had become is remembered."""
    first, *rest = conditions(Phase.DONE if bootstrapped else Phase.CREATING, message)
    failing = Condition(type=first.type, status="False", reason=Dev.NOT_PROVISIONED, message=message)
    return (failing, *rest)


def stage(phase: Phase) -> Stage:
    """A machine counts as provisioned before its bootstrap, as in a cloud."""
    if phase < Phase.BOOTSTRAPPING:
        return Stage.STARTING
    return Stage.JOINED if phase == Phase.DONE else Stage.RUNNING
