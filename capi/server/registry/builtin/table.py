"""The table of built-in kinds: catalogue entry, rules and columns joined.

A kind that is served but has no rules of its own here is stored with its schema and the defaults of `KindRules`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from capi.kube.types import Object, ResourceType
from capi.server.registry import crd
from capi.server.registry.builtin import (
    access,
    catalog,
    core,
    events,
    names,
    pods,
    quantities,
    services,
    storage,
    tables,
    workloads,
)
from capi.server.registry.builtin.rules import KindRules, drop_status, keep_status, status_and_metadata, unchanged
from capi.server.registry.interface import ResourceInfo, ScalePaths
from capi.server.registry.schema import definition

_RBAC_GROUP = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_SCALE = ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector")
_CORE_EVENT = ResourceType("", "v1", "Event", "events")
_STATUS: dict[str, Any] = {"prepare_create": drop_status, "prepare_update": keep_status}
"""Kinds whose status is written through /status only."""


def _fresh(default: Callable[[Object], Object]) -> Callable[[Object], Object]:
    """For kinds whose status has defaults: what was sent of it is dropped, the defaults are not."""
    return lambda obj: default(drop_status(obj))


_RBAC: dict[str, Any] = {"create_on_update": True, "name_errors": names.path_segment}
_ROLE = {**_RBAC, "default": access.role_default, "validate": access.role_validate}
_BINDING = {**_RBAC, "default": access.binding_default, "validate": access.binding_validate}
_CONFIGURATION: dict[str, Any] = {
    "generation": True,
    "unconditional_update": False,
    "validate": access.webhooks_validate,
}
_RULES: Mapping[tuple[str, str], dict[str, Any]] = {
    ("", "Namespace"): {
        "name_errors": names.label,
        "default": core.namespace_default,
        "prepare_create": core.namespace_create,
        "prepare_update": core.namespace_update,
        "prepare_status": status_and_metadata,
        "returns_deleted": True,
    },
    ("", "Node"): {
        "default": core.node_default,
        "prepare_update": keep_status,
        "prepare_status": status_and_metadata,
        "validate": core.node_validate,
        "field": core.node_field,
    },
    ("", "Pod"): {
        "generation": True,
        "default": pods.default,
        "prepare_create": pods.create,
        "prepare_update": pods.update,
        "prepare_status": status_and_metadata,
        "validate": pods.validate,
        "field": pods.field,
        "returns_deleted": True,
    },
    ("", "Secret"): {"default": core.secret_default, "validate": core.secret_validate},
    ("", "ConfigMap"): {"validate": core.config_map_validate},
    ("", "ServiceAccount"): {"returns_deleted": True},
    ("", "Event"): {
        "create_on_update": True,
        "name_errors": names.path_segment,
        "default": events.default,
        "validate": events.validate,
        "field": events.field,
        "max_life": events.LIFE,
    },
    ("events.k8s.io", "Event"): {
        "create_on_update": True,
        "name_errors": names.path_segment,
        "default": events.default_new,
        "validate": events.validate_new,
        "field": events.field,
        "view_of": _CORE_EVENT,
        "to_storage": events.to_core,
        "from_storage": events.from_core,
        "max_life": events.LIFE,
    },
    ("coordination.k8s.io", "Lease"): {
        "unconditional_update": False,
        "create_on_update": True,
        "validate": core.lease_validate,
    },
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {
        "generation": True,
        "unconditional_update": False,
        "default": crd.default,
        "prepare_create": crd.create,
        "prepare_update": crd.update,
        "validate": definition.validate,
    },
    ("", "Service"): {
        "create_on_update": True,
        "returns_deleted": True,
        "name_errors": names.label_1035,
        "default": services.default,
        "prepare_create": services.create,
        "prepare_update": services.update,
        "validate": services.validate,
    },
    ("", "Endpoints"): {"create_on_update": True, "default": services.endpoints_default},
    ("discovery.k8s.io", "EndpointSlice"): {
        "generation": True,
        "default": services.slice_default,
        "validate": services.slice_validate,
    },
    ("", "PersistentVolume"): {
        "returns_deleted": True,
        "default": storage.volume_default,
        "prepare_create": storage.pending,
        "prepare_update": keep_status,
        "prepare_status": status_and_metadata,
        "validate": storage.volume_validate,
    },
    ("", "PersistentVolumeClaim"): {
        "returns_deleted": True,
        "default": storage.claim_default,
        "prepare_create": storage.pending,
        "prepare_update": keep_status,
        "prepare_status": status_and_metadata,
        "validate": storage.claim_validate,
    },
    ("", "ResourceQuota"): {**_STATUS, "returns_deleted": True},
    ("", "LimitRange"): {"create_on_update": True},
    ("", "PodTemplate"): {"generation": True, "returns_deleted": True},
    ("", "ReplicationController"): {**_STATUS, "generation": True},
    **{
        ("apps", kind): {
            **_STATUS,
            "generation": True,
            "default": workloads.default(kind),
            "prepare_create": _fresh(workloads.default(kind)),
            "validate": workloads.validate,
        }
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
    },
    ("batch", "Job"): {**_STATUS, "generation": True},
    ("batch", "CronJob"): {**_STATUS, "generation": True},
    ("networking.k8s.io", "Ingress"): {**_STATUS, "generation": True},
    ("networking.k8s.io", "IngressClass"): {"generation": True},
    ("networking.k8s.io", "NetworkPolicy"): {"generation": True},
    ("policy", "PodDisruptionBudget"): {
        **_STATUS,
        "generation": True,
        "unconditional_update": False,
        "default": workloads.budget_default,
        "prepare_create": _fresh(workloads.budget_default),
        "validate": workloads.budget_validate,
    },
    ("storage.k8s.io", "StorageClass"): {
        "returns_deleted": True,
        "default": storage.class_default,
        "validate": storage.class_validate,
    },
    ("storage.k8s.io", "VolumeAttachment"): {
        **_STATUS,
        "returns_deleted": True,
        "unconditional_update": False,
        "default": storage.attachment_default,
        "prepare_create": _fresh(storage.attachment_default),
        "validate": storage.attachment_validate,
    },
    ("storage.k8s.io", "CSINode"): {"returns_deleted": True, "unconditional_update": False},
    ("storage.k8s.io", "CSIDriver"): {"returns_deleted": True, "unconditional_update": False},
    ("scheduling.k8s.io", "PriorityClass"): {
        "generation": True,
        "default": storage.priority_default,
        "validate": storage.priority_validate,
    },
    (_RBAC_GROUP, "Role"): _ROLE,
    (_RBAC_GROUP, "ClusterRole"): _ROLE,
    (_RBAC_GROUP, "RoleBinding"): _BINDING,
    (_RBAC_GROUP, "ClusterRoleBinding"): _BINDING,
    (_ADMISSION, "MutatingWebhookConfiguration"): {**_CONFIGURATION, "default": access.webhooks_default(True)},
    (_ADMISSION, "ValidatingWebhookConfiguration"): {**_CONFIGURATION, "default": access.webhooks_default(False)},
}
_SELECTABLE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): pods.SELECTABLE,
    ("", "Node"): ("spec.unschedulable",),
    ("", "Namespace"): ("status.phase",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
    ("apps", "ReplicaSet"): ("status.replicas",),
    ("batch", "Job"): ("status.successful",),
    ("", "Event"): events.SELECTABLE,
    ("events.k8s.io", "Event"): events.SELECTABLE_NEW,
}


@lru_cache(maxsize=1)
def kinds() -> Sequence[KindRules]:
    """Every built-in kind, in discovery order. Computed once a process: shared by all servers in it."""
    return tuple(_joined(info) for info in catalog.load().infos)


@lru_cache(maxsize=1)
def _by_type() -> Mapping[ResourceType, KindRules]:
    return {rules.info.type: rules for rules in kinds()}


def rules_for(info: ResourceInfo) -> KindRules | None:
    """The rules of a built-in kind; None for custom resources."""
    return _by_type().get(info.type)


def _joined(info: ResourceInfo) -> KindRules:
    address = (info.type.group, info.type.kind)
    scalable = info.type.group == "apps" and "scale" in info.subresources
    info = replace(
        info,
        subresources=tuple(name for name in info.subresources if name != "scale" or scalable),
        scale=_SCALE if scalable else None,
        columns=tables.columns(info.type.group_kind),
        cells=tables.cells(info.type.group_kind),
        selectable_fields=_SELECTABLE.get(address, ()),
    )
    own = _RULES.get(address)
    if own is None:
        own = _STATUS if "status" in info.subresources else {}
    return KindRules(info=info, **{**own, "default": _canonical(info, own.get("default", unchanged))})


def _canonical(info: ResourceInfo, default: Callable[[Object], Object]) -> Callable[[Object], Object]:
    """A kind's defaulting with its quantities spelled canonically; the walk is built at the first write."""

    @lru_cache(maxsize=1)
    def walk() -> Callable[[Any], Any]:
        return quantities.canonicalizer(info.schema) or unchanged

    def fill(obj: Object) -> Object:
        filled: Object = default(walk()(obj))
        return filled

    return fill
