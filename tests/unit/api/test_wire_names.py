"""Field names against the lists of the upstream API (v1beta2), written down here path by path.

A path ends in `!` if the field is required, `[]` marks a list, `{}` a map.
"""

from typing import Any

import pytest

from capi.api import crds
from capi.kube.types import Object

MACHINE_SPEC = [
    "clusterName!",
    "bootstrap!",
    "bootstrap.configRef",
    "bootstrap.configRef.apiGroup!",
    "bootstrap.configRef.kind!",
    "bootstrap.configRef.name!",
    "bootstrap.dataSecretName",
    "infrastructureRef!",
    "infrastructureRef.apiGroup!",
    "infrastructureRef.kind!",
    "infrastructureRef.name!",
    "version",
    "providerID",
    "failureDomain",
    "minReadySeconds",
    "readinessGates",
    "readinessGates[].conditionType!",
    "readinessGates[].polarity",
    "deletion",
    "deletion.nodeDrainTimeoutSeconds",
    "deletion.nodeVolumeDetachTimeoutSeconds",
    "deletion.nodeDeletionTimeoutSeconds",
    "taints",
    "taints[].key!",
    "taints[].value",
    "taints[].effect!",
    "taints[].propagation!",
]
CONDITIONS = [
    "conditions",
    "conditions[].type!",
    "conditions[].status!",
    "conditions[].reason!",
    "conditions[].message!",
    "conditions[].lastTransitionTime!",
    "conditions[].observedGeneration",
]
V1BETA1_CONDITIONS = [
    "conditions",
    "conditions[].type!",
    "conditions[].status!",
    "conditions[].severity",
    "conditions[].reason",
    "conditions[].message",
    "conditions[].lastTransitionTime",
]
FAILURE = ["failureReason", "failureMessage"]
NODE_INFO = [
    "machineID!",
    "systemUUID!",
    "bootID!",
    "kernelVersion!",
    "osImage!",
    "containerRuntimeVersion!",
    "kubeletVersion!",
    "kubeProxyVersion!",
    "operatingSystem!",
    "architecture!",
    "swap",
    "swap.capacity",
]
OBJECT_REFERENCE = ["apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "fieldPath"]
COUNTERS = ["replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"]
VERSIONS = ["versions", "versions[].version!", "versions[].replicas"]
SELECTOR = [
    "matchLabels",
    "matchLabels{}",
    "matchExpressions",
    "matchExpressions[].key!",
    "matchExpressions[].operator!",
    "matchExpressions[].values",
]


def under(prefix: str, paths: list[str]) -> list[str]:
    return [prefix, *(f"{prefix.rstrip('!')}.{path}" for path in paths)]


def template(prefix: str) -> list[str]:
    metadata = ["metadata", "metadata.labels", "metadata.labels{}", "metadata.annotations", "metadata.annotations{}"]
    return under(f"{prefix}!", [*metadata, *under("spec!", MACHINE_SPEC)])


def deprecated(paths: list[str]) -> list[str]:
    return under("deprecated", under("v1beta1", [*V1BETA1_CONDITIONS, *paths]))


WANTED: dict[str, list[str]] = {
    "machines": [
        *under("spec!", MACHINE_SPEC),
        *under(
            "status",
            [
                *CONDITIONS,
                *under("initialization", ["infrastructureProvisioned", "bootstrapDataSecretCreated"]),
                *under("nodeRef", ["name!"]),
                *under("nodeInfo", NODE_INFO),
                "lastUpdated",
                *["addresses", "addresses[].type!", "addresses[].address!"],
                *["failureDomain", "phase", "certificatesExpiryDate", "observedGeneration"],
                *under(
                    "deletion",
                    [
                        "nodeDrainStartTime",
                        "waitForNodeVolumeDetachStartTime",
                        "waitForPreDrainHookStartTime",
                        "waitForPreTerminateHookStartTime",
                    ],
                ),
                *deprecated(FAILURE),
            ],
        ),
    ],
    "machinepools": [
        *under("spec!", ["clusterName!", "replicas", *template("template"), "providerIDList", "failureDomains"]),
        *under(
            "status",
            [
                *CONDITIONS,
                *under("initialization", ["infrastructureProvisioned", "bootstrapDataSecretCreated"]),
                *["nodeRefs", *(f"nodeRefs[].{name}" for name in OBJECT_REFERENCE)],
                *COUNTERS,
                *VERSIONS,
                *["phase", "observedGeneration"],
                *deprecated([*FAILURE, "readyReplicas", "availableReplicas", "unavailableReplicas"]),
            ],
        ),
    ],
    "machinehealthchecks": [
        *under(
            "spec!",
            [
                "clusterName!",
                *under("selector!", SELECTOR),
                *under(
                    "checks",
                    [
                        "nodeStartupTimeoutSeconds",
                        *(
                            f"{kind}{field}"
                            for kind in ("unhealthyNodeConditions", "unhealthyMachineConditions")
                            for field in ("", "[].type!", "[].status!", "[].timeoutSeconds!")
                        ),
                    ],
                ),
                *under(
                    "remediation",
                    [
                        *under("triggerIf", ["unhealthyLessThanOrEqualTo", "unhealthyInRange"]),
                        *under("templateRef", ["apiVersion!", "kind!", "name!"]),
                    ],
                ),
            ],
        ),
        *under(
            "status",
            [
                *CONDITIONS,
                *["expectedMachines", "currentHealthy", "remediationsAllowed", "targets", "observedGeneration"],
                *deprecated([]),
            ],
        ),
    ],
    "machinedrainrules": under(
        "spec!",
        [
            *under("drain!", ["behavior!", "order"]),
            *(
                path
                for kind, other in (("machines", "clusterSelector"), ("pods", "namespaceSelector"))
                for path in [kind, *under(f"{kind}[].selector", SELECTOR), *under(f"{kind}[].{other}", SELECTOR)]
            ),
        ],
    ),
}


def fields(schema: Object, prefix: str = "") -> set[str]:
    """Every path of a schema, written as above."""
    found: set[str] = set()
    for name, child in (schema.get("properties") or {}).items():
        path = f"{prefix}{name}"
        found.add(path + ("!" if name in schema.get("required", ()) else ""))
        found |= fields(child, f"{path}.")
        if isinstance(child.get("additionalProperties"), dict):
            found.add(f"{path}{{}}")
        if "items" in child:
            found |= fields(child["items"], f"{path}[].")
    return found


def schema_of(plural: str) -> Object:
    crd = next(c for c in crds.all() if c["spec"]["names"]["plural"] == plural)
    found: Any = next(v for v in crd["spec"]["versions"] if v["storage"])["schema"]["openAPIV3Schema"]
    return {
        "properties": {k: v for k, v in found["properties"].items() if k in ("spec", "status")},
        "required": found.get("required", []),
    }


@pytest.mark.parametrize("plural", WANTED)
def test_fields_are_exactly_those_of_upstream(plural: str) -> None:
    found, listed = fields(schema_of(plural)), set(WANTED[plural])
    assert found - listed == set(), "fields that upstream does not have"
    assert listed - found == set(), "fields that are missing"


@pytest.mark.parametrize(
    "plural, paths",
    [
        pytest.param(
            "clusters",
            """spec! spec.paused spec.clusterNetwork.apiServerPort spec.clusterNetwork.services.cidrBlocks!
            spec.clusterNetwork.pods.cidrBlocks! spec.clusterNetwork.serviceDomain spec.controlPlaneEndpoint.host
            spec.controlPlaneEndpoint.port spec.controlPlaneRef.name! spec.infrastructureRef.apiGroup! spec.topology
            spec.availabilityGates[].conditionType! status.initialization.infrastructureProvisioned
            status.initialization.controlPlaneInitialized status.controlPlane.desiredReplicas status.workers.upToDateReplicas
            status.controlPlane.upgradePlan[].version! status.failureDomains[].name! status.failureDomains[].controlPlane
            status.phase status.observedGeneration status.deprecated.v1beta1.failureMessage""",
            id="Cluster",
        ),
        pytest.param(
            "devmachinepools",
            """spec.providerID spec.providerIDList spec.backend.docker.customImage spec.backend.docker.preLoadImages
            spec.backend.docker.extraMounts[].containerPath spec.backend.inMemory.vm.provisioning.startupDuration!
            spec.backend.inMemory.node.provisioning.startupJitter status.ready status.replicas
            status.initialization.provisioned status.infrastructureMachineKind status.instances[].instanceName""",
            id="DevMachinePool",
        ),
        pytest.param(
            "devclusters",
            """spec.controlPlaneEndpoint.host spec.backend! spec.backend.docker.failureDomains[].attributes
            spec.backend.docker.loadBalancer.customHAProxyConfigTemplateRef.name spec.backend.inMemory
            status.initialization.provisioned""",
            id="DevCluster",
        ),
        pytest.param(
            "devmachines",
            """spec.providerID spec.backend! spec.backend.docker.bootstrapTimeout
            spec.backend.inMemory.apiServer.provisioning.startupDuration! spec.backend.inMemory.etcd.provisioning
            status.addresses[].address! status.failureDomain status.initialization.provisioned""",
            id="DevMachine",
        ),
        pytest.param(
            "devcontrolplanes",
            """spec.version! spec.controlPlaneEndpoint.port status.initialization.controlPlaneInitialized
            status.externalManagedControlPlane status.version status.versions[].version!""",
            id="DevControlPlane",
        ),
    ],
)
def test_the_other_kinds_have_their_fields(plural: str, paths: str) -> None:
    assert set(paths.split()) - fields(schema_of(plural)) == set()
