"""The table of built-in kinds: catalogue entry, rules and columns joined.

A kind that is served but has no rules of its own here is stored with its schema and the defaults of `KindRules`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from capi.kube.types import ResourceType
from capi.server.registry import crd
from capi.server.registry.builtin import catalog, core, events, names, pods, tables
from capi.server.registry.builtin.rules import KindRules, drop_status, keep_status
from capi.server.registry.interface import ResourceInfo
from capi.server.registry.schema import definition

_CORE_EVENT = ResourceType("", "v1", "Event", "events")
_STATUS: dict[str, Any] = {"prepare_create": drop_status, "prepare_update": keep_status}
"""Kinds whose status is written through /status only."""
_RULES: Mapping[tuple[str, str], dict[str, Any]] = {
    ("", "Namespace"): {
        "name_errors": names.label,
        "default": core.namespace_default,
        "prepare_create": core.namespace_create,
        "prepare_update": core.namespace_update,
        "returns_deleted": True,
    },
    ("", "Node"): {"default": core.node_default, "prepare_update": keep_status, "validate": core.node_validate},
    ("", "Pod"): {
        "generation": True,
        "default": pods.default,
        "prepare_create": pods.create,
        "prepare_update": pods.update,
        "validate": pods.validate,
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
}
_SELECTABLE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): pods.SELECTABLE,
    ("", "Node"): ("spec.unschedulable",),
    ("", "Namespace"): ("status.phase",),
    ("", "Secret"): ("type",),
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
    info = replace(
        info,
        columns=tables.columns(info.type.group_kind),
        cells=tables.cells(info.type.group_kind),
        selectable_fields=_SELECTABLE.get(address, ()),
    )
    own = _RULES.get(address)
    if own is None:
        own = _STATUS if "status" in info.subresources else {}
    return KindRules(info=info, **own)
