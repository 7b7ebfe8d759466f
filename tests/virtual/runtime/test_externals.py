"""Provider kinds: versions by contract labels, watches at first read, events by owner and by keys."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import pytest

from capi.aio.clock import LoopClock
from capi.api.core.contracts import plural, version_rank
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.client.transport import Transport
from capi.kube.errors import ContractError, Forbidden, TransportError
from capi.kube.messages import Request
from capi.kube.types import GroupKind, Key, ResourceType
from capi.runtime.manager import Manager
from capi.runtime.plan import Plan
from capi.runtime.reader import Reader, UndeclaredRead
from capi.runtime.watches import AnyWatch, External
from tests.virtual.runtime.embedded import CRDS, a_crd, a_server, a_user
from tests.virtual.runtime.rig import Faults, Flock, FlockReconciler, Sheep, a_flock, at_work

BARN = ResourceType("builders.io", "v1beta1", "Barn", "barns")
KIND = GroupKind("builders.io", "Barn")


def named_flock(barn: Any, reader: Reader) -> Sequence[Key]:
    return [Key(barn.namespace, barn.metadata.labels.get("flock", ""))]


class BarnReader(FlockReconciler):
    """Notes the color of the Barn of its own name."""

    watches: Sequence[AnyWatch] = (External(keys=named_flock, label_indexes=("flock",)), External())
    manager: ClassVar[str] = "capi-barn"

    def __init__(self) -> None:
        super().__init__()
        self.colors: list[str] = []

    async def reconcile(self, obj: Flock, reader: Reader, now: datetime) -> Plan:
        self.passes.append(asyncio.get_running_loop().time())
        try:
            barn = await reader.external(KIND, obj.name, obj.namespace)
        except (ContractError, TransportError) as error:
            self.colors.append(type(error).__name__)
            raise
        self.colors.append("none" if barn is None else barn.raw["spec"]["color"])
        return Plan()


@dataclass
class Barred(Faults):
    """Lets nobody watch Barns for a while."""

    barred: bool = True
    opened: float = 0.0

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        if self.barred and "/barns" in request.path:
            raise Forbidden("barns are not for you")
        if "/barns" in request.path:
            self.opened = asyncio.get_running_loop().time()
        async with super().stream(request) as lines:
            yield lines


@asynccontextmanager
async def a_farm(*readers: FlockReconciler, barred: Barred | None = None) -> AsyncIterator[Client]:
    async with a_server(Flock.resource, Sheep.resource) as handler:
        user = a_user(handler)
        transport: Transport = InProcessTransport(handler)
        if barred is not None:
            barred.inner, transport = transport, barred
        manager = Manager(transport, clock=LoopClock())
        for reader in readers:
            manager.add(reader)
        async with at_work(manager):
            await user.create(Flock.resource, a_flock())
            await asyncio.sleep(1)
            yield user


def a_barn(color: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "namespace": "default", **metadata}, "spec": {"color": color}}


@pytest.mark.looptime
async def test_events_of_a_provider_object_wake_the_one_it_concerns() -> None:
    reader = BarnReader()
    async with a_farm(reader) as user:
        await user.create(CRDS, a_crd(BARN, {"cluster.x-k8s.io/v1beta2": "v1beta1"}))
        await asyncio.sleep(100)
        assert reader.colors[0] == "UnknownKind" and reader.colors[-1] == "none"
        await user.create(BARN, a_barn("red", labels={"flock": "a"}))
        await asyncio.sleep(1)
        await user.patch(BARN, "a", "default", {"spec": {"color": "blue"}})
        await asyncio.sleep(1)
        assert reader.colors[-2:] == ["red", "blue"]


@pytest.mark.looptime
async def test_owners_are_woken_too() -> None:
    reader = BarnReader()
    async with a_farm(reader) as user:
        await user.create(CRDS, a_crd(BARN, {"cluster.x-k8s.io/v1beta1": "v1alpha3_v1beta1"}))
        await asyncio.sleep(100)
        flock = await user.get(Flock, "a", "default")
        owner = {"apiVersion": "farm.io/v1", "kind": "Flock", "name": "a", "uid": flock.metadata.uid}
        await user.create(BARN, a_barn("green", ownerReferences=[owner]))
        await asyncio.sleep(1)
        assert reader.colors[-1] == "green"


@pytest.mark.looptime
async def test_a_kind_outside_the_contract_is_an_error_that_names_its_crd() -> None:
    reader = BarnReader()
    async with a_farm(reader) as user:
        await user.create(CRDS, a_crd(BARN))
        await asyncio.sleep(10)
        assert list(dict.fromkeys(reader.colors)) == ["UnknownKind", "ContractError"]


@pytest.mark.looptime
async def test_a_provider_that_is_installed_late_wakes_those_who_wait_for_it() -> None:
    reader = BarnReader()
    async with a_farm(reader) as user:
        await asyncio.sleep(600)
        assert set(reader.colors) == {"UnknownKind"}
        crd = await user.create(CRDS, a_crd(BARN))
        await asyncio.sleep(1)
        assert reader.colors[-1] == "ContractError", "no contract label yet"
        await asyncio.sleep(600)
        label = {"metadata": {"labels": {"cluster.x-k8s.io/v1beta2": "v1beta1"}}}
        await user.patch(CRDS, crd["metadata"]["name"], "", label)
        await asyncio.sleep(1)
        assert reader.colors[-1] == "none"


class VersionReader(BarnReader):
    """Asks for the version only."""

    async def reconcile(self, obj: Flock, reader: Reader, now: datetime) -> Plan:
        self.colors.append("asked")
        self.colors.append((await reader.external_type(KIND)).version)
        return Plan()


@pytest.mark.looptime
async def test_those_who_asked_for_a_version_only_are_woken_too() -> None:
    reader = VersionReader()
    async with a_farm(reader) as user:
        await asyncio.sleep(600)
        assert set(reader.colors) == {"asked"}
        await user.create(CRDS, a_crd(BARN, {"cluster.x-k8s.io/v1beta2": "v1beta1"}))
        await asyncio.sleep(1)
        assert reader.colors[-1] == "v1beta1"


@pytest.mark.looptime
async def test_a_provider_that_is_removed_is_missed_at_once_and_taken_up_again() -> None:
    reader = BarnReader()
    async with a_farm(reader) as user:
        await user.create(CRDS, a_crd(BARN, {"cluster.x-k8s.io/v1beta2": "v1beta1"}))
        await user.create(BARN, a_barn("red", labels={"flock": "a"}))
        await asyncio.sleep(600)
        assert reader.colors[-1] == "red"
        await user.delete(CRDS, BARN.qualified_plural)
        await asyncio.sleep(1)
        assert reader.colors[-1] == "UnknownKind"
        await asyncio.sleep(600)
        await user.create(CRDS, a_crd(BARN, {"cluster.x-k8s.io/v1beta2": "v1beta1"}))
        await user.create(BARN, a_barn("blue", labels={"flock": "a"}))
        await asyncio.sleep(1)
        assert reader.colors[-1] == "blue"


class OtherReader(BarnReader):
    """Has an eye on the same kind."""

    manager: ClassVar[str] = "capi-other"


@pytest.mark.looptime
async def test_another_version_of_a_kind_is_followed_by_all_who_read_the_kind() -> None:
    """The first to read the new version must not end the news of the others."""
    readers = BarnReader(), OtherReader()
    async with a_farm(*readers) as user:
        crd = a_crd(BARN, {"cluster.x-k8s.io/v1beta2": "v1beta1"})
        newer = {**crd["spec"]["versions"][0], "name": "v1", "storage": False}
        crd["spec"]["versions"].append(newer)
        await user.create(CRDS, crd)
        await user.create(BARN, a_barn("red", labels={"flock": "a"}))
        await asyncio.sleep(100)
        label = {"metadata": {"labels": {"cluster.x-k8s.io/v1beta2": "v1beta1_v1"}}}
        await user.patch(CRDS, BARN.qualified_plural, "", label)
        await asyncio.sleep(1)
        await user.patch(BARN, "a", "default", {"spec": {"color": "blue"}})
        await asyncio.sleep(1)
        await user.delete(BARN, "a", "default")
        await asyncio.sleep(1)
        assert [list(dict.fromkeys(r.colors[r.colors.index("red") :])) for r in readers] == [
            ["red", "blue", "none"]
        ] * 2


@pytest.mark.looptime
async def test_a_kind_that_cannot_be_watched_is_waited_for_once_and_wakes_when_it_can() -> None:
    reader, barred = BarnReader(), Barred()
    async with a_farm(reader, barred=barred) as user:
        await user.create(CRDS, a_crd(BARN, {"cluster.x-k8s.io/v1beta2": "v1beta1"}))
        await asyncio.sleep(300)
        refused = [at for at, color in zip(reader.passes, reader.colors, strict=True) if color == "TransportError"]
        assert refused[2] - refused[1] < 15 < refused[1] - refused[0], "only the first waits for the cache"
        barred.barred = False
        await asyncio.sleep(100)
        [read] = [at for at, color in zip(reader.passes, reader.colors, strict=True) if color == "none"]
        assert 0 <= read - barred.opened < 0.1, "not a retry, but the news"


@pytest.mark.looptime
async def test_reading_an_undeclared_kind_raises() -> None:
    errors: list[Exception] = []

    class Sneaky(FlockReconciler):
        watches: Sequence[AnyWatch] = ()

        async def reconcile(self, obj: Flock, reader: Reader, now: datetime) -> Plan:
            for read in (lambda: reader.list(Sheep), lambda: reader.index(Flock, "color", "red")):
                try:
                    read()
                except UndeclaredRead as error:
                    errors.append(error)
            return Plan()

    async with a_farm(Sneaky()):
        await asyncio.sleep(1)
    assert len(errors) >= 2


@pytest.mark.parametrize(
    "kind, wanted",
    [("Barn", "barns"), ("DevMachineProxy", "devmachineproxies"), ("Box", "boxes"), ("Gateway", "gateways")],
)
def test_plurals(kind: str, wanted: str) -> None:
    assert plural(kind) == wanted


def test_versions_are_ordered_as_kubernetes_does() -> None:
    versions = ["v1alpha1", "v10", "v2beta1", "foo", "v1", "v1beta2", "v2"]
    assert sorted(versions, key=version_rank, reverse=True) == [
        "v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo",
    ]  # fmt: skip
