"""An InfraMachine: what a pass wants, given what was read and what the backend says. Pure.

Upstream: docker/reconcilers/backends/{inmemory,docker}. Differs: one status write per step, no writes to the Machine; jitter
is drawn once per machine; the Node is waited for by a watch.
"""

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from capi.api.core.conditions import Dev, Reason
from capi.api.infra.v1beta2 import DevMachineStatus, DockerMachineBackend, InMemoryStep
from capi.backends.port import Container, Delay, HostMount, Instance, InstanceSpec, Simulation, Stage
from capi.controllers.infra import gates, knobs
from capi.controllers.infra.addressing import ip_family
from capi.controllers.infra.machine import status as machine_status
from capi.controllers.infra.machine.nodes import node_patches
from capi.controllers.infra.machine.scope import Scope
from capi.controllers.infra.names import (
    CAPACITY_SHORTAGE,
    DEFAULT_VERSION,
    DOMAIN_ANNOTATION,
    INSTANCE_GONE,
    INVALID_SIMULATION,
    VERSION_ANNOTATION,
)
from capi.kube import conditions, duration
from capi.kube.errors import BackendError, TerminalError
from capi.runtime.plan import Apply, Event, Plan, Write, target

SHORT_WAIT = timedelta(seconds=2)
"""A boot that takes less is not worth a status write that only says so."""
BOOTSTRAP_TIMEOUT = timedelta(minutes=5)
SHORTAGE_RETRY = timedelta(seconds=30)
"""When to ask again for a machine that there was no room for, at the latest: the backend tells when one goes."""


def gate(seen: Scope) -> gates.Gate | None:
    """What the machine waits for before it is started."""
    return gates.infrastructure(seen.cluster) or gates.bootstrap(seen.cluster, seen.data_secret)


def runs(seen: Scope) -> bool:
    """It was started: what it waited for is behind it."""
    known = machine_status.machine_condition(seen.infra)
    return machine_status.is_provisioned(seen.infra) or (known is not None and known.status != "False")


def ownerless(seen: Scope) -> bool:
    """A machine on its own has no owner yet, or a pool's MachinePool is gone: nothing is done, core's write will wake it."""
    return seen.machine_pool is None if seen.of_pool and seen.machine is None else seen.machine is None


def bootstrapped(seen: Scope) -> bool:
    """It is known to have become a Node; nothing is executed in it again."""
    joined = seen.machine is not None and seen.machine.status.node_ref is not None
    return joined or conditions.is_true(seen.infra.status.conditions, Dev.BOOTSTRAP_COMPLETED)


def instance_spec(seen: Scope, now: datetime) -> InstanceSpec:
    """What to ask of the backend. Raises TerminalError for what cannot work, naming the field, and InvalidKnob."""
    known = machine_status.machine_condition(seen.infra)
    ran = known is not None and known.status == "True"
    return InstanceSpec(
        id=seen.id,
        name=seen.infra.name,
        host=seen.host,
        uid=seen.infra.metadata.uid,
        cluster=seen.cluster_key,
        pool=seen.pool,
        pool_uid=seen.pool_uid,
        version=_version(seen),
        control_plane=seen.control_plane,
        ip_family=ip_family(seen.cluster),
        failure_domain=_failure_domain(seen),
        created=seen.infra.metadata.creation_timestamp or now,
        running_since=known.last_transition_time if known is not None and ran else None,
        made=ran or machine_status.is_provisioned(seen.infra),
        bootstrapped=bootstrapped(seen),
        bootstrap=seen.bootstrap,
        simulation=_simulation(seen, now),
        container=_container(seen),
        parameters=external.parameters if (external := seen.infra.spec.backend.external) is not None else {},
    )


def waiting(seen: Scope, why: gates.Gate) -> Plan:
    """The machine was not started."""
    return Plan(status=machine_status.not_started(seen.infra, why.reason, why.message, as_vm=seen.as_vm))


def progress(seen: Scope, spec: InstanceSpec, instance: Instance, now: datetime) -> Plan:
    """The machine is as the backend says."""
    later = max(timedelta(), instance.next_change - now) if instance.next_change is not None else None
    booting = instance.stage == Stage.STARTING
    if booting and later is not None and later <= SHORT_WAIT and not seen.infra.status.conditions:
        return Plan(requeue_after=later)
    if instance.waiting_for_control_plane and conditions.is_true(seen.infra.status.conditions, Dev.NODE_PROVISIONED):
        return Plan()  # after a restart of this process its API server comes a moment later: the Node is in its data
    status = machine_status.started(seen.infra, instance, spec.failure_domain)
    writes: list[Write] = [] if booting else list(_provider_id(seen))
    if seen.node is not None and instance.stage is not Stage.STOPPED:
        writes += node_patches(seen.node, seen.cluster_key, seen.id, status.addresses)
    return Plan(
        writes=writes,
        status=status,
        events=tuple(_events(seen, instance)),
        requeue_after=later,
        error=instance.trouble,
    )


def failed(seen: Scope, error: BackendError) -> Plan:
    """The backend refused. A machine that is gone stays so; everything else is tried again."""
    if error.reason == CAPACITY_SHORTAGE:
        return _short(seen, error)
    final = error.reason == INSTANCE_GONE
    status = machine_status.refused(seen.infra, error.reason, error.message, as_vm=seen.as_vm)
    return Plan(status=status, error=None if final else error)


def invalid(seen: Scope, error: TerminalError) -> Plan:
    """The spec cannot work; a change of it wakes the key."""
    status = machine_status.not_started(seen.infra, "InternalError", error.message, as_vm=seen.as_vm)
    return Plan(status=status)


def misread(seen: Scope, error: knobs.InvalidKnob) -> Plan:
    """An annotation for fault injection cannot be understood. A machine that runs goes on; a change of it wakes the key."""
    return Plan(status=machine_status.refused(seen.infra, INVALID_SIMULATION, error.message, as_vm=True))


def lingers(seen: Scope, now: datetime) -> timedelta:
    """How long a machine that is being deleted stays, because a slow deletion is simulated; nonsense holds nothing up."""
    since = seen.infra.metadata.deletion_timestamp
    try:
        stays = knobs.lingering(seen.infra.metadata.annotations) if seen.simulated else timedelta()
    except knobs.InvalidKnob:
        return timedelta()
    return max(timedelta(), since + stays - now) if since is not None else timedelta()


def announced(seen: Scope) -> Plan | None:
    """A removal takes its time, so what is going on is said first; None once it has been, or if there is nothing to tell of."""
    known = machine_status.machine_condition(seen.infra)
    if seen.simulated or known is None or known.reason == Reason.DELETING:
        return None
    return Plan(status=_deleting(seen, f"Removing {_what(seen)}"), requeue_after=timedelta())


def not_removed(seen: Scope, error: BackendError) -> Plan:
    """It is still there; tried again."""
    return Plan(status=_deleting(seen, f"Removing {_what(seen)} failed: {error.message}"), error=error)


def _deleting(seen: Scope, message: str) -> DevMachineStatus:
    return machine_status.deleting(seen.infra, message, as_vm=seen.as_vm)


def _what(seen: Scope) -> str:
    return "the machine" if seen.as_vm else "the container"


def control_plane_delays(seen: Scope) -> tuple[Delay, Delay]:
    """How long etcd and API server take after the Node. Raises TerminalError for what is no duration or jitter."""
    simulated = seen.infra.spec.backend.in_memory
    etcd = _delay(simulated.etcd if simulated else None, "etcd")
    return etcd, _delay(simulated.api_server if simulated else None, "apiServer")


def _short(seen: Scope, error: BackendError) -> Plan:
    """There is no room for the machine: said once, asked for again."""
    before = conditions.get(seen.infra.status.conditions, Dev.VM_PROVISIONED)
    said = before is not None and before.reason == error.reason
    return Plan(
        status=machine_status.refused(seen.infra, error.reason, error.message, as_vm=True),
        events=() if said else (Event(error.reason, error.message, "Warning"),),
        requeue_after=SHORTAGE_RETRY,
    )


def _events(seen: Scope, instance: Instance) -> Iterator[Event]:
    """What nobody should have to look for."""
    done = conditions.is_true(instance.steps, Dev.BOOTSTRAP_COMPLETED)
    if done and not conditions.is_true(seen.infra.status.conditions, Dev.BOOTSTRAP_COMPLETED):
        for warning in instance.warnings:
            yield Event("BootstrapDataNotSupported", warning, "Warning")
    if instance.stage is Stage.STOPPED and (said := next(iter(instance.steps), None)) is not None:
        yield Event("InstanceStopped", said.message, "Warning")


def _simulation(seen: Scope, now: datetime) -> Simulation:
    """A machine that was reported as lost stays so, though this process was restarted or the annotation is gone."""
    simulated, annotations = seen.infra.spec.backend.in_memory, seen.infra.metadata.annotations
    if simulated is None:
        return Simulation()
    vm, node = _delay(simulated.vm, "vm"), _delay(simulated.node, "node")
    joined = conditions.is_true(seen.infra.status.conditions, Dev.NODE_PROVISIONED)
    knobs.check(annotations, knobs.OF_MACHINES, now)
    asked = knobs.simulation(annotations, vm, node, joined=joined)
    lost = asked.lost or machine_status.is_lost(seen.infra)
    return dataclasses.replace(asked, lost=lost, limits=seen.limits)


def _container(seen: Scope) -> Container:
    asked = seen.infra.spec.backend.docker or DockerMachineBackend()
    try:
        timeout = duration.parse(asked.bootstrap_timeout) if asked.bootstrap_timeout else BOOTSTRAP_TIMEOUT
    except ValueError as error:
        raise TerminalError(f"bootstrapTimeout: {error}") from error
    mounts = (HostMount(m.container_path, m.host_path, bool(m.read_only)) for m in asked.extra_mounts)
    return Container(
        image=asked.custom_image,
        preload=asked.pre_load_images,
        mounts=tuple(mounts),
        bootstrap_timeout=timeout if timeout > timedelta() else BOOTSTRAP_TIMEOUT,
    )


def _provider_id(seen: Scope) -> Sequence[Write]:
    """A pool's InfraMachine has its ID from the start; one on its own gets it when its machine runs."""
    if seen.infra.spec.provider_id == seen.id:
        return ()
    return (Apply(target(seen.infra), {"spec": {"providerID": seen.id}}, must_exist=True),)


def _version(seen: Scope) -> str:
    """Simulated machines do without; a container's image follows from it."""
    recorded = seen.infra.metadata.annotations.get(VERSION_ANNOTATION, "")
    of_machine = seen.machine.spec.version if seen.machine is not None else ""
    of_pool = seen.machine_pool.spec.template.spec.version if seen.machine_pool is not None else ""
    return recorded or of_machine or of_pool or (DEFAULT_VERSION if seen.as_vm else "")


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
