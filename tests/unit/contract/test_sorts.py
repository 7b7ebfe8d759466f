"""Sorts of provider objects by the names of their kinds."""

import pytest

from capi import contract
from capi.contract import Contract, Sort, sort_of
from capi.kube.types import GroupKind


@pytest.mark.parametrize(
    ("kind", "sort"),
    [
        ("DevMachine", Sort.INFRA_MACHINE),
        ("ExamplePoolMachine", Sort.INFRA_MACHINE),
        ("DevMachinePool", Sort.INFRA_POOL),
        ("ExampleManagedMachinePool", Sort.INFRA_POOL),
        ("DevCluster", Sort.INFRA_CLUSTER),
        ("DevMachineTemplate", Sort.TEMPLATE),
        ("ExampleConfigTemplate", Sort.TEMPLATE),
        ("ExampleManagedControlPlane", Sort.CONTROL_PLANE),
        ("ExampleWorkerConfig", Sort.BOOTSTRAP),
        ("Host", None),
        ("MachineSet", None),
    ],
)
def test_kinds_are_told_by_their_ends(kind: str, sort: Sort | None) -> None:
    assert sort_of(kind) == sort


INFRA = "infrastructure.cluster.x-k8s.io"


@pytest.mark.parametrize(
    ("wanted", "kind", "good"),
    [
        pytest.param(contract.INFRA_POOL, GroupKind(INFRA, "DevMachinePool"), True, id="as it should be"),
        pytest.param(contract.INFRA_POOL, GroupKind("example.com", "Flock"), True, id="nobody can tell"),
        pytest.param(contract.INFRA_POOL, GroupKind(INFRA, "DevCluster"), False, id="a cluster for a pool"),
        pytest.param(contract.INFRA_POOL, GroupKind(INFRA, "DevMachine"), False, id="a machine for a pool"),
        pytest.param(contract.INFRA_POOL, GroupKind("cluster.x-k8s.io", "MachinePool"), False, id="one of core"),
        pytest.param(contract.INFRA_MACHINE, GroupKind(INFRA, "DevMachineTemplate"), False, id="a template for a machine"),
        pytest.param(contract.INFRA_CLUSTER, GroupKind(INFRA, "DevMachinePool"), False, id="a pool for a cluster"),
        pytest.param(contract.INFRA_CLUSTER, GroupKind(INFRA, "ExampleManagedControlPlane"), True, id="a managed control plane for both"),
        pytest.param(contract.CONTROL_PLANE, GroupKind(INFRA, "DevCluster"), False, id="a cluster for a control plane"),
        pytest.param(contract.BOOTSTRAP, GroupKind(INFRA, "DevMachine"), False, id="a machine for a config"),
    ],
)  # fmt: skip
def test_which_references_are_followed(wanted: Contract, kind: GroupKind, good: bool) -> None:
    trouble = wanted.trouble(kind)
    assert (trouble is None) == good
    if trouble is not None:
        assert str(kind) in trouble.message and f"end in {wanted.sorts[0]}" in trouble.message


@pytest.mark.parametrize(
    ("kind", "good"),
    [
        pytest.param(GroupKind(INFRA, "ExampleRemediationTemplate"), True, id="as it should be"),
        pytest.param(GroupKind("fix.example", "FixTemplate"), True, id="nobody can tell"),
        pytest.param(GroupKind(INFRA, "DevMachineTemplate"), False, id="its requests would be instances"),
        pytest.param(GroupKind(INFRA, "ExampleConfigTemplate"), False, id="its requests would be configs"),
        pytest.param(GroupKind(INFRA, "ExampleRemediation"), False, id="not a template"),
        pytest.param(GroupKind("cluster.x-k8s.io", "FixTemplate"), False, id="one of core"),
    ],
)
def test_which_templates_remediation_requests_are_made_from(kind: GroupKind, good: bool) -> None:
    trouble = contract.wrong_remediation(kind)
    assert (trouble is None) == good
    assert trouble is None or str(kind) in trouble.message
