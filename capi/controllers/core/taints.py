"""The taints of a Node as its Machine wants them. Pure.

The Node notes (`cluster.x-k8s.io/taints-from-machine`, as key:effect) which of its taints are kept as the Machine has them: these
go when the Machine no longer has them, all others are left alone. That there is a note says that the Node was initialized:
taints that are only for that (OnInitialization) are put on before, and never again.
Upstream: internal/controllers/machine/machine_controller_noderef.go (propagateMachineTaintsToNode).
Differs: there is no feature gate (MachineTaintPropagation); a taint that is kept no more, but still in the spec, stays.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import msgspec

from capi.api.builtin import Node
from capi.api.builtin.core import Taint
from capi.api.core import annotations, taints
from capi.api.core.v1beta2 import Machine

_ALWAYS = "Always"
_Key: TypeAlias = tuple[str, str]
"""Key and effect: what tells taints of one Node apart."""


class Wanted(NamedTuple):
    """The whole list, and the note of what is kept."""

    taints: tuple[Taint, ...]
    note: str


def uninitialized(taint: Taint) -> bool:
    """The taint that bootstrap puts on a Node until its labels are right."""
    return taint.key == taints.UNINITIALIZED and taint.effect == "NoSchedule"


def initialized(node: Node) -> tuple[Taint, ...]:
    """The Node's taints without the one of a Node that nobody has looked at yet."""
    return tuple(taint for taint in node.spec.taints if not uninitialized(taint))


def wanted_taints(node: Node, machine: Machine) -> Wanted:
    """What the Node has, with the Machine's in their places or at the end, without those that the Machine has given up."""
    note = node.metadata.annotations.get(annotations.NODE_TAINTS_FROM_MACHINE)
    asked = {
        (taint.key, taint.effect): Taint(key=taint.key, value=taint.value, effect=taint.effect)
        for taint in machine.spec.taints
        if note is None or taint.propagation == _ALWAYS
    }
    listed = {(taint.key, taint.effect) for taint in machine.spec.taints}
    given_up = _noted(note or "") - listed
    kept = [_as_asked(taint, asked) for taint in initialized(node) if _key(taint) not in given_up]
    present = {_key(taint) for taint in kept}
    added = [taint for key, taint in asked.items() if key not in present]
    always = [(taint.key, taint.effect) for taint in machine.spec.taints if taint.propagation == _ALWAYS]
    return Wanted((*kept, *added), _noting(always))


def _key(taint: Taint) -> _Key:
    return taint.key, taint.effect


def _as_asked(taint: Taint, asked: dict[_Key, Taint]) -> Taint:
    """With the value asked for; since when it is there stays."""
    wanted = asked.get(_key(taint))
    return taint if wanted is None else msgspec.structs.replace(taint, value=wanted.value)


def _noting(kept: Iterable[_Key]) -> str:
    return ",".join(sorted(f"{key}:{effect}" for key, effect in kept))


def _noted(note: str) -> set[_Key]:
    """What is no note of ours is none."""
    pairs = (entry.partition(":") for entry in note.split(","))
    return {(key, effect) for key, colon, effect in pairs if colon}
