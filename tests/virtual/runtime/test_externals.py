"""Provider kinds: versions by contract labels, watches at first read, events by owner and by keys."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, ClassVar

import pytest

from capi.aio.clock import LoopClock
from capi.api.core.contracts import plural, version_rank
from capi.client.client import Client
from capi.client.inprocess import InProcessTransport
from capi.kube.errors import ContractError
from capi.kube.types import GroupKind, Key, ResourceType
from capi.runtime.manager import Manager
from capi.runtime.plan import Plan
from capi.runtime.reader import Reader, UndeclaredRead
from capi.runtime.watches import AnyWatch, External
from tests.virtual.runtime.embedded import CRDS, a_crd, a_server, a_user
from tests.virtual.runtime.rig import Flock, FlockReconciler, Sheep, a_flock, at_work

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
        try:
            barn = await reader.external(KIND, obj.name, obj.namespace)
        except ContractError as error:
            self.colors.append(type(error).__name__)
            raise
        self.colors.append("none" if barn is None else barn.raw["spec"]["color"])
        return Plan()


@asynccontextmanager
async def a_farm(reader: FlockReconciler) -> AsyncIterator[Client]:
    async with a_server(Flock.resource, Sheep.resource) as handler:
        user = a_user(handler)
        manager = Manager(InProcessTransport(handler), clock=LoopClock())
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
