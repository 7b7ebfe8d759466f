"""Defaults and rules of cluster.x-k8s.io."""

from typing import Any

import pytest

from capi.admission import core, rules
from capi.kube.types import Object

MIN = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
MAX = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"


def a_pool(replicas: int | None = None, version: str = "", **metadata: Any) -> Object:
    spec: Object = {"clusterName": "c", "template": {"spec": {"clusterName": "c", "bootstrap": {"dataSecretName": ""}}}}
    if replicas is not None:
        spec["replicas"] = replicas
    if version:
        spec["template"]["spec"]["version"] = version
    return {"kind": "MachinePool", "metadata": {"name": "p", **metadata}, "spec": spec}


def a_machine(bootstrap: Object | None = None, **metadata: Any) -> Object:
    return {"metadata": {"name": "m", **metadata}, "spec": {"clusterName": "c", "bootstrap": bootstrap or {}}}


def test_a_pool_gets_its_label_one_replica_and_ten_seconds() -> None:
    found = core.default_machine_pool(a_pool(version="1.35.4"))
    assert found["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "c"}
    assert found["spec"]["replicas"] == 1
    assert found["spec"]["template"]["spec"]["version"] == "v1.35.4"
    assert found["spec"]["template"]["spec"]["deletion"] == {"nodeDeletionTimeoutSeconds": 10}


def test_defaulting_changes_neither_its_argument_nor_a_complete_object() -> None:
    pool = a_pool()
    done = core.default_machine_pool(pool)
    assert pool == a_pool()
    assert core.default_machine_pool(done) is done


def test_zero_replicas_and_no_limit_are_kept() -> None:
    pool = a_pool(replicas=0)
    pool["spec"]["template"]["spec"]["deletion"] = {"nodeDeletionTimeoutSeconds": 0}
    found = core.default_machine_pool(pool)
    assert found["spec"]["replicas"] == 0
    assert found["spec"]["template"]["spec"]["deletion"]["nodeDeletionTimeoutSeconds"] == 0


@pytest.mark.parametrize(
    "old, wanted",
    [
        pytest.param(None, 2, id="new: the least"),
        pytest.param(a_pool(), 2, id="unset before: the least"),
        pytest.param(a_pool(1), 2, id="below"),
        pytest.param(a_pool(4), 4, id="within"),
        pytest.param(a_pool(9), 5, id="above"),
    ],
)
def test_the_autoscalers_bounds_decide_what_unset_replicas_mean(old: Object | None, wanted: int) -> None:
    pool = a_pool(annotations={MIN: "2", MAX: "5"})
    assert core.default_machine_pool(pool, old)["spec"]["replicas"] == wanted


def test_a_bound_that_is_no_number_is_named() -> None:
    (cause,) = core.validate_machine_pool(a_pool(annotations={MIN: "two", MAX: "5"}))
    assert MIN in cause.field and '"two"' in cause.message


def test_labels_of_the_template_must_be_labels() -> None:
    pool = a_pool()
    pool["spec"]["template"]["metadata"] = {"labels": {"a b": "c"}}
    (cause,) = core.validate_machine_pool(pool)
    assert cause.field == "spec.template.metadata.labels"


@pytest.mark.parametrize(
    "machine, refused",
    [
        pytest.param(a_machine(), True, id="nothing"),
        pytest.param(a_machine({"dataSecretName": ""}), False, id="an empty name counts"),
        pytest.param(a_machine({"configRef": {"name": "x"}}), False, id="a config"),
        pytest.param(a_machine(labels={"cluster.x-k8s.io/pool-name": "p"}), False, id="of a pool by label"),
        pytest.param(a_machine(ownerReferences=[{"kind": "MachinePool"}]), False, id="of a pool by owner"),
    ],
)
def test_a_machine_needs_bootstrap_data_unless_a_pool_made_it(machine: Object, refused: bool) -> None:
    assert [c.field for c in core.validate_machine(machine)] == (["spec.bootstrap"] if refused else [])


def test_a_clusters_networks_are_address_ranges() -> None:
    cluster: Object = {
        "metadata": {"name": "c"},
        "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/8", "10.0.0.0/99"]}}},
    }
    (cause,) = core.validate_cluster(cluster)
    assert cause.field == "spec.clusterNetwork.pods.cidrBlocks[1]" and "10.0.0.0/99" in cause.message


def test_a_clusters_name_must_fit_into_a_label() -> None:
    assert [c.field for c in core.validate_cluster({"metadata": {"name": "a" * 64}, "spec": {}})] == ["metadata.name"]


def test_a_health_check_selects_machines_of_its_cluster() -> None:
    check: Object = {
        "metadata": {},
        "spec": {"clusterName": "c", "selector": {}, "checks": {"nodeStartupTimeoutSeconds": 5}},
    }
    assert {c.field for c in core.validate_machine_health_check(check)} == {
        "spec.selector",
        "spec.checks.nodeStartupTimeoutSeconds",
    }
    check["spec"]["selector"] = {"matchLabels": {"cluster.x-k8s.io/cluster-name": "d"}}
    assert "spec.selector" in {c.field for c in core.validate_machine_health_check(check)}


def test_a_path_is_copied_and_the_rest_is_shared() -> None:
    obj: Object = {"a": {"b": 1}, "c": {"d": 2}}
    found = rules.put(obj, 3, "a", "b")
    assert obj["a"]["b"] == 1 and found == {"a": {"b": 3}, "c": {"d": 2}} and found["c"] is obj["c"]
