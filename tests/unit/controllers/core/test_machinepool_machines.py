"""MachinePool: a Machine for every InfraMachine."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from capi.api.core import labels
from capi.api.core.v1beta2 import Machine, MachineDeletion, ReadinessGate, TemplateMeta
from capi.controllers import owners
from capi.controllers.core import indexes
from capi.controllers.core.machinepool.plan import plan
from capi.controllers.core.machinepool.scope import Scope
from capi.kube.objects import ManagedFieldsEntry, from_wire
from capi.runtime.plan import Apply
from tests.unit.controllers.builders import (
    NOW,
    a_cluster,
    a_machine,
    a_node,
    a_pool,
    found,
    infra_machine,
    infra_pool,
    pool_ref,
)
from tests.unit.controllers.core.passes import applies, patches


def a_scope(count: int = 2, **changes: Any) -> Scope:
    """Instances without Machines; the workload cluster is not connected."""
    fresh: dict[str, Any] = {
        "pool": a_pool(),
        "cluster": a_cluster(),
        "infra": found(infra_pool()),
        "infra_machines": [infra_machine(i) for i in range(count)],
    }
    return Scope(**{**fresh, **changes})


def made_of(write: Apply, uid: str = "u") -> Machine:
    """The Machine as it is after the write."""
    body = {**write.body, "metadata": {**write.body["metadata"], "name": write.target.name, "namespace": "default"}}
    machine = from_wire(Machine, body)
    fields = {"f:metadata": {"f:labels": {f"f:{k}": {} for k in machine.metadata.labels}}}
    entry = ManagedFieldsEntry(manager="capi-machinepool", operation="Apply", fields_v1=fields)
    return msgspec.structs.replace(
        machine, metadata=msgspec.structs.replace(machine.metadata, uid=uid, managed_fields=(entry,))
    )


def settled(seen: Scope) -> Scope:
    """After the Machines were made."""
    machines = [made_of(write, f"u-{name}") for name, write in applies(plan(seen, NOW), "Machine").items()]
    return replace(seen, machines=machines)


def test_a_machine_is_complete_in_one_write() -> None:
    gate = ReadinessGate(condition_type="Gate")
    template = {
        "min_ready_seconds": 5,
        "readiness_gates": (gate,),
        "deletion": MachineDeletion(node_drain_timeout_seconds=60),
    }
    meta = TemplateMeta(labels={"team": "a"}, annotations={"note": "b"})
    pool = a_pool(template=template, template_meta=meta)
    infra = infra_machine(0, status={"failureDomain": "zone-1"})
    writes = applies(plan(a_scope(pool=pool, infra_machines=[infra]), NOW), "Machine")
    assert writes["p-0"].body == {
        "metadata": {
            "labels": {"team": "a", labels.CLUSTER_NAME: "c", labels.POOL_NAME: "p"},
            "annotations": {"note": "b"},
            "finalizers": ["machine.cluster.x-k8s.io"],
            "ownerReferences": [
                {
                    "apiVersion": "cluster.x-k8s.io/v1beta2",
                    "kind": "MachinePool",
                    "name": "p",
                    "uid": "pool-p",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "clusterName": "c",
            "bootstrap": {"dataSecretName": ""},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachine", "name": "p-0"},
            "version": "v1.35.0",
            "providerID": "x://p/0",
            "failureDomain": "zone-1",
            "minReadySeconds": 5,
            "readinessGates": [{"conditionType": "Gate"}],
            "deletion": {"nodeDrainTimeoutSeconds": 60, "nodeDeletionTimeoutSeconds": 10},
        },
    }


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        pytest.param({}, {"p-0", "p-1"}, id="one for each InfraMachine"),
        pytest.param({"infra": found(infra_pool(provisioned=False))}, {"p-0", "p-1"}, id="before the pool is provisioned"),
        pytest.param({"infra": found(infra_pool(kind="")), "infra_machines": []}, set(), id="no kind of InfraMachines"),
        pytest.param({"infra": found(infra_pool(deleting=True))}, set(), id="the infrastructure is going"),
        pytest.param({"infra_machines": [infra_machine(0, deleting=True)]}, set(), id="the InfraMachine is going"),
        pytest.param({"infra_machines": [], "machines": [a_machine(0)]}, set(), id="a vanished InfraMachine brings nothing back"),
        pytest.param({"infra_machines": [infra_machine(0)], "machines": [a_machine(0, deleting=True)]}, set(), id="the Machine is going"),
    ],
)  # fmt: skip
def test_which_machines_are_made(changes: Any, names: Any) -> None:
    assert set(applies(plan(a_scope(**changes), NOW), "Machine")) == names


def test_settled_machines_are_silent() -> None:
    seen = settled(a_scope())
    assert not applies(plan(seen, NOW), "Machine")
    assert not applies(plan(replace(seen, memory=type(seen.memory)()), NOW), "Machine")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"owner_references": ()}, id="ownerReference"),
        pytest.param({"labels": {labels.CLUSTER_NAME: "c"}}, id="pool label"),
        pytest.param({"finalizers": ()}, id="finalizer"),
    ],
)
def test_what_was_taken_from_a_machine_is_given_back_to_the_same_object(change: Any) -> None:
    seen = settled(a_scope(1))
    [machine] = seen.machines
    stripped = msgspec.structs.replace(machine, metadata=msgspec.structs.replace(machine.metadata, **change))
    write = applies(plan(replace(seen, machines=[stripped]), NOW), "Machine")["p-0"]
    assert (write.target.uid, write.must_exist) == (machine.metadata.uid, True)


def test_a_machine_that_lost_both_owner_and_label_is_found_by_its_reference() -> None:
    lost = a_machine(0, owner=None, meta={"labels": {}})
    write = applies(plan(a_scope(1, strangers={"p-0": lost}), NOW), "Machine")["p-0"]
    assert (write.target.uid, write.must_exist) == ("machine-p-0", True)


def test_a_machine_with_another_name_is_not_doubled() -> None:
    renamed = a_machine(0, meta={"name": "other", "uid": "o"})
    assert set(applies(plan(a_scope(1, machines=[renamed]), NOW), "Machine")) == {"other"}


def test_a_label_that_left_the_template_leaves_the_machine_and_foreign_ones_stay() -> None:
    with_label = a_pool(template_meta=TemplateMeta(labels={"team": "a"}))
    seen = settled(a_scope(1, pool=with_label))
    [machine] = seen.machines
    foreign = {**machine.metadata.labels, "foreign": "1"}
    machine = msgspec.structs.replace(machine, metadata=msgspec.structs.replace(machine.metadata, labels=foreign))
    assert not applies(plan(replace(seen, machines=[machine]), NOW), "Machine")
    body = applies(plan(replace(seen, machines=[machine], pool=a_pool()), NOW), "Machine")["p-0"].body
    assert body["metadata"]["labels"] == {labels.CLUSTER_NAME: "c", labels.POOL_NAME: "p"}


@pytest.mark.parametrize(
    ("infra", "machine", "node", "version"),
    [
        pytest.param(infra_machine(0), None, a_node(version="v1.31.1"), "v1.31.1", id="the Node's"),
        pytest.param(infra_machine(0), a_machine(0), a_node(version="v1.31.1"), "v1.31.1", id="the Node's, later"),
        pytest.param(infra_machine(0), a_machine(0, spec={"version": "v1.30.0"}), None, "v1.30.0", id="kept while the Node is away"),
        pytest.param(infra_machine(0), None, None, "v1.35.0", id="the template's before the Node came"),
        pytest.param(infra_machine(0, provider_id=""), None, None, None, id="none without an instance"),
    ],
)  # fmt: skip
def test_versions(infra: Any, machine: Any, node: Any, version: str | None) -> None:
    seen = a_scope(
        infra_machines=[infra], machines=[machine] if machine else [], nodes={"x://p/0": node} if node else None
    )
    assert applies(plan(seen, NOW), "Machine")["p-0"].body["spec"].get("version") == version


def test_a_machine_of_somebody_else_is_left_alone_and_the_others_are_made() -> None:
    other = owners.reference(a_pool("q"), controller=True)
    seen = a_scope(machines=[a_machine(0, owner=other)])
    made = plan(seen, NOW)
    assert set(applies(made, "Machine")) == {"p-1"}
    assert [event.reason for event in made.events] == ["MachineNotOwned", "SuccessfulCreate"]
    assert made.error is None
    assert made.status.ready_replicas == 0  # type: ignore[union-attr]


def test_a_reference_to_the_pool_before_a_move_is_replaced() -> None:
    old = msgspec.structs.replace(pool_ref(a_pool()), uid="before")
    body = patches(plan(a_scope(1, machines=[a_machine(0, owner=old)]), NOW), "Machine")["p-0"].body
    assert [ref["uid"] for ref in body["metadata"]["ownerReferences"]] == ["pool-p"]


def test_a_broken_infra_machine_does_not_stop_the_others() -> None:
    broken = infra_machine(0)
    broken.raw["spec"]["providerID"] = 7
    made = plan(a_scope(infra_machines=[broken, infra_machine(1)]), NOW)
    assert set(applies(made, "Machine")) == {"p-1"}
    assert made.error is not None and made.status is not None


def test_a_long_pool_name_is_hashed_in_labels_and_owners_keep_it_whole() -> None:
    name = "p" * 70
    pool = a_pool(name)
    machines = [infra_machine(0, pool=name)]
    body = applies(plan(a_scope(pool=pool, infra_machines=machines), NOW), "Machine")[f"{name}-0"].body
    label = body["metadata"]["labels"][labels.POOL_NAME]
    assert label.startswith("hash_") and len(label) <= 63
    assert body["metadata"]["ownerReferences"][0]["name"] == name
    assert machines[0].metadata.labels[labels.POOL_NAME] == label
    assert set(indexes.MACHINE["pool"](a_machine(0, pool=name))) == {indexes.pool_value("default", name)}


def test_machines_found_settled_are_not_looked_at_again() -> None:
    seen = settled(a_scope(50))
    plan(seen, NOW)
    before = dict(seen.memory.settled)
    assert len(before) == 50
    plan(seen, NOW)
    assert all(seen.memory.settled[name] is key for name, key in before.items())
