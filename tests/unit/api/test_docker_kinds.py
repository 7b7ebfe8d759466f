"""The Docker kinds read as the Dev kinds."""

from typing import Any

import pytest

from capi.api.infra.v1beta2 import (
    DevClusterBackend,
    DevMachineBackend,
    DevMachinePoolBackend,
    DevMachineSpec,
    DevMachineStatus,
    DockerCluster,
    DockerClusterBackend,
    DockerLoadBalancer,
    DockerMachine,
    DockerMachineBackend,
    DockerMachinePool,
    DockerMachinePoolBackend,
    DockerMachineSpec,
    Mount,
)
from capi.kube.objects import from_wire, to_wire
from capi.kube.types import Object

MACHINE = DockerMachineBackend(
    custom_image="i", pre_load_images=("p",), extra_mounts=(Mount(host_path="/h"),), bootstrap_timeout="7m"
)
FLAT: Object = {
    "customImage": "i", "preLoadImages": ["p"], "extraMounts": [{"hostPath": "/h"}], "bootstrapTimeout": "7m"
}  # fmt: skip


def of(**members: Any) -> Object:
    return {"metadata": {"name": "a"}, **members}


def test_a_docker_cluster_is_a_dev_cluster_of_containers() -> None:
    spec: Object = {"failureDomains": [{"name": "a"}], "loadBalancer": {"imageTag": "t"}}
    found = from_wire(DockerCluster, of(spec=spec)).spec
    assert found.backend == DevClusterBackend(
        docker=DockerClusterBackend(
            failure_domains=found.failure_domains, load_balancer=DockerLoadBalancer(image_tag="t")
        )
    )
    assert [domain.name for domain in found.failure_domains] == ["a"]
    assert from_wire(DockerCluster, of()).spec.backend == DevClusterBackend(docker=DockerClusterBackend())


def test_a_docker_machine_is_a_dev_machine_of_a_container() -> None:
    found = from_wire(DockerMachine, of(spec={"providerID": "x", **FLAT})).spec
    assert found.backend == DevMachineBackend(docker=MACHINE)
    assert to_wire(found) == {"providerID": "x", **FLAT}


def test_a_docker_pool_is_a_dev_pool_of_containers() -> None:
    found = from_wire(DockerMachinePool, of(spec={"template": FLAT, "strategy": {"type": "OnDelete"}})).spec
    docker = DockerMachinePoolBackend(
        custom_image="i", pre_load_images=("p",), extra_mounts=MACHINE.extra_mounts, bootstrap_timeout="7m"
    )
    assert found.backend == DevMachinePoolBackend(docker=docker)
    assert found.strategy is not None and found.strategy.type == "OnDelete"


@pytest.mark.parametrize("spec", [DevMachineSpec, DockerMachineSpec])
def test_both_spellings_of_a_machine_are_made_alike(spec: type[DevMachineSpec] | type[DockerMachineSpec]) -> None:
    made = spec.of("docker:////c-a", DevMachineBackend(docker=MACHINE))
    assert (made.provider_id, made.backend) == ("docker:////c-a", DevMachineBackend(docker=MACHINE))


def test_a_status_fits_both_spellings() -> None:
    status = DevMachineStatus(failure_domain="fd1")
    assert to_wire(DockerMachine(status=status))["status"] == {"failureDomain": "fd1"}
