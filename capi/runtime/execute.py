"""Carrying out a Plan: children first, the status always, the finalizer last; every failure is collected.

Writes of one kind (applies, then patches, creates, deletes, evictions) go out concurrently. What would change nothing is not sent.
Each answer is noted as an Expectation, so that the key's next pass can wait until the caches have seen it.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec
import orjson

from capi.client.answers import Stamped, stamp_of
from capi.client.client import PATCH_TYPES, Client
from capi.kube import noop
from capi.kube.errors import AlreadyExists, CapiError, Conflict, NotFound, TransportError
from capi.kube.objects import Api, Resource, Unstructured, to_wire
from capi.kube.types import Object
from capi.runtime import status as statuses
from capi.runtime.caches import ManagementReader
from capi.runtime.election import LeadershipLost
from capi.runtime.metrics import ControllerMetrics
from capi.runtime.outcome import Expectation, Outcome
from capi.runtime.plan import Apply, ClusterKey, Create, Delete, Evict, Patch, Plan, Target, Told, Write

CONCURRENT_WRITES = 32
"""Writes of one pass on the wire at once; enough to fill a group commit, too few to starve other controllers."""
EVICTION_SECONDS = 10.0
"""What all evictions of one pass may take; those that got no answer until then are tried again by the next pass."""
_BURST = 128
"""Applies looked at before other tasks get a turn."""


class NotConnected(TransportError):
    """The workload cluster is not connected."""


class Executor:
    """Carries out the Plans of one reconciler as its field manager."""

    def __init__(
        self,
        manager: str,
        client: Client,
        reader: ManagementReader,
        metrics: ControllerMetrics,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_write` is asked before each write: False once another process may be leading."""
        self._may_write = may_write
        self._manager = manager
        self._client = client
        self._reader = reader
        self._metrics = metrics

    async def execute(self, plan: Plan, obj: Resource, finalizer: str | None, now: datetime) -> Outcome:
        """Do all of it but events and requeueing. Raises nothing but cancellation: errors are in the Outcome."""
        outcome = Outcome()
        for kind in (Apply, Patch, Create, Delete, Evict):
            phase = [write for write in plan.writes if isinstance(write, kind)]
            if phase:
                await self._phase(phase, outcome)
        if plan.error is not None:
            outcome.errors.append(plan.error)
        release = plan.finalized and finalizer is not None and finalizer in obj.metadata.finalizers and outcome.clean
        stamp: Stamped | None = None
        told = Told(plan.status, plan.events)
        if outcome.failures and plan.hindsight is not None:
            told = plan.hindsight(outcome.failures)
        status, outcome.events = told
        if status is not None and not (release and len(obj.metadata.finalizers) == 1):
            stamp = await self._status(obj, status, now, outcome)
        if release and finalizer is not None and outcome.clean:
            await self._guarded(outcome, lambda: self._release(obj, finalizer, stamp, outcome))
        return outcome

    async def add_finalizer(self, obj: Resource, finalizer: str) -> Outcome:
        """Add a finalizer to an object as it was read; a conflict is not an error."""
        outcome, metadata = Outcome(), obj.metadata
        body = {
            "metadata": {"resourceVersion": metadata.resource_version, "finalizers": [*metadata.finalizers, finalizer]}
        }
        await self._guarded(outcome, lambda: self._merge(obj, body, "", outcome))
        return outcome

    async def pause(self, obj: Resource, causes: Sequence[str], now: datetime) -> Outcome:
        """Write the Paused condition of a paused object, and nothing else."""
        outcome = Outcome()
        wanted = statuses.paused_conditions(obj, causes, now)
        if wanted is not None:
            body = {"metadata": {"resourceVersion": obj.metadata.resource_version}, "status": {"conditions": wanted}}
            await self._guarded(outcome, lambda: self._merge(obj, body, "status", outcome))
        return outcome

    async def _phase(self, writes: Sequence[Write], outcome: Outcome) -> None:
        """Carry out writes that do not depend on each other."""
        due: list[Write] = []
        for count, write in enumerate(writes, 1):
            if not isinstance(write, Apply) or self._wanted(write, outcome):
                due.append(write)
            if count % _BURST == 0:
                await asyncio.sleep(0)
        until = asyncio.get_running_loop().time() + EVICTION_SECONDS
        if len(due) == 1:
            await self._one(due[0], until, outcome)
        elif due:
            left = iter(due)
            async with asyncio.TaskGroup() as group:
                for _ in range(min(CONCURRENT_WRITES, len(due))):
                    group.create_task(self._several(left, until, outcome))

    async def _several(self, writes: Iterable[Write], until: float, outcome: Outcome) -> None:
        for write in writes:
            await self._one(write, until, outcome)

    async def _one(self, write: Write, until: float, outcome: Outcome) -> None:
        """Send one write and note its failure; evictions wait for an answer no longer than `until` (of the loop's clock)."""
        if isinstance(write, Evict):
            await self._guarded(outcome, lambda: self._evict(write, until, outcome))
        else:
            await self._guarded(outcome, lambda: self._send_noting(write, outcome))

    async def _send_noting(self, write: Write, outcome: Outcome) -> None:
        try:
            await self._send(write, outcome)
        except CapiError as error:
            outcome.failures[write.target] = error
            raise

    async def _guarded(self, outcome: Outcome, action: Callable[[], Any]) -> Any:
        """Run one write; one that fails must not starve the others."""
        if not self._may_write():
            outcome.errors.append(LeadershipLost())
            return None
        try:
            return await action()
        except (Conflict, AlreadyExists):
            outcome.conflicts += 1
        except Exception as error:
            outcome.errors.append(error)
        return None

    def _wanted(self, write: Apply, outcome: Outcome) -> bool:
        """False for an apply that would change nothing, or create what must exist."""
        informer = self._reader.find(write.target.resource, write.target.cluster)
        if informer is None:
            return True
        current = informer.store.get(write.target.key)
        if current is None:
            return not (write.must_exist and informer.complete)
        if write.target.uid and current.metadata.uid != write.target.uid:
            outcome.conflicts += 1  # the object that was meant has gone
            return False
        body = {"apiVersion": write.target.resource.api_version, **write.body}
        if noop.changes_nothing(_view(current, body), body, self._manager, write.subresource):
            self._metrics.skipped()
            return False
        return True

    async def _send(self, write: Write, outcome: Outcome) -> None:
        target = write.target
        client = self._client if target.cluster is None else self._workload(target.cluster)
        if isinstance(write, Apply):
            await self._apply(client, write, outcome)
        elif isinstance(write, Patch):
            self._note("patch", target, await self._patch(client, write), outcome)
        elif isinstance(write, Create):
            await self._create(client, write, outcome)
        else:
            await self._delete(client, target, outcome)

    def _workload(self, cluster: ClusterKey) -> Client:
        client = self._reader.workload_client(cluster)
        if client is None:
            raise NotConnected(f"workload cluster {cluster} is not connected")
        return client

    async def _apply(self, client: Client, write: Apply, outcome: Outcome) -> Stamped:
        target = write.target
        metadata: Object = {**(write.body.get("metadata") or {}), "name": target.name}
        if target.namespace:
            metadata["namespace"] = target.namespace
        uid = target.uid or (self._known_uid(target) if write.must_exist else "")
        if uid:
            metadata["uid"] = uid
        resource = target.resource
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **write.body, "metadata": metadata}
        query = (("fieldManager", self._manager), ("force", "true"))
        path = resource.path(target.namespace, target.name, write.subresource)
        answer = await client.send("PATCH", path, query, orjson.dumps(body), PATCH_TYPES["apply"])
        return self._note("apply", target, answer, outcome)

    def _known_uid(self, target: Target) -> str:
        informer = self._reader.find(target.resource, target.cluster)
        current = informer.store.get(target.key) if informer is not None else None
        return current.metadata.uid if current is not None else ""

    async def _patch(self, client: Client, write: Patch) -> bytes:
        target = write.target
        body = write.body
        if target.uid:
            body = {**body, "metadata": {**(body.get("metadata") or {}), "uid": target.uid}}
        path = target.resource.path(target.namespace, target.name, write.subresource)
        query = (("fieldManager", self._manager),)
        return await client.send("PATCH", path, query, orjson.dumps(body), PATCH_TYPES[write.type])

    async def _create(self, client: Client, write: Create, outcome: Outcome) -> None:
        target = write.target
        resource = target.resource
        metadata: Object = {**(write.body.get("metadata") or {}), "name": target.name}
        if target.namespace:
            metadata["namespace"] = target.namespace
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **write.body, "metadata": metadata}
        query = (("fieldManager", self._manager),)
        try:
            answer = await client.send("POST", resource.path(target.namespace), query, orjson.dumps(body))
        except AlreadyExists:
            return
        self._note("create", target, answer, outcome)

    async def _delete(self, client: Client, target: Target, outcome: Outcome) -> None:
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if target.uid:
            options["preconditions"] = {"uid": target.uid}
        path = target.resource.path(target.namespace, target.name)
        try:
            answer = await client.send("DELETE", path, (), orjson.dumps(options))
        except NotFound:
            return
        except Conflict:
            if target.uid:
                return  # another object of that name: the one that was meant has gone
            raise
        stamp = stamp_of(answer)
        self._metrics.wrote("delete", target.resource.plural)
        if stamp.kind != "Status" and stamp.metadata.deletion_timestamp and stamp.metadata.finalizers:
            self._expect(target, stamp, outcome)
        else:
            self._expect_gone(target, outcome)

    async def _evict(self, write: Evict, until: float, outcome: Outcome) -> None:
        """Ask for one eviction: what is said against it is noted, and is no error."""
        target = write.target
        try:
            async with asyncio.timeout_at(until):
                client = self._client if target.cluster is None else self._workload(target.cluster)
                await client.evict(target.name, target.namespace, uid=target.uid, grace_seconds=write.grace_seconds)
        except (NotFound, Conflict):
            return  # gone already, or another Pod of that name
        except TimeoutError:
            message = f"eviction timeout of {EVICTION_SECONDS:.0f}s reached, eviction will be retried"
            outcome.failures[target] = TransportError(message)
            return
        except CapiError as error:
            outcome.failures[target] = error
            return
        self._metrics.wrote("evict", target.resource.plural)

    async def _status(self, obj: Resource, status: Api, now: datetime, outcome: Outcome) -> Stamped | None:
        """Apply the status, unless it says nothing new; the stamp of the answer."""
        filled = statuses.completed(obj, status, now, succeeded=outcome.clean)
        target = Target(obj.resource, obj.namespace, obj.name, obj.metadata.uid)
        write = Apply(target, {"status": to_wire(filled)}, "status")
        if not self._wanted(write, outcome):
            return None
        stamp: Stamped | None = await self._guarded(outcome, lambda: self._apply_if_there(write, outcome))
        return stamp

    async def _apply_if_there(self, write: Apply, outcome: Outcome) -> Stamped | None:
        """Apply to the reconciled object; if it has gone meanwhile, its event will tell."""
        try:
            return await self._apply(self._client, write, outcome)
        except NotFound:
            return None

    async def _release(self, obj: Resource, finalizer: str, stamp: Stamped | None, outcome: Outcome) -> None:
        """Take the finalizer away, from the object as the last answer or the cache shows it."""
        if stamp is not None:
            revision, present = stamp.metadata.resource_version, stamp.metadata.finalizers or []
        else:
            revision, present = obj.metadata.resource_version, list(obj.metadata.finalizers)
        left = [name for name in present if name != finalizer]
        body = {"metadata": {"resourceVersion": revision, "finalizers": left}}
        try:
            await self._merge(obj, body, "", outcome, gone=not left)
        except NotFound:
            return

    async def _merge(
        self, obj: Resource, body: Object, subresource: str, outcome: Outcome, *, gone: bool = False
    ) -> None:
        target = Target(obj.resource, obj.namespace, obj.name, obj.metadata.uid)
        answer = await self._patch(self._client, Patch(target, body, "merge", subresource))
        if gone:
            self._metrics.wrote("patch", target.resource.plural)
            self._expect_gone(target, outcome)
        else:
            self._note("patch", target, answer, outcome)

    def _note(self, verb: str, target: Target, answer: bytes, outcome: Outcome) -> Stamped:
        stamp = stamp_of(answer)
        self._metrics.wrote(verb, target.resource.plural)
        self._expect(target, stamp, outcome)
        return stamp

    def _expect(self, target: Target, stamp: Stamped, outcome: Outcome) -> None:
        informer = self._reader.find(target.resource, target.cluster)
        version = stamp.metadata.resource_version
        if informer is None or not version.isdigit() or informer.revision >= int(version):
            return
        if informer.complete or informer.store.get(target.key) is not None:
            outcome.expectations.append(Expectation(informer, target.key, int(version), ""))

    def _expect_gone(self, target: Target, outcome: Outcome) -> None:
        informer = self._reader.find(target.resource, target.cluster)
        current = informer.store.get(target.key) if informer is not None else None
        if informer is not None and current is not None and target.uid in ("", current.metadata.uid):
            outcome.expectations.append(Expectation(informer, target.key, 0, current.metadata.uid))


@lru_cache(maxsize=256)
def _members(kind: type[Resource]) -> dict[str, str]:
    """Attribute by wire name."""
    return {member.encode_name: member.name for member in msgspec.structs.fields(kind)}


def _view(current: Resource | Unstructured, body: Object) -> Object:
    """As much of a cached object in wire form as is needed to compare it with `body`."""
    if isinstance(current, Unstructured):
        return current.raw
    metadata = current.metadata
    managed = [
        {
            "manager": entry.manager,
            "operation": entry.operation,
            "apiVersion": entry.api_version,
            "subresource": entry.subresource,
            "fieldsV1": entry.fields_v1,
        }
        for entry in metadata.managed_fields
    ]
    view: Object = {"metadata": {"managedFields": managed}}
    if body.get("metadata"):
        view["metadata"].update(to_wire(msgspec.structs.replace(metadata, managed_fields=())))
    members = _members(type(current))
    for name in body:
        if name in ("apiVersion", "kind", "metadata"):
            continue
        value: Any = getattr(current, members.get(name, name), None)
        if value is not None:
            view[name] = to_wire(value) if isinstance(value, Api) else msgspec.to_builtins(value)
    return view
