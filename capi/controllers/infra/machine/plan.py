"""DevMachine: what a pass wants, given what was read and what the backend says. Pure.

Upstream: docker/reconcilers/backends/inmemory/inmemorymachine_backend.go. Differs: one status write per step, jitter drawn
once per machine, no writes to the Machine.
"""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from capi.api.core import labels
from capi.api.core.conditions import Dev
from capi.api.core.v1beta2 import Cluster, Machine, MachinePool
from capi.api.infra.v1beta2 import DevMachine, InMemoryStep
from capi.backends.port import Delay, Instance, InstanceSpec, Limit, Stage
from capi.controllers.infra import gates, knobs
from capi.controllers.infra.machine import status as machine_status
from capi.controllers.infra.names import (
    CAPACITY_SHORTAGE,
    DEFAULT_VERSION,
    DOMAIN_ANNOTATION,
    INSTANCE_GONE,
    INVALID_SIMULATION,
    VERSION_ANNOTATION,
    provider_id,
)
from capi.kube import conditions, duration
from capi.kube.errors import BackendError, TerminalError
from capi.runtime.plan import Apply, ClusterKey, Event, Plan, Write, target

SHORT_WAIT = timedelta(seconds=2)
"""A boot that takes less is not worth a status write that only says so."""
SHORTAGE_RETRY = timedelta(seconds=30)
"""When to ask again for a machine that there was no room for, at the latest: the backend tells when one goes."""


@dataclass(frozen=True, slots=True)
class Scope:
    """All that one pass looks at."""

    infra: DevMachine
    machine: Machine | None
    """Its owner; a pool's DevMachine exists before it."""
    machine_pool: MachinePool | None
    """Of a pool's DevMachine."""
    cluster: Cluster | None
    pool: str = ""
    """Name of the DevMachinePool that owns it."""
    limits: tuple[Limit, ...] = ()
    """Simulated shortages of its pool and its cluster."""

    @property
    def of_pool(self) -> bool:
        return bool(self.pool or self.infra.metadata.labels.get(labels.POOL_NAME))

    @property
    def cluster_key(self) -> ClusterKey:
        name = (
            self.cluster.name if self.cluster is not None else self.infra.metadata.labels.get(labels.CLUSTER_NAME, "")
        )
        return ClusterKey(self.infra.namespace, name)

    @property
    def id(self) -> str:
        return self.infra.spec.provider_id or provider_id(*self.cluster_key, self.infra.name)


def gate(seen: Scope) -> gates.Gate | None:
    """What the machine waits for before it is started."""
    return gates.infrastructure(seen.cluster) or gates.bootstrap(seen.cluster, _data_secret(seen))


def ownerless(seen: Scope) -> bool:
    """A machine on its own has no owner yet, or a pool's MachinePool is gone: nothing is done, core's write will wake it."""
    return seen.machine_pool is None if seen.of_pool and seen.machine is None else seen.machine is None


def instance_spec(seen: Scope, now: datetime) -> InstanceSpec:
    """What to ask of the backend. Raises TerminalError for durations and jitters that are none, InvalidKnob."""
    simulated = seen.infra.spec.backend.in_memory
    running = conditions.get(seen.infra.status.conditions, Dev.VM_PROVISIONED)
    vm = _delay(simulated.vm if simulated else None, "vm")
    node = _delay(simulated.node if simulated else None, "node")
    joined = conditions.is_true(seen.infra.status.conditions, Dev.NODE_PROVISIONED)
    knobs.check(seen.infra.metadata.annotations, knobs.OF_MACHINES, now)
    asked = knobs.simulation(seen.infra.metadata.annotations, vm, node, joined=joined)
    return InstanceSpec(
        id=seen.id,
        name=seen.infra.name,
        uid=seen.infra.metadata.uid,
        cluster=seen.cluster_key,
        pool=seen.pool,
        version=_version(seen),
        failure_domain=_failure_domain(seen),
        created=seen.infra.metadata.creation_timestamp or now,
        running_since=running.last_transition_time if running is not None and running.status == "True" else None,
        simulation=dataclasses.replace(asked, lost=asked.lost or _was_lost(seen.infra), limits=seen.limits),
    )


def control_plane_delays(seen: Scope) -> tuple[Delay, Delay]:
    """How long etcd and API server take after the Node. Raises TerminalError for what is no duration or jitter."""
    simulated = seen.infra.spec.backend.in_memory
    etcd = _delay(simulated.etcd if simulated else None, "etcd")
    return etcd, _delay(simulated.api_server if simulated else None, "apiServer")


def waiting(seen: Scope, why: gates.Gate) -> Plan:
    """The machine was not started."""
    return Plan(status=machine_status.not_started(seen.infra, why.reason, why.message))


def progress(seen: Scope, spec: InstanceSpec, instance: Instance, now: datetime) -> Plan:
    """The machine is as the backend says."""
    later = instance.next_change - now if instance.next_change is not None else None
    booting = instance.stage == Stage.STARTING
    if booting and later is not None and later < SHORT_WAIT and not seen.infra.status.conditions:
        return Plan(requeue_after=later)
    if instance.waiting_for_control_plane and conditions.is_true(seen.infra.status.conditions, Dev.NODE_PROVISIONED):
        return Plan()  # after a restart of this process its API server comes a moment later: the Node is in its data
    status = machine_status.started(seen.infra, instance, spec.failure_domain)
    return Plan(writes=() if booting else _provider_id(seen), status=status, requeue_after=later)


def failed(seen: Scope, error: BackendError) -> Plan:
    """The backend refused. A machine that is gone stays so; everything else is tried again."""
    if error.reason == CAPACITY_SHORTAGE:
        return _short(seen, error)
    final = error.reason == INSTANCE_GONE
    return Plan(status=machine_status.refused(seen.infra, error.reason, error.message), error=None if final else error)


def invalid(seen: Scope, error: TerminalError) -> Plan:
    """The spec cannot work; a change of it wakes the key."""
    return Plan(status=machine_status.not_started(seen.infra, "InternalError", error.message))


def misread(seen: Scope, error: knobs.InvalidKnob) -> Plan:
    """An annotation for fault injection cannot be understood. A machine that runs goes on; a change of it wakes the key."""
    return Plan(status=machine_status.refused(seen.infra, INVALID_SIMULATION, error.message))


def lingers(seen: Scope, now: datetime) -> timedelta:
    """How long a machine that is being deleted stays, because a slow deletion is simulated; nonsense holds nothing up."""
    since = seen.infra.metadata.deletion_timestamp
    try:
        stays = knobs.lingering(seen.infra.metadata.annotations)
    except knobs.InvalidKnob:
        return timedelta()
    return max(timedelta(), since + stays - now) if since is not None else timedelta()


def _short(seen: Scope, error: BackendError) -> Plan:
    """There is no room for the machine: said once, asked for again."""
    before = conditions.get(seen.infra.status.conditions, Dev.VM_PROVISIONED)
    said = before is not None and before.reason == error.reason
    return Plan(
        status=machine_status.refused(seen.infra, error.reason, error.message),
        events=() if said else (Event(error.reason, error.message, "Warning"),),
        requeue_after=SHORTAGE_RETRY,
    )


def _was_lost(infra: DevMachine) -> bool:
    """Reported before: a lost machine does not come back with a restart of this process, or with the annotation gone."""
    vm = conditions.get(infra.status.conditions, Dev.VM_PROVISIONED)
    return vm is not None and vm.reason == INSTANCE_GONE


def _provider_id(seen: Scope) -> Sequence[Write]:
    """A pool's DevMachine has its ID from the start; one on its own gets it when its machine runs."""
    if seen.infra.spec.provider_id == seen.id:
        return ()
    return (Apply(target(seen.infra), {"spec": {"providerID": seen.id}}, must_exist=True),)


def _data_secret(seen: Scope) -> str | None:
    """The pool's for a pool's machine: its Machine has none of its own."""
    if seen.of_pool and seen.machine_pool is not None:
        return seen.machine_pool.spec.template.spec.bootstrap.data_secret_name
    return seen.machine.spec.bootstrap.data_secret_name if seen.machine is not None else None


def _version(seen: Scope) -> str:
    recorded = seen.infra.metadata.annotations.get(VERSION_ANNOTATION, "")
    of_machine = seen.machine.spec.version if seen.machine is not None else ""
    of_pool = seen.machine_pool.spec.template.spec.version if seen.machine_pool is not None else ""
    return recorded or of_machine or of_pool or DEFAULT_VERSION


def _failure_domain(seen: Scope) -> str:
    """The one it has or was given by its pool; else its Machine's; else one of its pool's, by its name."""
    given = seen.infra.status.failure_domain or seen.infra.metadata.annotations.get(DOMAIN_ANNOTATION, "")
    domains = seen.machine_pool.spec.failure_domains if seen.machine_pool is not None else ()
    of_machine = seen.machine.spec.failure_domain if seen.machine is not None else ""
    if given or of_machine or not domains:
        return given or of_machine
    return domains[hashlib.sha256(seen.infra.name.encode()).digest()[0] % len(domains)]


def _delay(step: InMemoryStep | None, what: str) -> Delay:
    if step is None or step.provisioning is None:
        return Delay()
    path = f"spec.backend.inMemory.{what}.provisioning"
    provisioning = step.provisioning
    try:
        base = duration.parse(provisioning.startup_duration)
    except ValueError as error:
        raise TerminalError(f"{path}.startupDuration: {error}") from error
    try:
        jitter = float(provisioning.startup_jitter or 0)
    except ValueError as error:
        raise TerminalError(f"{path}.startupJitter: {provisioning.startup_jitter!r} is not a number") from error
    if base < timedelta() or not 0 <= jitter < 1e6:
        raise TerminalError(f"{path}: durations and jitters are not negative, and finite")
    return Delay(base, jitter)
