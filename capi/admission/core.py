"""Defaults and rules of the kinds of cluster.x-k8s.io.

Upstream: internal/webhooks/{machine,machinepool,machinehealthcheck,machinedrainrule,cluster}.go.
Differs: what CEL can say is in the CRDs; replicas below 0 are refused; kinds nothing acts on yet are refused on create.
"""

import ipaddress

import capi.admission.rules as rules
from capi.admission.rules import at
from capi.api.core import labels, taints
from capi.kube.errors import Cause
from capi.kube.types import Object

_LEAST_STARTUP_TIMEOUT = 30
_STARTUP_TIMEOUT = 600
_BOTH_BOOTSTRAPS = "one of spec.bootstrap.configRef and spec.bootstrap.dataSecretName must be set"


def default_machine(obj: Object, old: Object | None = None) -> Object:
    """Label cluster-name, the version's `v`, ten seconds for the deletion of the Node."""
    obj = rules.version_prefix(rules.cluster_label(obj), "spec", "version")
    path = ("spec", "deletion", "nodeDeletionTimeoutSeconds")
    return rules.fill(obj, rules.NODE_DELETION_TIMEOUT_SECONDS, *path)


def validate_machine(obj: Object, old: Object | None = None) -> list[Cause]:
    """A Machine needs bootstrap data, unless a pool made it: then its provider bootstraps the instance.

    A worker may not have the taint of control planes.
    """
    bootstrap = at(obj, "spec", "bootstrap") or {}
    given = "configRef" in bootstrap or bootstrap.get("dataSecretName") is not None or _of_pool(obj)
    return [*([] if given else [rules.required("spec.bootstrap", _BOTH_BOOTSTRAPS)]), *_worker_taints(obj)]


def _worker_taints(machine: Object) -> list[Cause]:
    if labels.CONTROL_PLANE in (at(machine, "metadata", "labels") or {}):
        return []
    text = f"only Machines with the label {labels.CONTROL_PLANE} may have this taint"
    return [
        rules.invalid(f"spec.taints[{index}].key", taints.CONTROL_PLANE, text)
        for index, taint in enumerate(at(machine, "spec", "taints") or ())
        if taint.get("key") == taints.CONTROL_PLANE
    ]


def _of_pool(machine: Object) -> bool:
    owners = at(machine, "metadata", "ownerReferences") or ()
    return labels.POOL_NAME in (at(machine, "metadata", "labels") or {}) or any(
        owner.get("kind") == "MachinePool" for owner in owners
    )


def default_machine_pool(obj: Object, old: Object | None = None) -> Object:
    """Label cluster-name, replicas, the version's `v`, ten seconds for the deletion of a Node."""
    obj = rules.replicas(rules.cluster_label(obj), old)
    if at(obj, "spec", "template", "spec") is None:
        return obj  # the schema will say what is missing
    obj = rules.version_prefix(obj, "spec", "template", "spec", "version")
    path = ("spec", "template", "spec", "deletion", "nodeDeletionTimeoutSeconds")
    return rules.fill(obj, rules.NODE_DELETION_TIMEOUT_SECONDS, *path)


def validate_machine_pool(obj: Object, old: Object | None = None) -> list[Cause]:
    """Template metadata and the autoscaler's bounds; the rest is in the schema."""
    return rules.autoscaler_causes(obj) + rules.template_metadata(obj, "spec", "template", "metadata")


def default_machine_health_check(obj: Object, old: Object | None = None) -> Object:
    """Label cluster-name, ten minutes for a Node to appear."""
    return rules.fill(rules.cluster_label(obj), _STARTUP_TIMEOUT, "spec", "checks", "nodeStartupTimeoutSeconds")


def validate_machine_health_check(obj: Object, old: Object | None = None) -> list[Cause]:
    """The selector selects something, of this Cluster; the startup timeout is off or long enough."""
    causes = rules.selector(obj, "spec", "selector")
    selector, cluster = at(obj, "spec", "selector") or {}, at(obj, "spec", "clusterName")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        causes.append(rules.required("spec.selector", "selector must not be empty"))
    named = at(selector, "matchLabels", labels.CLUSTER_NAME)
    if named is not None and named != cluster:
        text = f"must select Machines of the Cluster in spec.clusterName ({cluster})"
        causes.append(rules.invalid("spec.selector", named, text))
    timeout = at(obj, "spec", "checks", "nodeStartupTimeoutSeconds")
    if isinstance(timeout, int) and 0 < timeout < _LEAST_STARTUP_TIMEOUT:
        text = f"must be 0 or at least {_LEAST_STARTUP_TIMEOUT}"
        causes.append(rules.invalid("spec.checks.nodeStartupTimeoutSeconds", timeout, text))
    return causes + rules.int_or_percent(obj, "spec", "remediation", "triggerIf", "unhealthyLessThanOrEqualTo")


def validate_machine_drain_rule(obj: Object, old: Object | None = None) -> list[Cause]:
    """Every selector must be readable."""
    causes: list[Cause] = []
    for entries in ("machines", "pods"):
        for i, entry in enumerate(at(obj, "spec", entries) or ()):
            for name in ("selector", "clusterSelector", "namespaceSelector"):
                found = rules.selector(entry, name)
                causes += [Cause(c.reason, c.message, f"spec.{entries}[{i}].{c.field}") for c in found]
    return causes


def validate_cluster(obj: Object, old: Object | None = None) -> list[Cause]:
    """The name goes into labels; networks are CIDR blocks."""
    causes = rules.name_is_label_value(obj)
    for network in ("services", "pods"):
        for i, block in enumerate(at(obj, "spec", "clusterNetwork", network, "cidrBlocks") or ()):
            try:
                ipaddress.ip_network(block, strict=False)
            except ValueError:
                where = f"spec.clusterNetwork.{network}.cidrBlocks[{i}]"
                causes.append(rules.invalid(where, block, 'must be an address range like "192.168.0.0/16"'))
    return causes
