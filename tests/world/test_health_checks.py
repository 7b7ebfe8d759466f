"""MachineHealthChecks over pools: the sick Machine goes, and only that one."""

from typing import Any

import pytest

from capi.api.builtin import Node
from capi.api.core.v1beta2 import Cluster, Machine, MachineHealthCheck, MachinePool
from capi.api.infra.v1beta2 import DevMachine
from capi.kube import conditions
from capi.kube.types import Object, ResourceType
from tests.world import manifests
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime


def a_check(*, timeout: int = 30, limit: Any = None, startup: int | None = None, **remediation: Any) -> Object:
    trigger = {"triggerIf": {"unhealthyLessThanOrEqualTo": limit}} if limit is not None else {}
    asked = {**trigger, **remediation}
    unready = [{"type": "Ready", "status": status, "timeoutSeconds": timeout} for status in ("Unknown", "False")]
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "mhc", "namespace": "default"},
        "spec": {
            "clusterName": "quickstart",
            "selector": {"matchLabels": {"cluster.x-k8s.io/pool-name": "workers"}},
            "checks": {
                "unhealthyNodeConditions": unready,
                **({"nodeStartupTimeoutSeconds": startup} if startup is not None else {}),
            },
            **({"remediation": asked} if asked else {}),
        },
    }


async def set_ready(w: World, name: str, status: str) -> None:
    """As a kubelet, or the one that judges kubelets."""
    body = {
        "status": {"conditions": [{"type": "Ready", "status": status, "reason": "Test", "lastTransitionTime": _now(w)}]}
    }
    await w.workload().patch(Node.resource, name, "", body, type_="strategic", subresource="status")


def _now(w: World) -> str:
    return w.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


async def check(w: World) -> MachineHealthCheck:
    return await w.client.get(MachineHealthCheck, "mhc", "default")


async def events(w: World, reason: str) -> int:
    found = (await w.client.send("GET", "/api/v1/namespaces/default/events")).decode()
    return found.count(f'"reason":"{reason}"')


def uids(machines: dict[str, Machine]) -> dict[str, str]:
    return {name: machine.metadata.uid for name, machine in machines.items()}


async def test_exactly_the_sick_machine_is_replaced() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        await w.apply(a_check())
        await w.settle()
        before = uids(await w.machines())
        assert (await check(w)).status.current_healthy == 3
        sick = min(before)
        await set_ready(w, sick, "Unknown")
        await w.advance(seconds=25)
        assert uids(await w.machines()) == before
        await w.advance(seconds=10)
        after = uids(await w.machines())
        assert len(after) == 3
        assert {name: uid for name, uid in before.items() if name != sick}.items() <= after.items()
        assert before[sick] not in after.values()
        assert ((await w.pool()).status.phase, (await check(w)).status.current_healthy) == ("Running", 3)
        assert await events(w, "MachineMarkedUnhealthy") == 1


async def test_a_slow_pool_is_left_to_start() -> None:
    """The clock starts when the infrastructure is ready, not when the Machine was made."""
    async with world() as w:
        await w.apply(*manifests.cluster(), *manifests.pool(replicas=3, vm="90s", node="20s"), a_check(startup=60))
        await w.settle()
        before = uids(await w.machines())
        assert len(before) == 3
        await w.advance(minutes=5)
        assert uids(await w.machines()) == before
        assert ((await w.pool()).status.phase, await events(w, "MachineMarkedUnhealthy")) == ("Running", 0)


async def test_an_instance_that_never_joins_is_replaced_after_the_startup_timeout() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        name = min(before := uids(await w.machines()))
        await w.apply(a_check(startup=60))
        await w.settle()
        scaled, never = manifests.pool(replicas=3, node="1h")
        await w.apply(never)
        await w.settle()
        await w.apply(scaled)
        await w.settle()
        [late] = uids(await w.machines()).keys() - before.keys()
        await w.advance(seconds=100)
        assert late not in await w.machines()
        assert (await w.machines())[name].metadata.uid == before[name]


async def test_the_limit_stops_remediation_says_so_and_lets_go() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        await w.apply(a_check(limit=0))  # with 1, the second would go as soon as the first is well again
        await w.settle()
        before = uids(await w.machines())
        first, second, _ = sorted(before)
        await set_ready(w, first, "False")
        await set_ready(w, second, "False")
        await w.advance(seconds=120)
        assert uids(await w.machines()) == before
        found = conditions.get((await check(w)).status.conditions, "RemediationAllowed")
        assert found is not None
        assert (found.status, found.reason) == ("False", "TooManyUnhealthy")
        assert "2 of 3" in found.message
        sick = (await w.machines())[first].status.conditions
        verdict = conditions.get(sick, "HealthCheckSucceeded")
        assert verdict is not None
        assert verdict.status == "False"
        assert conditions.get(sick, "OwnerRemediated") is None
        restricted = await events(w, "RemediationRestricted")
        assert restricted >= 1
        for name in (first, second):
            await set_ready(w, name, "True")
        await w.advance(seconds=60)
        assert conditions.is_true((await check(w)).status.conditions, "RemediationAllowed")
        assert uids(await w.machines()) == before
        assert await events(w, "RemediationRestricted") == restricted


async def test_a_settled_check_writes_nothing() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        await w.apply(a_check())
        await w.advance(minutes=1)
        before = await w.writes()
        await w.advance(minutes=10)
        assert await w.writes() == before


async def test_a_machine_that_remediation_must_skip_stays() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.apply(a_check())
        await w.settle()
        name = min(before := uids(await w.machines()))
        note = {"metadata": {"annotations": {"cluster.x-k8s.io/skip-remediation": ""}}}
        await w.client.patch(Machine.resource, name, "default", note)
        await set_ready(w, name, "False")
        await w.advance(minutes=5)
        assert uids(await w.machines()) == before
        assert (await check(w)).status.targets == tuple(sorted(before.keys() - {name}))


async def test_a_paused_machine_is_not_replaced() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.apply(a_check(limit=0))
        await w.settle()
        name = min(before := uids(await w.machines()))
        await set_ready(w, name, "False")
        await w.advance(minutes=1)
        pause = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
        await w.client.patch(Machine.resource, name, "default", pause)
        await w.client.patch(MachineHealthCheck.resource, "mhc", "default", {"spec": {"remediation": None}})
        await w.advance(minutes=5)
        assert uids(await w.machines()) == before
        found = (await w.machines())[name].status.conditions
        assert conditions.get(found, "OwnerRemediated") is None


async def test_each_writer_of_a_machine_owns_its_own_fields() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.apply(a_check())
        await w.settle()
        name = min(await w.machines())
        await set_ready(w, name, "False")
        await w.advance(seconds=20)
        found: Object = await w.client.get(Machine.resource, name, "default")
        owned = {entry["manager"]: entry["fieldsV1"] for entry in found["metadata"]["managedFields"]}
        assert set(owned) == {"capi-machinepool", "capi-machine", "capi-machinehealthcheck"}
        assert set(owned["capi-machinehealthcheck"]["f:status"]["f:conditions"]) == {
            'k:{"type":"HealthCheckSucceeded"}'
        }
        assert 'k:{"type":"HealthCheckSucceeded"}' not in owned["capi-machine"]["f:status"]["f:conditions"]
        assert "f:status" not in owned["capi-machinepool"]
        assert "f:spec" not in owned["capi-machine"]


def _definition(kind: str) -> Object:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    plural = kind.lower() + "s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.fix.example", "labels": {"cluster.x-k8s.io/v1beta2": "v1"}},
        "spec": {
            "group": "fix.example",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}],
        },
    }


async def test_an_external_remediator_is_asked_once_and_told_when_it_is_over() -> None:
    requests = ResourceType("fix.example", "v1", "Fix", "fixes")
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        reference = {"apiVersion": "fix.example/v1", "kind": "FixTemplate", "name": "t"}
        await w.apply(a_check(templateRef=reference))
        await w.settle()
        name = min(before := uids(await w.machines()))
        await set_ready(w, name, "False")
        await w.advance(seconds=60)
        missing = conditions.get((await w.machines())[name].status.conditions, "ExternallyRemediated")
        assert missing is not None
        assert missing.reason == "RemediationTemplateNotFound"
        fix = _definition("Fix")
        fix["metadata"]["name"] = "fixes.fix.example"
        fix["spec"]["names"]["plural"] = "fixes"
        await w.apply(fix, _definition("FixTemplate"))
        template = {"metadata": {"name": "t", "namespace": "default"}, "spec": {"template": {"spec": {"hard": True}}}}
        await w.client.create(ResourceType("fix.example", "v1", "FixTemplate", "fixtemplates"), template)
        await w.advance(seconds=60)
        request: Object = await w.client.get(requests, name, "default")
        assert request["spec"] == {"hard": True}
        assert [owner["uid"] for owner in request["metadata"]["ownerReferences"]] == [before[name]]
        assert len(await w.client.list(requests, "default")) == 1
        assert uids(await w.machines()) == before, "the remediator acts, not the pool"
        await set_ready(w, name, "True")
        await w.advance(seconds=60)
        assert await w.client.list(requests, "default") == []
        assert conditions.is_true((await w.machines())[name].status.conditions, "HealthCheckSucceeded")


@pytest.mark.parametrize("kind", ["DevMachineTemplate", "DevMachine", "DevMachinePoolTemplate"])
async def test_infrastructure_is_never_taken_for_a_remediation_request(kind: str) -> None:
    """It is named like its Machine and owned by it, as a request is; and requests of healthy Machines are deleted."""
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        before = {o.metadata.uid: o.metadata.deletion_timestamp for o in await w.client.list(DevMachine)}
        await w.apply(
            a_check(templateRef={"apiVersion": f"{manifests.INFRA}/v1beta2", "kind": kind, "name": "workers"})
        )
        await w.advance(minutes=1)
        assert {o.metadata.uid: o.metadata.deletion_timestamp for o in await w.client.list(DevMachine)} == before
        sick, _ = await w.machines()
        await set_ready(w, sick, "False")
        await w.advance(seconds=40)
        asked = conditions.get((await w.machines())[sick].status.conditions, "ExternallyRemediated")
        assert asked is not None and f"{kind}.{manifests.INFRA} cannot be used here" in asked.message
        assert {o.metadata.uid: o.metadata.deletion_timestamp for o in await w.client.list(DevMachine)} == before


def named(name: str, check: Object) -> Object:
    return {**check, "metadata": {**check["metadata"], "name": name}}


async def verdict(w: World, name: str) -> tuple[str, str]:
    found = conditions.get((await w.machines())[name].status.conditions, "HealthCheckSucceeded")
    assert found is not None
    return found.status, found.message


async def test_checks_that_disagree_do_not_write_over_each_other() -> None:
    """One finds the Machine sick at once, one later, one never: it is sick for all, and each limit counts for its check."""
    other = a_check()
    other["spec"]["checks"] = {"unhealthyNodeConditions": [{"type": "Odd", "status": "True", "timeoutSeconds": 1}]}
    async with world() as w:
        await w.cluster_with_pool(replicas=3)
        await w.apply(named("a-late", a_check(limit=0, timeout=120)), named("b-early", a_check(limit=0)))
        await w.apply(named("c-never", other))
        await w.settle()
        sick = min(before := uids(await w.machines()))
        await set_ready(w, sick, "False")
        await w.advance(seconds=60)
        assert await verdict(w, sick) == ("False", _lasted("30s"))
        await w.advance(seconds=120)
        assert await verdict(w, sick) == ("False", _lasted("2m0s"))
        writes = await w.writes()
        await w.advance(minutes=5)
        assert await w.writes() == writes, "they fight"
        assert uids(await w.machines()) == before
        counts = {c.name: c.status.current_healthy for c in await w.client.list(MachineHealthCheck, "default")}
        assert counts == {"a-late": 2, "b-early": 2, "c-never": 3}
        await w.client.delete(MachineHealthCheck.resource, "a-late", "default")
        await w.advance(seconds=10)
        assert await verdict(w, sick) == ("False", _lasted("30s"))
        await w.client.delete(MachineHealthCheck.resource, "b-early", "default")
        await w.advance(seconds=10)
        assert (await verdict(w, sick))[0] == "True"


async def told(w: World, name: str) -> set[str]:
    ours = {"HealthCheckSucceeded", "OwnerRemediated", "ExternallyRemediated"}
    return {c.type for c in (await w.machines())[name].status.conditions} & ours


@pytest.mark.parametrize("end", ["deleted", "selects others", "deleted while down"])
async def test_a_verdict_goes_when_no_check_stands_for_it(end: str) -> None:
    """The Machine would never be Ready again."""
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.apply(a_check(limit=0))
        await w.settle()
        sick = min(before := uids(await w.machines()))
        await set_ready(w, sick, "False")
        await w.advance(seconds=60)
        assert await told(w, sick) == {"HealthCheckSucceeded"}
        if end == "deleted while down":
            await w.stop_controllers()
        if end == "selects others":
            nobody = {"spec": {"selector": {"matchLabels": {"cluster.x-k8s.io/pool-name": "nobody"}}}}
            await w.client.patch(MachineHealthCheck.resource, "mhc", "default", nobody)
        else:
            await w.client.delete(MachineHealthCheck.resource, "mhc", "default")
        if end == "deleted while down":
            await w.start_controllers()
        await w.advance(seconds=10)
        await set_ready(w, sick, "True")
        await w.advance(seconds=30)
        assert [await told(w, name) for name in sorted(before)] == [set(), set()]
        assert conditions.is_true((await w.machines())[sick].status.conditions, "Ready")
        assert uids(await w.machines()) == before
        writes = await w.writes()
        await w.advance(minutes=5)
        assert await w.writes() == writes


@pytest.mark.parametrize("paused", ["nothing", "cluster", "pool"])
async def test_a_pools_machine_that_is_marked_by_hand_is_replaced_unless_paused(paused: str) -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.apply(a_check())
        await w.settle()
        marked = min(before := uids(await w.machines()))
        note = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
        if paused == "cluster":
            await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": True}})
        elif paused == "pool":
            await w.client.patch(MachinePool.resource, "workers", "default", note)
        mark = {"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}}
        await w.client.patch(Machine.resource, marked, "default", mark)
        await w.advance(minutes=1)
        assert (uids(await w.machines()) == before) is (paused != "nothing")
        await w.client.patch(Cluster.resource, "quickstart", "default", {"spec": {"paused": None}})
        end = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}}
        await w.client.patch(MachinePool.resource, "workers", "default", end)
        await w.advance(minutes=1)
        after = uids(await w.machines())
        assert len(after) == 2 and before[marked] not in after.values()


async def test_a_verdict_is_not_said_again_of_a_machine_that_goes() -> None:
    """Deleted by somebody else just when its check finds it sick; its pool goes as well, or stays."""
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.apply(a_check())
        await w.settle()
        sick, other = sorted(await w.machines())
        await set_ready(w, sick, "False")
        await w.advance(seconds=25)
        await w.client.delete(Machine.resource, sick, "default")
        await w.advance(minutes=1)
        assert len(await w.machines()) == 2
        await set_ready(w, other, "False")
        await w.advance(seconds=25)
        await w.client.delete(MachinePool.resource, "workers", "default")
        await w.advance(minutes=2)
        assert await w.machines() == {}
        found = await check(w)
        assert (found.status.expected_machines, found.status.targets) == (0, ())
        assert w.failures("capi-machinehealthcheck") == 0


async def test_a_paused_check_stands_for_its_verdicts() -> None:
    async with world() as w:
        await w.cluster_with_pool(replicas=2)
        await w.apply(a_check(limit=0))
        await w.settle()
        pause = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
        await w.client.patch(MachineHealthCheck.resource, "mhc", "default", pause)
        await w.restart_controllers()
        await w.advance(minutes=1)
        assert [await told(w, name) for name in await w.machines()] == [{"HealthCheckSucceeded"}] * 2


def _lasted(time: str) -> str:
    return f"Health check failed: condition Ready on Node is reporting status False for more than {time}"
