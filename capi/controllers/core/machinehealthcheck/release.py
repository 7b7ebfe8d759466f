"""Verdicts that no check stands for any more: of Machines whose check was deleted or selects others now.

A Machine with such a verdict would never be Ready again, and its pool might still replace it. So the conditions go when no check
of the Cluster selects the Machine by its labels. Paused checks stand for theirs, and Machines that are paused or excepted from
remediation keep what was said of them.
Differs from upstream, where they stay.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from capi.api.core import annotations, labels
from capi.api.core.v1beta2 import Cluster, Machine, MachineHealthCheck
from capi.controllers import pause
from capi.controllers.core import indexes
from capi.controllers.core.machinehealthcheck.plan import MANAGER
from capi.controllers.core.machinehealthcheck.reconciler import matches
from capi.controllers.core.machinehealthcheck.remediation import OURS
from capi.kube.types import Key
from capi.runtime.plan import Apply, Plan, target
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Watch


class VerdictReleaseReconciler:
    """Takes verdicts back that no check stands for. One pass looks at all Machines of a Cluster."""

    kind: type[Cluster] = Cluster
    manager: ClassVar[str] = MANAGER
    finalizer: ClassVar[str | None] = None
    spacing: ClassVar[timedelta] = timedelta(seconds=1)

    def __init__(self) -> None:
        self.watches: Sequence[AnyWatch] = (
            Watch(MachineHealthCheck, keys=_of_check, changed=_selects_others, indexes=indexes.HEALTH_CHECK),
            Watch(Machine, keys=_of_machine, changed=_machine_matters, indexes=indexes.MACHINE),
        )

    def paused(self, obj: Cluster, reader: Reader) -> Sequence[str]:
        """Never: the condition Paused of a Cluster is its own controller's. `reconcile` does nothing to a paused one."""
        return ()

    async def reconcile(self, obj: Cluster, reader: Reader, now: datetime) -> Plan:
        if pause.causes(obj, obj):
            return Plan()
        checks = reader.index(MachineHealthCheck, "cluster", indexes.cluster_value(obj.namespace, obj.name))
        machines = reader.list(Machine, obj.namespace, {labels.CLUSTER_NAME: obj.name})
        return plan(checks, machines)

    async def gone(self, key: Key) -> None:
        pass


def plan(checks: Sequence[MachineHealthCheck], machines: Iterable[Machine]) -> Plan:
    """Own nothing of Machines that no check selects. Pure."""
    return Plan(
        writes=[
            Apply(target(machine), {"status": {}}, "status", must_exist=True)
            for machine in machines
            if _has_verdict(machine) and not machine.deleting and annotations.PAUSED not in machine.metadata.annotations
            if not any(matches(check.spec.selector, machine.metadata.labels) for check in checks)
        ]
    )


def _has_verdict(machine: Machine) -> bool:
    return any(condition.type in OURS for condition in machine.status.conditions)


def _of_check(check: MachineHealthCheck, reader: Reader) -> Iterable[Key]:
    return (Key(check.namespace, check.spec.cluster_name),)


def _selects_others(old: MachineHealthCheck, new: MachineHealthCheck) -> bool:
    return old.spec.selector != new.spec.selector


def _of_machine(machine: Machine, reader: Reader) -> Iterable[Key]:
    return (Key(machine.namespace, machine.spec.cluster_name),) if _has_verdict(machine) else ()


def _machine_matters(old: Machine, new: Machine) -> bool:
    return _machine_facts(old) != _machine_facts(new)


def _machine_facts(machine: Machine) -> tuple[Any, ...]:
    told = [(c.type, c.status) for c in machine.status.conditions if c.type in OURS]
    return machine.metadata.labels, annotations.PAUSED in machine.metadata.annotations, told
