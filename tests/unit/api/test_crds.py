"""The generated CRDs: current, complete, and with what API servers and clients rely on."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capi.admission.convert import converts
from capi.api import crds
from capi.api.core.v1beta2 import ContractRef, Machine, MachineBootstrap, MachineSpec
from capi.kube.objects import from_wire, to_wire
from capi.kube.types import GroupKind, Object

ROOT = Path(__file__).parents[3]


def crd(plural: str) -> Object:
    return next(c for c in crds.all() if c["spec"]["names"]["plural"] == plural)


def stored(plural: str) -> Object:
    """The version that is stored."""
    return next(v for v in crd(plural)["spec"]["versions"] if v["storage"])


def schema(plural: str, *path: str) -> Any:
    here = stored(plural)["schema"]["openAPIV3Schema"]
    for name in path:
        here = here["items"] if name == "[]" else here["properties"][name]
    return here


def test_the_checked_in_files_are_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_crds.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


YOUNGER = {"DevControlPlane", "DevMachinePool", "DevMachinePoolTemplate"}
"""Kinds that never had a v1beta1."""


def test_v1beta2_is_stored_and_v1beta1_is_served_with_a_warning() -> None:
    for found in crds.all():
        older = found["spec"]["names"]["kind"] not in YOUNGER
        versions = {
            (v["name"], v["served"], v["storage"], v.get("deprecated", False)) for v in found["spec"]["versions"]
        }
        assert versions == {("v1beta2", True, True, False), *({("v1beta1", True, False, True)} if older else ())}
        assert older is converts(GroupKind(found["spec"]["group"], found["spec"]["names"]["kind"]))


@pytest.mark.parametrize(
    ("plural", "version", "names"),
    [
        ("devclusters", "v1beta2", "Cluster Age"),
        ("devclusters", "v1beta1", "Cluster Age"),
        ("dockerclusters", "v1beta2", "Cluster Age"),
        ("devmachines", "v1beta2", "Cluster, Provider ID, Failure domain, IP, Paused, Provisioned, Age"),
        ("devmachines", "v1beta1", "Cluster Machine ProviderID Ready Age"),
        ("dockermachines", "v1beta1", "Cluster Machine ProviderID Ready Age"),
        ("devmachinetemplates", "v1beta2", "Age"),
        ("devmachinepools", "v1beta2", "Age"),
        ("dockermachinepools", "v1beta1", "Age"),
    ],
)
def test_printer_columns_of_infrastructure(plural: str, version: str, names: str) -> None:
    [found] = [v for v in crd(plural)["spec"]["versions"] if v["name"] == version]
    wanted = names.split(", ") if "," in names else names.split()
    assert [column["name"] for column in found["additionalPrinterColumns"]] == wanted


@pytest.mark.parametrize("plural", ["devclusters", "devmachines", "devmachinepools", "dockermachinepools"])
def test_infrastructure_says_which_contracts_it_follows_and_whose_it_is(plural: str) -> None:
    """Upstream: the label of v1beta1 on pools too, which have none."""
    assert crd(plural)["metadata"]["labels"] == {
        "cluster.x-k8s.io/provider": "infrastructure-docker",
        "cluster.x-k8s.io/v1beta1": "v1beta1",
        "cluster.x-k8s.io/v1beta2": "v1beta2",
    }


@pytest.mark.parametrize(
    "plural, short, scale",
    [
        ("clusters", ["cl"], None),
        ("machines", ["ma"], None),
        ("machinepools", ["mp"], {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}),
        ("machinehealthchecks", ["mhc", "mhcs"], None),
    ],
)
def test_names_and_subresources(plural: str, short: list[str], scale: Object | None) -> None:
    found = crd(plural)["spec"]
    assert found["names"]["shortNames"] == short and found["names"]["categories"] == ["cluster-api"]
    assert stored(plural)["subresources"].get("scale") == scale
    assert stored(plural)["subresources"]["status"] == {}


def test_providers_name_their_contract_and_core_does_not() -> None:
    for found in crds.all():
        provider = found["spec"]["group"] != "cluster.x-k8s.io"
        assert (found["metadata"]["labels"].get("cluster.x-k8s.io/v1beta2") == "v1beta2") is provider
        assert found["metadata"]["labels"]["cluster.x-k8s.io/provider"]


def test_conditions_merge_by_type() -> None:
    conditions = schema("machines", "status", "conditions")
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert conditions["maxItems"] == 32


@pytest.mark.parametrize(
    "plural, path, wanted",
    [
        ("machines", ("spec", "clusterName"), {"minLength": 1, "maxLength": 63}),
        ("machines", ("spec", "bootstrap", "dataSecretName"), {"minLength": 0, "maxLength": 253}),
        ("machines", ("spec", "providerID"), {"minLength": 1, "maxLength": 512}),
        ("machinepools", ("spec", "replicas"), {"type": "integer", "format": "int32", "minimum": 0}),
        ("machinepools", ("spec", "providerIDList"), {"maxItems": 10000, "x-kubernetes-list-type": "atomic"}),
        ("machinepools", ("status", "initialization"), {"minProperties": 1}),
        ("machinepools", ("status", "versions"), {"minItems": 1, "maxItems": 100, "x-kubernetes-list-map-keys": ["version"]}),
        ("machines", ("status",), {"minProperties": 1}),
        ("machines", ("status", "phase"), {"enum": [
            "Pending", "Provisioning", "Provisioned", "Running", "Updating", "Deleting", "Deleted", "Failed", "Unknown",
        ]}),
        ("clusters", ("spec", "controlPlaneEndpoint", "port"), {"minimum": 1, "maximum": 65535}),
    ],
)  # fmt: skip
def test_bounds(plural: str, path: tuple[str, ...], wanted: Object) -> None:
    found = schema(plural, *path)
    assert {key: found.get(key) for key in wanted} == wanted


def test_printer_columns_of_a_pool() -> None:
    columns = stored("machinepools")["additionalPrinterColumns"]
    assert [c["name"] for c in columns] == [
        "Cluster", "Desired", "Current", "Ready", "Available", "Up-to-date", "Paused", "Phase", "Age", "Version",
    ]  # fmt: skip
    assert next(c for c in columns if c["name"] == "Paused")["priority"] == 10


def test_every_type_and_most_fields_are_described() -> None:
    assert schema("machinepools", "spec")["description"] == "What is wanted of a pool."
    assert schema("machinepools", "spec", "replicas")["description"].startswith("How many instances are wanted")


def test_an_empty_secret_name_differs_from_none() -> None:
    ref = ContractRef(api_group="infrastructure.cluster.x-k8s.io", kind="DevMachine", name="a")
    pool_machine = MachineSpec(
        cluster_name="c", bootstrap=MachineBootstrap(data_secret_name=""), infrastructure_ref=ref
    )
    other = MachineSpec(cluster_name="c", infrastructure_ref=ref)
    assert to_wire(pool_machine)["bootstrap"] == {"dataSecretName": ""}
    assert to_wire(other)["bootstrap"] == {}


def test_a_stored_object_that_breaks_a_bound_can_still_be_read() -> None:
    raw = {
        "metadata": {"name": "m"},
        "spec": {
            "clusterName": "Not A Name " * 10,
            "version": "1.x",
            "bootstrap": {},
            "infrastructureRef": {"apiGroup": "", "kind": "", "name": ""},
            "newField": 1,
        },
        "status": {"phase": "Exploded"},
    }
    assert from_wire(Machine, raw).status.phase == "Exploded"
