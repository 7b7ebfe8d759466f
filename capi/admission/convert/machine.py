"""Machine, and the Machine spec of every template. Pure.

Upstream: api/core/v1beta1/conversion.go.
"""

from capi.admission.convert.values import (
    ApiVersions,
    conditions_down,
    deprecated,
    duration_down,
    duration_up,
    kept,
    moved,
    reference_down,
    reference_up,
    true_or_none,
    without,
)
from capi.kube.types import Object

_TIMEOUTS = {
    "nodeDrainTimeout": "nodeDrainTimeoutSeconds",
    "nodeVolumeDetachTimeout": "nodeVolumeDetachTimeoutSeconds",
    "nodeDeletionTimeout": "nodeDeletionTimeoutSeconds",
}
_SAME = ("nodeInfo", "lastUpdated", "addresses", "phase", "certificatesExpiryDate", "observedGeneration", "deletion")


def spec_down(spec: Object, namespace: str, versions: ApiVersions) -> Object:
    """A Machine spec in v1beta1, which has no minReadySeconds."""
    bootstrap = spec.get("bootstrap") or {}
    config = reference_down(bootstrap.get("configRef"), namespace, versions)
    secret = bootstrap.get("dataSecretName")
    deletion = spec.get("deletion") or {}
    return {
        **without(spec, "bootstrap", "infrastructureRef", "deletion", "minReadySeconds"),
        "bootstrap": {
            **({"configRef": config} if config else {}),
            **({} if secret is None else {"dataSecretName": secret}),
        },
        "infrastructureRef": reference_down(spec.get("infrastructureRef"), namespace, versions),
        **kept(**{old: duration_down(deletion.get(new)) for old, new in _TIMEOUTS.items()}),
    }


def spec_up(spec: Object) -> Object:
    """A Machine spec in v1beta2."""
    bootstrap = spec.get("bootstrap") or {}
    secret = bootstrap.get("dataSecretName")
    deletion = {new: seconds for old, new in _TIMEOUTS.items() if (seconds := duration_up(spec.get(old))) is not None}
    emptied = [name for name in ("version", "providerID", "failureDomain", "readinessGates") if not spec.get(name)]
    return {
        **without(spec, "bootstrap", "infrastructureRef", *_TIMEOUTS, *emptied),
        "bootstrap": {
            **kept(configRef=reference_up(bootstrap.get("configRef"))),
            **({} if secret is None else {"dataSecretName": secret}),
        },
        **kept(infrastructureRef=reference_up(spec.get("infrastructureRef")), deletion=deletion),
    }


def template_down(template: Object | None, namespace: str, versions: ApiVersions) -> Object:
    """A Machine template in v1beta1."""
    template = template or {}
    return {**template, "spec": spec_down(template.get("spec") or {}, namespace, versions)}


def template_up(template: Object | None, **spec: object) -> Object:
    """A Machine template in v1beta2; `spec` are members that were elsewhere in v1beta1, None for unset ones."""
    template = template or {}
    more = {name: value for name, value in spec.items() if value is not None}
    metadata = {name: found for name, found in (template.get("metadata") or {}).items() if found}
    return {
        **without(template, "metadata"),
        **kept(metadata=metadata),
        "spec": {**spec_up(template.get("spec") or {}), **more},
    }


def down(obj: Object, namespace: str, versions: ApiVersions) -> Object:
    """spec and status of a Machine in v1beta1."""
    status = obj.get("status") or {}
    old, start, node = deprecated(status), status.get("initialization") or {}, status.get("nodeRef") or {}
    found = {
        **moved(status, dict(zip(_SAME, _SAME, strict=True))),
        **kept(
            nodeRef={"apiVersion": "v1", "kind": "Node", "name": node["name"]} if node.get("name") else None,
            conditions=old.get("conditions"),
            failureReason=old.get("failureReason"),
            failureMessage=old.get("failureMessage"),
            v1beta2=conditions_down(status),
        ),
        "bootstrapReady": bool(start.get("bootstrapDataSecretCreated")),
        "infrastructureReady": bool(start.get("infrastructureProvisioned")),
    }
    if found.get("phase") == "Updating":
        found["phase"] = "Running"
    return {"spec": spec_down(obj.get("spec") or {}, namespace, versions), "status": found}


def up(obj: Object) -> Object:
    """spec and status of a Machine in v1beta2."""
    status = obj.get("status") or {}
    old = kept(**{name: status.get(name) for name in ("conditions", "failureReason", "failureMessage")})
    found = {
        **moved(status, dict(zip(_SAME, _SAME, strict=True))),
        **kept(
            nodeRef=kept(name=(status.get("nodeRef") or {}).get("name")),
            initialization=flags_up(status),
            conditions=(status.get("v1beta2") or {}).get("conditions"),
            deprecated={"v1beta1": old} if old else None,
        ),
    }
    return {"spec": spec_up(obj.get("spec") or {}), **kept(status=found)}


def flags_up(status: Object) -> Object:
    """`status.initialization` of Machines and pools."""
    return kept(
        infrastructureProvisioned=true_or_none(status.get("infrastructureReady")),
        bootstrapDataSecretCreated=true_or_none(status.get("bootstrapReady")),
    )
