"""How a pool replaces instances made from an earlier template: `spec.strategy` with its numbers resolved. Pure.

Rounding is that of Deployments (k8s.io/kubernetes/pkg/controller/deployment/util, ResolveFenceposts): a percentage of
surge is rounded up, one of unavailability down, and if nothing is left of either, one instance may be unavailable.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from capi.api.infra.v1beta2 import DevMachinePoolRollingUpdate
from capi.controllers.infra.family import InfraMachinePool

ON_DELETE = "OnDelete"
_PERCENT = re.compile(r"([0-9]+)%")


class DeletePolicy(StrEnum):
    """Who goes first among equals."""

    OLDEST = "Oldest"
    NEWEST = "Newest"
    RANDOM = "Random"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """By default new instances come one at a time, and an old one goes when the new one is ready."""

    on_delete: bool = False
    """Outdated instances stay until somebody deletes them."""
    max_surge: int = 1
    """Instances above the wanted number that a rolling update may use; ≥ 0."""
    max_unavailable: int = 0
    """Ready instances that may be missing for a rolling update; ≥ 0."""
    delete_policy: DeletePolicy = DeletePolicy.OLDEST


def strategy_of(pool: InfraMachinePool, desired: int) -> Strategy:
    """The pool's strategy at this wanted number."""
    given = pool.spec.strategy
    if given is None:
        return Strategy()
    update = given.rolling_update or DevMachinePoolRollingUpdate()
    surge = _resolved(1 if update.max_surge is None else update.max_surge, desired, up=True)
    unavailable = _resolved(update.max_unavailable or 0, desired)
    return Strategy(
        on_delete=given.type == ON_DELETE,
        max_surge=surge,
        max_unavailable=unavailable if surge or unavailable else 1,
        delete_policy=DeletePolicy(update.delete_policy or DeletePolicy.OLDEST),
    )


def _resolved(value: int | str, desired: int, *, up: bool = False) -> int:
    """A number, or a percentage of `desired`. Admission lets nothing else in; what slipped through counts as 0."""
    if isinstance(value, int):
        return max(0, value)
    match = _PERCENT.fullmatch(value)
    share = int(match[1]) * desired if match is not None else 0
    return -(-share // 100) if up else share // 100
