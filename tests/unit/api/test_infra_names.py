"""Field names of the infrastructure kinds, path by path as upstream has them; what is ours is listed apart.

A path ends in `!` if the field is required, `[]` marks a list, `{}` a map.
"""

import pytest

from capi.api import crds
from capi.kube.types import Object
from tests.unit.api.test_wire_names import CONDITIONS, V1BETA1_CONDITIONS, fields, under

MOUNT = ["extraMounts", "extraMounts[].containerPath", "extraMounts[].hostPath", "extraMounts[].readOnly"]
CONTAINER = ["customImage", "preLoadImages", *MOUNT]
BALANCER = under(
    "loadBalancer",
    ["imageRepository", "imageTag", *under("customHAProxyConfigTemplateRef", ["name"])],
)
ENDPOINT = under("controlPlaneEndpoint", ["host", "port"])
OLD_ENDPOINT = under("controlPlaneEndpoint", ["host!", "port!"])
DOMAINS = [
    "failureDomains", "failureDomains[].name!", "failureDomains[].controlPlane",
    "failureDomains[].attributes", "failureDomains[].attributes{}",
]  # fmt: skip
OLD_DOMAINS = ["failureDomains", "failureDomains{}"]
ADDRESSES = ["addresses", "addresses[].type!", "addresses[].address!"]
META = ["metadata", "metadata.labels", "metadata.labels{}", "metadata.annotations", "metadata.annotations{}"]
STARTED = under("initialization", ["provisioned"])
DEPRECATED = under("deprecated", under("v1beta1", V1BETA1_CONDITIONS))
OLD_STATUS = ["ready", *V1BETA1_CONDITIONS, *under("v1beta2", CONDITIONS)]
TIMES = under("provisioning", ["startupDuration!", "startupJitter"])
SIMULATED = under("inMemory", [path for step in ("vm", "node", "apiServer", "etcd") for path in under(step, TIMES)])
MACHINE = ["providerID", *under("backend!", [*under("docker", [*CONTAINER, "bootstrapTimeout"]), *SIMULATED])]
DOCKER_MACHINE = ["providerID", "bootstrapped", *CONTAINER, "bootstrapTimeout"]
INSTANCES = [
    "instances", "instances[].instanceName", "instances[].providerID", "instances[].version", "instances[].ready",
    *(f"instances[].{path}" for path in ADDRESSES),
]  # fmt: skip
POOL_STATUS = ["ready", "replicas", "observedGeneration", "infrastructureMachineKind", *INSTANCES]
STRATEGY = under("strategy", ["type", *under("rollingUpdate", ["maxSurge", "maxUnavailable", "deletePolicy"])])
POOL_STATUS_OF_OURS = [*STARTED, "capacity", "capacity{}", *under("nodeInfo", ["architecture", "operatingSystem"])]


def cluster(docker: list[str], endpoint: list[str]) -> list[str]:
    return [*endpoint, *under("backend!", [*under("docker", [*docker, *BALANCER]), "inMemory"])]


def in_template(spec: list[str]) -> list[str]:
    return under("spec!", under("template!", [*META, *under("spec!", spec)]))


NEW_CLUSTER = under("status", [*CONDITIONS, *STARTED, *DOMAINS, *DEPRECATED])
OLD_CLUSTER = under("status", [*OLD_STATUS, *OLD_DOMAINS])
NEW_MACHINE = [*CONDITIONS, *STARTED, *ADDRESSES, "failureDomain", *DEPRECATED]
POOL = ["providerID", "providerIDList"]
UPSTREAM: dict[tuple[str, str], list[str]] = {
    ("devclusters", "v1beta2"): [*under("spec", cluster(DOMAINS, ENDPOINT)), *NEW_CLUSTER],
    ("devclusters", "v1beta1"): [*under("spec", cluster(OLD_DOMAINS, OLD_ENDPOINT)), *OLD_CLUSTER],
    ("devclustertemplates", "v1beta2"): in_template(cluster(DOMAINS, ENDPOINT)),
    ("devclustertemplates", "v1beta1"): in_template(cluster(OLD_DOMAINS, OLD_ENDPOINT)),
    ("devmachines", "v1beta2"): [*under("spec", MACHINE), *under("status", NEW_MACHINE)],
    ("devmachines", "v1beta1"): [*under("spec", MACHINE), *under("status", [*OLD_STATUS, *ADDRESSES])],
    ("devmachinetemplates", "v1beta2"): [*in_template(MACHINE), *under("status", ["capacity", "capacity{}"])],
    ("devmachinetemplates", "v1beta1"): in_template(MACHINE),
    ("devmachinepools", "v1beta2"): [
        *under("spec", [*POOL, *under("backend", under("docker", CONTAINER))]),
        *under("status", [*CONDITIONS, *POOL_STATUS]),
    ],
    ("devmachinepooltemplates", "v1beta2"): in_template([*POOL, *under("backend", under("docker", CONTAINER))]),
    ("dockerclusters", "v1beta2"): [*under("spec", [*ENDPOINT, *DOMAINS, *BALANCER]), *NEW_CLUSTER],
    ("dockerclusters", "v1beta1"): [*under("spec", [*OLD_ENDPOINT, *OLD_DOMAINS, *BALANCER]), *OLD_CLUSTER],
    ("dockermachines", "v1beta2"): [
        *under("spec", DOCKER_MACHINE),
        *under("status", [*NEW_MACHINE, "loadBalancerConfigured"]),
    ],
    ("dockermachines", "v1beta1"): [
        *under("spec", DOCKER_MACHINE),
        *under("status", [*OLD_STATUS, *ADDRESSES, "loadBalancerConfigured"]),
    ],
    ("dockermachinetemplates", "v1beta2"): [
        *in_template(DOCKER_MACHINE),
        *under("status", ["capacity", "capacity{}"]),
    ],
    ("dockermachinetemplates", "v1beta1"): in_template(DOCKER_MACHINE),
    ("dockermachinepools", "v1beta2"): [
        *under("spec", [*POOL, *under("template", CONTAINER)]),
        *under("status", [*CONDITIONS, *POOL_STATUS, "instances[].bootstrapped", *DEPRECATED]),
    ],
    ("dockermachinepools", "v1beta1"): [
        *under("spec", [*POOL, *under("template", CONTAINER)]),
        *under("status", [*OLD_STATUS, *POOL_STATUS, "instances[].bootstrapped"]),
    ],
}
SIMULATED_POOL = under("inMemory", [path for step in ("vm", "node") for path in under(step, TIMES)])
REQUIRED_OF_OURS = ("startupDuration!", "provisioning!", "external.name!")
"""In members that are optional themselves."""
EXTERNAL = [f"backend.{path}" for path in under("external", ["name!", "parameters", "parameters{}"])]
OURS: dict[tuple[str, str], list[str]] = {
    ("devmachinepools", "v1beta2"): [
        *(f"spec.{path}" for path in STRATEGY),
        *(f"spec.backend.{path}" for path in (*SIMULATED_POOL, "docker.bootstrapTimeout")),
        *(f"spec.{path}" for path in EXTERNAL),
        *(f"status.{path}" for path in POOL_STATUS_OF_OURS),
    ],
    ("devmachinepooltemplates", "v1beta2"): [
        *(f"spec.template.spec.{path}" for path in STRATEGY),
        *(f"spec.template.spec.backend.{path}" for path in (*SIMULATED_POOL, "docker.bootstrapTimeout")),
        *(f"spec.template.spec.{path}" for path in EXTERNAL),
    ],
    ("devmachines", "v1beta2"): [f"spec.{path}" for path in EXTERNAL],
    ("devmachines", "v1beta1"): [f"spec.{path}" for path in EXTERNAL],
    ("devmachinetemplates", "v1beta2"): [f"spec.template.spec.{path}" for path in EXTERNAL],
    ("devmachinetemplates", "v1beta1"): [f"spec.template.spec.{path}" for path in EXTERNAL],
    ("dockermachinepools", "v1beta2"): [
        *(f"spec.{path}" for path in STRATEGY),
        "spec.template.bootstrapTimeout",
        *(f"status.{path}" for path in POOL_STATUS_OF_OURS),
    ],
}
"""Optional, all of it."""


def schema_of(plural: str, version: str) -> Object:
    found = next(c for c in crds.all() if c["spec"]["names"]["plural"] == plural)["spec"]["versions"]
    schema = next(v for v in found if v["name"] == version)["schema"]["openAPIV3Schema"]
    return {
        "properties": {k: v for k, v in schema["properties"].items() if k in ("spec", "status")},
        "required": schema.get("required", []),
    }


def test_every_version_of_infrastructure_is_listed() -> None:
    assert set(UPSTREAM) == {
        (c["spec"]["names"]["plural"], v["name"])
        for c in crds.all()
        if c["spec"]["group"] == "infrastructure.cluster.x-k8s.io"
        for v in c["spec"]["versions"]
    }


@pytest.mark.parametrize(("plural", "version"), UPSTREAM)
def test_fields_are_exactly_those_of_upstream_and_ours(plural: str, version: str) -> None:
    found = fields(schema_of(plural, version))
    listed = {*UPSTREAM[plural, version], *OURS.get((plural, version), ())}
    assert found - listed == set(), "fields that nobody listed"
    assert listed - found == set(), "fields that are missing"
    assert not [
        path for path in OURS.get((plural, version), ()) if path.endswith("!") and not path.endswith(REQUIRED_OF_OURS)
    ]
