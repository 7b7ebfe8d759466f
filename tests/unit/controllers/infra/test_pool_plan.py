"""What a DevMachinePool's pass wants."""

from datetime import timedelta
from typing import Any

import pytest

from capi.api.core.v1beta2 import Machine
from capi.api.infra.v1beta2 import DevMachine, DevMachinePoolStatus
from capi.controllers.infra.family import DEV
from capi.controllers.infra.machinepool.plan import plan
from capi.controllers.infra.machinepool.scope import Scope
from capi.controllers.infra.machinepool.template import new_names, template_hash
from capi.kube import conditions
from capi.runtime.plan import Apply, Delete, Plan
from tests.unit.controllers.infra.builders import (
    FINALIZER,
    NOW,
    POOL_LABELS,
    a_cluster,
    a_machine,
    a_machine_pool,
    a_pool,
    an_infra,
    lost,
)

PROVISIONED: dict[str, Any] = {"initialization": {"provisioned": True}}


def a_scope(*infra: DevMachine, machines: list[Machine] | None = None, **parts: Any) -> Scope:
    """A pool of three; every DevMachine has its Machine unless `machines` says otherwise."""
    if machines is None:
        machines = [a_machine(m.name) for m in infra]
    given: dict[str, Any] = {"pool": a_pool(), "machine_pool": a_machine_pool(), "cluster": a_cluster(), "family": DEV}
    given |= {"identify": lambda cluster, host: f"in-memory:///{cluster}/{host}", **parts}
    return Scope(infra=infra, machines={m.spec.infrastructure_ref.name: m for m in machines}, **given)


def made(planned: Plan) -> list[str]:
    return [w.target.name for w in planned.writes if isinstance(w, Apply) and w.target.resource == DevMachine.resource]


def deleted(planned: Plan) -> set[tuple[str, str]]:
    return {(w.target.resource.kind, w.target.name) for w in planned.writes if isinstance(w, Delete)}


def status(planned: Plan) -> DevMachinePoolStatus:
    assert isinstance(planned.status, DevMachinePoolStatus)
    return planned.status


def reason(planned: Plan) -> str:
    found = conditions.get(status(planned).conditions, "ReplicasReady")
    assert found is not None
    return found.reason


def test_an_empty_pool_makes_complete_machines_in_one_write_each() -> None:
    planned = plan(a_scope(), NOW)
    names = made(planned)
    assert len(set(names)) == 3
    [first, *_] = [w for w in planned.writes if isinstance(w, Apply) and w.target.name == names[0]]
    metadata = first.body["metadata"]
    assert metadata["labels"] == POOL_LABELS
    assert metadata["finalizers"] == [FINALIZER]
    assert [(ref["kind"], ref["uid"], ref.get("controller")) for ref in metadata["ownerReferences"]] == [
        ("DevMachinePool", "p", None)
    ]
    assert first.body["spec"] == {"providerID": f"in-memory:///ns/prod/{names[0]}", "backend": {"inMemory": {}}}


def test_a_pass_that_sees_nothing_new_asks_for_the_same_machines_again() -> None:
    assert made(plan(a_scope(), NOW)) == made(plan(a_scope(), NOW + timedelta(hours=1)))
    grown = a_scope(machine_pool=a_machine_pool(5))
    assert set(made(plan(a_scope(), NOW))) < set(made(plan(grown, NOW)))


def test_a_pass_that_sees_some_of_its_machines_asks_for_the_others() -> None:
    first = made(plan(a_scope(), NOW))
    seen = a_scope(an_infra(first[0]), an_infra(first[2]))
    assert made(plan(seen, NOW)) == [first[1]]


def test_names_are_host_names_even_of_a_long_pool() -> None:
    pool = a_machine_pool()
    [name] = new_names(a_scope(), 1, pool)
    assert name.startswith("workers-") and len(name) <= 63


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        pytest.param({"cluster": None}, "WaitingForClusterInfrastructureReady", id="no Cluster"),
        pytest.param(
            {"cluster": a_cluster(provisioned=False)}, "WaitingForClusterInfrastructureReady", id="no infrastructure"
        ),
        pytest.param({"machine_pool": a_machine_pool(secret=None)}, "WaitingForBootstrapData", id="no bootstrap data"),
        pytest.param(
            {"machine_pool": a_machine_pool(secret=None), "cluster": a_cluster(initialized=False)},
            "WaitingForControlPlaneInitialized",
            id="no control plane to bootstrap from",
        ),
    ],
)
def test_nothing_is_made_before_its_time(parts: dict[str, Any], why: str) -> None:
    planned = plan(a_scope(**parts), NOW)
    assert made(planned) == []
    assert reason(planned) == why
    assert status(planned).initialization is None


def test_a_pool_without_owner_waits() -> None:
    assert plan(a_scope(machine_pool=None), NOW) == Plan()


def test_a_backend_that_this_process_does_not_have_is_named_in_a_condition() -> None:
    planned = plan(a_scope(pool=a_pool(backend={"docker": {}}), unsupported="no docker here"), NOW)
    assert reason(planned) == "NotSupported"
    assert planned.writes == ()


def test_a_complete_pool_is_ready_and_plans_no_more_writes() -> None:
    ids = [f"in-memory:///ns/prod/{name}" for name in "abc"]
    pool = a_pool(providerID="dev:////prod-dmp-prod-workers", providerIDList=ids)
    planned = plan(a_scope(*map(an_infra, "abc"), pool=pool), NOW)
    assert list(planned.writes) == []
    assert planned.requeue_after is None
    assert (status(planned).ready, status(planned).replicas, status(planned).infrastructure_machine_kind) == (
        True,
        3,
        "DevMachine",
    )
    assert status(planned).initialization is not None
    assert [c.status for c in status(planned).conditions] == ["True", "True"]
    assert [(i.instance_name, i.ready) for i in status(planned).instances] == [("a", True), ("b", True), ("c", True)]


def test_provider_ids_are_sorted_and_stay_while_an_instance_is_leaving() -> None:
    seen = a_scope(
        an_infra("a"), an_infra("b", deleting=True), machines=[a_machine("a"), a_machine("b", deleting=True)]
    )
    [spec] = [
        w.body["spec"] for w in plan(seen, NOW).writes if isinstance(w, Apply) and w.target.name == "prod-workers"
    ]
    assert spec["providerIDList"] == ["in-memory:///ns/prod/a", "in-memory:///ns/prod/b"]


def test_an_empty_pool_of_none_is_ready() -> None:
    planned = plan(a_scope(machine_pool=a_machine_pool(0)), NOW)
    assert (status(planned).ready, status(planned).replicas) == (True, 0)


def test_ready_stays_while_the_conditions_tell_of_trouble() -> None:
    planned = plan(a_scope(an_infra("a"), lost("b"), pool=a_pool(status=PROVISIONED)), NOW)
    assert status(planned).ready
    assert reason(planned) == "NotReady"


def test_a_large_pool_does_not_list_its_instances() -> None:
    many = [an_infra(f"m{i:03}") for i in range(101)]
    planned = plan(a_scope(*many, machine_pool=a_machine_pool(101)), NOW)
    assert status(planned).instances == ()
    assert status(planned).replicas == 101


def test_scaling_down_deletes_the_machine_never_the_dev_machine() -> None:
    planned = plan(a_scope(*map(an_infra, "abc"), machine_pool=a_machine_pool(2)), NOW)
    assert deleted(planned) == {("Machine", "a")}


def test_the_marked_machine_goes() -> None:
    machines = [a_machine("a"), a_machine("b"), a_machine("c", marked=True)]
    planned = plan(a_scope(*map(an_infra, "abc"), machines=machines, machine_pool=a_machine_pool(2)), NOW)
    assert deleted(planned) == {("Machine", "c")}


def test_a_victim_without_a_machine_is_waited_for_and_then_deleted_itself() -> None:
    young, old = (
        an_infra("n", ready=False, age=timedelta(seconds=10)),
        an_infra("n", ready=False, age=timedelta(minutes=2)),
    )
    parts: dict[str, Any] = {"machines": [a_machine("a")], "machine_pool": a_machine_pool(1)}
    early = plan(a_scope(an_infra("a"), young, **parts), NOW)
    assert (deleted(early), early.requeue_after) == (set(), timedelta(seconds=50))
    assert deleted(plan(a_scope(an_infra("a"), old, **parts), NOW)) == {("DevMachine", "n")}


def test_a_lost_instance_is_replaced_and_its_machine_deleted() -> None:
    planned = plan(a_scope(an_infra("a"), an_infra("b"), lost("c")), NOW)
    assert deleted(planned) == {("Machine", "c")}
    assert len(made(planned)) == 1


def test_the_machine_of_a_dev_machine_that_somebody_deletes_goes_too() -> None:
    planned = plan(a_scope(an_infra("a"), an_infra("b"), an_infra("c", deleting=True)), NOW)
    assert deleted(planned) == {("Machine", "c")}
    assert len(made(planned)) == 1


def test_a_dangling_machine_is_deleted() -> None:
    planned = plan(a_scope(*map(an_infra, "abc"), dangling=[a_machine("gone")]), NOW)
    assert deleted(planned) == {("Machine", "gone")}


def test_stripped_ownership_is_put_back_without_touching_what_the_instance_is() -> None:
    bare = an_infra(
        "a", ownerReferences=[], annotations={"devmachine.infrastructure.cluster.x-k8s.io/template-hash": "old"}
    )
    planned = plan(a_scope(bare, an_infra("b"), an_infra("c")), NOW)
    [write] = [w for w in planned.writes if isinstance(w, Apply) and w.target.name == "a"]
    assert write.body["metadata"]["ownerReferences"][0]["uid"] == "p"
    assert write.body["metadata"]["annotations"]["devmachine.infrastructure.cluster.x-k8s.io/template-hash"] == "old"


def test_a_new_version_rolls_the_pool_by_one() -> None:
    old = {
        "devmachine.infrastructure.cluster.x-k8s.io/template-hash": template_hash(
            a_machine_pool(version="v1.34.0"), a_pool()
        )
    }
    planned = plan(a_scope(*(an_infra(name, annotations=old) for name in "abc")), NOW)
    assert len(made(planned)) == 1
    assert deleted(planned) == set()


def test_the_template_is_its_version_and_the_reference_to_its_bootstrap_config() -> None:
    ref = {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "one"}}
    base = template_hash(a_machine_pool(template={"bootstrap": ref}), a_pool())
    rotated = template_hash(a_machine_pool(template={"bootstrap": {**ref, "dataSecretName": "token-2"}}), a_pool())
    other = template_hash(
        a_machine_pool(template={"bootstrap": {"configRef": {**ref["configRef"], "name": "two"}}}), a_pool()
    )
    assert base == rotated != other


def test_an_externally_managed_pool_is_filled_once_and_then_reports_what_there_is() -> None:
    managed = a_machine_pool(2, annotations={"cluster.x-k8s.io/replicas-managed-by": "autoscaler"})
    assert len(made(plan(a_scope(machine_pool=managed), NOW))) == 2
    grown = a_scope(*map(an_infra, "abcd"), machine_pool=managed, pool=a_pool(status=PROVISIONED))
    planned = plan(grown, NOW)
    assert deleted(planned) == set()
    assert [w.body for w in planned.writes if w.target.name == "workers"] == [{"spec": {"replicas": 4}}]


def test_a_deleting_pool_deletes_machines_makes_nothing_and_ends_when_all_are_gone() -> None:
    seen = a_scope(
        an_infra("a"),
        an_infra("b"),
        an_infra("c", deleting=True),
        machines=[a_machine("a"), a_machine("c", deleting=True)],
        pool=a_pool(deleting=True),
    )
    planned = plan(seen, NOW)
    assert deleted(planned) == {("Machine", "a"), ("DevMachine", "b")}
    assert made(planned) == []
    assert not planned.finalized
    assert plan(a_scope(pool=a_pool(deleting=True), machine_pool=None), NOW).finalized


def test_a_pool_whose_machine_pool_is_being_deleted_makes_nothing() -> None:
    going = a_machine_pool()
    going = type(going)(
        metadata=going.metadata.__class__(name="workers", namespace="ns", uid="mp", deletion_timestamp=NOW),
        spec=going.spec,
    )
    assert made(plan(a_scope(machine_pool=going), NOW)) == []
