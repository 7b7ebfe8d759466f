"""MachineDrainRules: which of them says how a Pod is treated. Pure.

Upstream: internal/controllers/machine/drain/{drain,filters}.go.
Differs: namespaces are looked at only by rules that select by them.
"""

from collections.abc import Iterable, Mapping

from capi.api.builtin import Pod
from capi.api.core.v1beta2 import Cluster, LabelSelector, Machine, MachineDrainRule
from capi.kube import selectors
from capi.kube.errors import BadRequest, ContractError
from capi.kube.objects import to_wire


def rules_for(machine: Machine, cluster: Cluster, rules: Iterable[MachineDrainRule]) -> list[MachineDrainRule]:
    """The rules that concern a Machine, by name. Raises ContractError for any one with a selector that cannot be read:
    whom it would have spared is not known."""
    ordered = sorted(rules, key=lambda rule: rule.name)
    for rule in ordered:
        _check(rule)
    return [rule for rule in ordered if _concerns(rule, machine, cluster)]


def _check(rule: MachineDrainRule) -> None:
    chosen = (
        *(selector for entry in rule.spec.machines for selector in (entry.selector, entry.cluster_selector)),
        *(selector for entry in rule.spec.pods for selector in (entry.selector, entry.namespace_selector)),
    )
    try:
        for selector in chosen:
            _matches(selector, {})
    except BadRequest as error:
        message = f"MachineDrainRule {rule.name} has a selector that cannot be read: {error.message}"
        raise ContractError(message) from error


def _concerns(rule: MachineDrainRule, machine: Machine, cluster: Cluster) -> bool:
    if not rule.spec.machines:
        return True
    return any(
        _matches(entry.selector, machine.metadata.labels) and _matches(entry.cluster_selector, cluster.metadata.labels)
        for entry in rule.spec.machines
    )


def needs_namespaces(rules: Iterable[MachineDrainRule]) -> bool:
    """Whether any rule looks at the labels of namespaces."""
    return any(entry.namespace_selector is not None for rule in rules for entry in rule.spec.pods)


def rule_of(
    pod: Pod, namespace: Mapping[str, str] | None, rules: Iterable[MachineDrainRule]
) -> MachineDrainRule | None:
    """The first rule that selects a Pod whose namespace has these labels (None: it does not exist, or was not read).
    Raises ContractError where that decides."""
    return next((rule for rule in rules if _selects(rule, pod, namespace)), None)


def _selects(rule: MachineDrainRule, pod: Pod, namespace: Mapping[str, str] | None) -> bool:
    if not rule.spec.pods:
        return True
    for entry in rule.spec.pods:
        if not _matches(entry.selector, pod.metadata.labels):
            continue
        if entry.namespace_selector is None:
            return True
        if namespace is None:
            raise ContractError(
                f"Namespace {pod.namespace} of Pod {pod.name} does not exist, so nobody knows whether MachineDrainRule"
                f" {rule.name} selects the Pod; delete the Pod"
            )
        if _matches(entry.namespace_selector, namespace):
            return True
    return False


def _matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """No selector and an empty one select everything. Raises BadRequest."""
    return selector is None or selectors.labels_from_wire(to_wire(selector)).matches(labels)
