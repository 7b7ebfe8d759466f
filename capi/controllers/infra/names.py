"""Strings of the Dev* kinds that are not fields. Upstream's unless said to be ours."""

HASH_ANNOTATION = "devmachine.infrastructure.cluster.x-k8s.io/template-hash"
"""Ours, on a pool's DevMachines: the template that the instance was made from (see machinepool.plan.template_hash)."""
VERSION_ANNOTATION = "devmachine.infrastructure.cluster.x-k8s.io/version"
"""Ours, on a pool's DevMachines: the Kubernetes version that the instance was made with; it keeps it for life."""
DOMAIN_ANNOTATION = "devmachine.infrastructure.cluster.x-k8s.io/failure-domain"
"""Ours, on a pool's DevMachines: where the pool placed the instance, of MachinePool.spec.failureDomains."""
FAILURE_ANNOTATION = "devmachine.infrastructure.cluster.x-k8s.io/simulated-failure"
"""Ours, on DevMachines, by users: INSTANCE_LOST makes the simulated machine vanish."""
INSTANCE_LOST = "InstanceLost"
DEFAULT_VERSION = "v1.35.0"
"""Kubelet version of simulated machines when neither Machine nor MachinePool names one."""

INSTANCE_GONE = "InstanceGone"
"""Ours: reason of a DevMachine's VMProvisioned condition; final, the machine will not come back."""
NOT_SUPPORTED = "NotSupported"
"""Ours: reason of a condition about something that this version does not do."""
UNSUPPORTED_MESSAGE = "Only spec.backend.inMemory is supported in this version"


def provider_id(namespace: str, cluster: str, name: str) -> str:
    """Of a simulated machine: `in-memory:///<namespace>/<cluster>/<name>`.

    Differs: upstream's `in-memory://<name>` is not unique over clusters.
    """
    return f"in-memory:///{namespace}/{cluster}/{name}"
