"""What Cluster API writes on the Nodes of a workload cluster: whose they are, and what their Machine passes on.

All of it is one patch, guarded by the Node's resourceVersion because a Node's taints are one list with several writers.
Upstream: internal/controllers/machine/machine_controller_noderef.go (patchNode).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from capi.api.builtin import Node
from capi.api.builtin.core import Taint
from capi.api.core import annotations, labels
from capi.api.core.v1beta2 import Cluster, Machine
from capi.controllers.core.taints import initialized, wanted_taints
from capi.kube.objects import to_wire
from capi.kube.types import Object
from capi.runtime.plan import ClusterKey, Patch, target

_ROLE_DOMAIN = labels.NODE_ROLE_PREFIX
_LABEL_DOMAINS = (labels.NODE_RESTRICTION_DOMAIN, labels.MANAGED_NODE_DOMAIN)


class Owner(NamedTuple):
    """Who owns a Node's instance: the kind and name of the Machine's controller, or of the pool itself."""

    kind: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class NodeSync:
    """Which further labels and annotations of Machines go to their Nodes, besides those of the known domains."""

    labels: tuple[re.Pattern[str], ...] = ()
    annotations: tuple[re.Pattern[str], ...] = ()


NOTHING_MORE: Final = NodeSync()


def in_domain(key: str, domain: str) -> bool:
    """`key` is in `domain` or in a subdomain of it."""
    prefix, slash, _ = key.partition("/")
    return bool(slash) and (prefix == domain or prefix.endswith("." + domain))


def passed_labels(machine: Machine, more: NodeSync = NOTHING_MORE) -> dict[str, str]:
    """The Machine's labels that belong on its Node."""
    return {
        key: value
        for key, value in machine.metadata.labels.items()
        if key.partition("/")[0] == _ROLE_DOMAIN
        or any(in_domain(key, domain) for domain in _LABEL_DOMAINS)
        or _matches(key, more.labels)
    }


def passed_annotations(machine: Machine, more: NodeSync = NOTHING_MORE) -> dict[str, str]:
    """The Machine's annotations that belong on its Node."""
    return {
        key: value
        for key, value in machine.metadata.annotations.items()
        if in_domain(key, labels.MANAGED_NODE_DOMAIN) or _matches(key, more.annotations)
    }


def _matches(key: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    return any(pattern.search(key) for pattern in patterns)


def ownership(cluster: Cluster, owner: Owner) -> dict[str, str]:
    """Annotations that say whose a Node is."""
    found = {annotations.NODE_CLUSTER_NAME: cluster.name, annotations.NODE_CLUSTER_NAMESPACE: cluster.namespace}
    if owner.kind:
        found |= {annotations.NODE_OWNER_KIND: owner.kind, annotations.NODE_OWNER_NAME: owner.name}
    return found


def pool_node_patch(node: Node, cluster: Cluster, pool: str) -> Patch | None:
    """What a pool without Machines writes on a Node of its own; None if it is there."""
    return _patch(node, cluster, {}, dict(ownership(cluster, Owner("MachinePool", pool))), initialized(node))


def machine_node_patch(
    node: Node,
    cluster: Cluster,
    machine: Machine,
    owner: Owner,
    *,
    interruptible: bool = False,
    more: NodeSync = NOTHING_MORE,
) -> Patch | None:
    """What a Machine writes on its Node; None if it is there. What it passed on before and no longer has is removed."""
    wanted_labels, wanted_annotations = passed_labels(machine, more), passed_annotations(machine, more)
    taints = wanted_taints(node, machine)
    marks: dict[str, str | None] = {
        **ownership(cluster, owner),
        annotations.NODE_MACHINE: machine.name,
        annotations.NODE_LABELS_FROM_MACHINE: _tracking(wanted_labels),
        annotations.NODE_ANNOTATIONS_FROM_MACHINE: _tracking(wanted_annotations),
        annotations.NODE_TAINTS_FROM_MACHINE: taints.note,
        **wanted_annotations,
    }
    new_labels: dict[str, str | None] = dict(wanted_labels)
    if interruptible:
        new_labels[labels.INTERRUPTIBLE] = ""
    for key in _tracked(node, annotations.NODE_LABELS_FROM_MACHINE) - wanted_labels.keys():
        new_labels[key] = None
    for key in _tracked(node, annotations.NODE_ANNOTATIONS_FROM_MACHINE) - wanted_annotations.keys():
        marks[key] = None
    return _patch(node, cluster, new_labels, marks, taints.taints)


def _patch(
    node: Node,
    cluster: Cluster,
    new_labels: Mapping[str, str | None],
    marks: Mapping[str, str | None],
    taints: tuple[Taint, ...],
) -> Patch | None:
    """`taints` is the whole list."""
    metadata: Object = {}
    for name, current, wanted in (
        ("labels", node.metadata.labels, new_labels),
        ("annotations", node.metadata.annotations, marks),
    ):
        changed = _changes(current, wanted)
        if changed:
            metadata[name] = changed
    body: Object = {}
    if taints != node.spec.taints:
        body["spec"] = {"taints": [to_wire(taint) for taint in taints] or None}
    if not metadata and not body:
        return None
    body["metadata"] = {**metadata, "resourceVersion": node.metadata.resource_version}
    return Patch(target(node, ClusterKey(cluster.namespace, cluster.name)), body)


def _changes(current: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, Any]:
    return {k: v for k, v in wanted.items() if (k in current if v is None else current.get(k) != v)}


def _tracking(passed: Mapping[str, str]) -> str:
    return ",".join(sorted(passed))


def _tracked(node: Node, annotation: str) -> set[str]:
    return {key for key in node.metadata.annotations.get(annotation, "").split(",") if key}


def ready(node: Node) -> bool:
    """The kubelet says that it is Ready."""
    return any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)


def provider_ids(node: Node) -> tuple[str, ...]:
    """Index function: Nodes by their full provider ID; parts of it mean nothing."""
    return (node.spec.provider_id,) if node.spec.provider_id else ()


def condition_facts(node: Node) -> list[tuple[str, str, str, str]]:
    """Conditions without the times that every heartbeat moves."""
    return [(c.type, c.status, c.reason, c.message) for c in node.status.conditions]
