"""Which writes an API server asks about: the webhook configurations. Pure.

Match conditions (CEL) keep the API server from asking where there is nothing to do: a write of a complete Machine, and every
write of a status, costs no call. What a schema can say is in the CRDs and needs no webhook at all.
Source: kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers; upstream core/webhooks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from capi.admission.convert import converts
from capi.kube.types import GroupKind, Object

MUTATING: Final = "capi-mutating-webhook-configuration"
VALIDATING: Final = "capi-validating-webhook-configuration"
CONVERT_PATH: Final = "/convert"
VERSION: Final = "v1beta2"
OLD_VERSION: Final = "v1beta1"
TIMEOUT_SECONDS: Final = 10
_REGISTRATION: Final = "admissionregistration.k8s.io/v1"
_CREATED: Final = "request.operation == 'CREATE'"
_SPEC_CHANGED: Final = f"{_CREATED} || object.?spec != oldObject.?spec"
_OF_NO_POOL: Final = "!object.?metadata.?labels[?'cluster.x-k8s.io/pool-name'].hasValue()"
"""Machines of pools are made by the pool's controller, from a spec that was checked."""
_OF_TEMPLATE: Final = "?spec.?template.?spec"
_NO_LABEL: Final = (
    "object.?metadata.?labels[?'cluster.x-k8s.io/cluster-name'].orValue('') != object.?spec.?clusterName.orValue('')"
)


def _incomplete(spec: str) -> str:
    """A Machine spec at a path has no `v` before its version, or no timeout for the deletion of its Node."""
    return (
        f"!object.{spec}.?version.orValue('v').startsWith('v')"
        f" || !object.{spec}.?deletion.?nodeDeletionTimeoutSeconds.hasValue()"
    )


def _changed(*members: str) -> str:
    """The object is new, or one of these members of its spec is another one; controllers write the others."""
    return " || ".join((_CREATED, *(f"object.?spec.?{name} != oldObject.?spec.?{name}" for name in members)))


def _no_backend(spec: str) -> str:
    """The spec of a Dev kind at a path says no backend."""
    return " && ".join(f"!object.{spec}.?backend.?{name}.hasValue()" for name in ("docker", "inMemory"))


def _incomplete_cluster(spec: str, docker: str) -> str:
    """A cluster of containers, whose spec and backend are at the paths, has no port, or domains that say too little."""
    domains = f"object.{docker}.?failureDomains.orValue([])"
    return (
        f"!object.{spec}.?controlPlaneEndpoint.?port.hasValue() || {domains}.exists(domain, !has(domain.controlPlane))"
    )


def _incomplete_dev_cluster(spec: str) -> str:
    docker = f"{spec}.?backend.?docker"
    return f"{_no_backend(spec)} || object.{docker}.hasValue() && ({_incomplete_cluster(spec, docker)})"


@dataclass(frozen=True, slots=True)
class Webhook:
    """One kind and what is asked about it; an empty condition: nothing."""

    group: str
    kind: str
    plural: str
    default_if: str = ""
    validate_if: str = ""


_CORE, _INFRA = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"
WEBHOOKS: Sequence[Webhook] = (
    Webhook(_CORE, "Cluster", "clusters", validate_if=_SPEC_CHANGED),
    Webhook(
        _CORE,
        "Machine",
        "machines",
        default_if=f"{_NO_LABEL} || {_incomplete('?spec')}",
        validate_if=(
            "!object.?spec.?bootstrap.?configRef.hasValue() && !object.?spec.?bootstrap.?dataSecretName.hasValue()"
            " || object.?spec.?taints.orValue([]).exists(taint, taint.key == 'node-role.kubernetes.io/control-plane')"
            " && !object.?metadata.?labels[?'cluster.x-k8s.io/control-plane'].hasValue()"
        ),
    ),
    Webhook(
        _CORE,
        "MachinePool",
        "machinepools",
        default_if=f"{_NO_LABEL} || !object.?spec.?replicas.hasValue() || {_incomplete('?spec.?template.?spec')}",
        validate_if=(
            f"{_CREATED} || object.?spec.?template != oldObject.?spec.?template"
            " || object.?metadata.?annotations != oldObject.?metadata.?annotations"
        ),
    ),
    Webhook(
        _CORE,
        "MachineHealthCheck",
        "machinehealthchecks",
        default_if=f"{_NO_LABEL} || !object.?spec.?checks.?nodeStartupTimeoutSeconds.hasValue()",
        validate_if=_SPEC_CHANGED,
    ),
    Webhook(_CORE, "MachineDrainRule", "machinedrainrules", validate_if=_SPEC_CHANGED),
    Webhook(_INFRA, "DevCluster", "devclusters", _incomplete_dev_cluster("?spec"), _changed("backend")),
    Webhook(_INFRA, "DevClusterTemplate", "devclustertemplates", _incomplete_dev_cluster(_OF_TEMPLATE), _SPEC_CHANGED),
    Webhook(_INFRA, "DevMachine", "devmachines", _no_backend("?spec"), f"({_changed('backend')}) && {_OF_NO_POOL}"),
    Webhook(_INFRA, "DevMachineTemplate", "devmachinetemplates", _no_backend(_OF_TEMPLATE), _SPEC_CHANGED),
    Webhook(_INFRA, "DevMachinePool", "devmachinepools", _no_backend("?spec"), _changed("backend", "strategy")),
    Webhook(_INFRA, "DevMachinePoolTemplate", "devmachinepooltemplates", _no_backend(_OF_TEMPLATE), _SPEC_CHANGED),
    Webhook(_INFRA, "DockerCluster", "dockerclusters", _incomplete_cluster("?spec", "?spec"), _SPEC_CHANGED),
    Webhook(
        _INFRA,
        "DockerMachine",
        "dockermachines",
        validate_if=f"({_changed('customImage', 'preLoadImages', 'extraMounts')}) && {_OF_NO_POOL}",
    ),
    Webhook(_INFRA, "DockerMachineTemplate", "dockermachinetemplates", validate_if=_SPEC_CHANGED),
    Webhook(_INFRA, "DockerMachinePool", "dockermachinepools", validate_if=_changed("template", "strategy")),
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the webhook server is: a Service of the cluster, or a URL."""

    namespace: str = ""
    service: str = "capi-webhook"
    url: str = ""
    """`https://host:port`; wins over the Service."""
    ca: str = ""
    """Authority of its certificate, base64 of PEM; empty: somebody else fills it in."""

    def client(self, path: str) -> Object:
        """A `clientConfig`."""
        if self.url:
            found: Object = {"url": self.url.rstrip("/") + path}
        else:
            found = {"service": {"namespace": self.namespace, "name": self.service, "path": path, "port": 443}}
        return {**found, "caBundle": self.ca} if self.ca else found


def path_of(verb: str, hook: Webhook) -> str:
    """`/mutate-cluster-x-k8s-io-v1beta2-machinepool`, and so on."""
    return f"/{verb}-{hook.group.replace('.', '-')}-{VERSION}-{hook.kind.lower()}"


def configurations(endpoint: Endpoint, labels: Mapping[str, str]) -> list[Object]:
    """The mutating and the validating configuration."""
    return [
        _configuration("MutatingWebhookConfiguration", MUTATING, _hooks("mutate", endpoint), labels),
        _configuration("ValidatingWebhookConfiguration", VALIDATING, _hooks("validate", endpoint), labels),
    ]


def conversion(endpoint: Endpoint) -> Object:
    """The `spec.conversion` of a CRD with several versions."""
    return {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": endpoint.client(CONVERT_PATH)},
    }


def _configuration(kind: str, name: str, hooks: Iterator[Object], labels: Mapping[str, str]) -> Object:
    metadata = {"name": name, "labels": dict(labels)}
    return {"apiVersion": _REGISTRATION, "kind": kind, "metadata": metadata, "webhooks": list(hooks)}


def _hooks(verb: str, endpoint: Endpoint) -> Iterator[Object]:
    for hook in WEBHOOKS:
        client = endpoint.client(path_of(verb, hook))
        if verb == "validate" and hook.validate_if:
            yield _hook(hook, "validation", VERSION, client, hook.validate_if)
        if verb == "mutate" and hook.default_if:
            yield {**_hook(hook, "default", VERSION, client, hook.default_if), "matchPolicy": "Exact"}
            if converts(GroupKind(hook.group, hook.kind)):
                yield {**_hook(hook, f"default-{OLD_VERSION}", OLD_VERSION, client), "matchPolicy": "Exact"}


def _hook(hook: Webhook, prefix: str, version: str, client: Object, condition: str = "") -> Object:
    """One entry. An object whose form no schema has looked at yet cannot be converted: defaults are asked for in the version
    that was written. Without a condition every write is asked about."""
    conditions = [{"name": "something-to-do", "expression": condition}] if condition else None
    return {
        "name": f"{prefix}.{hook.kind.lower()}.{hook.group}",
        "clientConfig": client,
        "rules": [
            {
                "apiGroups": [hook.group],
                "apiVersions": [version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [hook.plural],
                "scope": "Namespaced",
            }
        ],
        **({"matchConditions": conditions} if conditions else {}),
        "matchPolicy": "Equivalent",
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": TIMEOUT_SECONDS,
    }
