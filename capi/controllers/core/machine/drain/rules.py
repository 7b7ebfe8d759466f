"""MachineDrainRules: which of them says how a Pod is treated. Pure.

Upstream: internal/controllers/machine/drain/drain.go, api/core/v1beta2/machinedrainrules_types.go.
"""

from collections.abc import Iterable, Mapping

from capi.api.core.v1beta2 import Cluster, LabelSelector, Machine, MachineDrainRule
from capi.kube import selectors
from capi.kube.errors import BadRequest, ContractError
from capi.kube.objects import to_wire


def rules_for(machine: Machine, cluster: Cluster, rules: Iterable[MachineDrainRule]) -> list[MachineDrainRule]:
    """The rules that concern a Machine, by name. Raises ContractError for one with a selector that cannot be read."""
    return sorted((rule for rule in rules if _concerns(rule, machine, cluster)), key=lambda rule: rule.name)


def _concerns(rule: MachineDrainRule, machine: Machine, cluster: Cluster) -> bool:
    if not rule.spec.machines:
        return True
    return any(
        matches(rule, entry.selector, machine.metadata.labels)
        and matches(rule, entry.cluster_selector, cluster.metadata.labels)
        for entry in rule.spec.machines
    )


def needs_namespaces(rules: Iterable[MachineDrainRule]) -> bool:
    """Whether any rule looks at the labels of namespaces."""
    return any(entry.namespace_selector is not None for rule in rules for entry in rule.spec.pods)


def rule_of(
    labels: Mapping[str, str], namespace: Mapping[str, str], rules: Iterable[MachineDrainRule]
) -> MachineDrainRule | None:
    """The first rule that selects a Pod with these labels in a namespace with those."""
    return next((rule for rule in rules if _selects(rule, labels, namespace)), None)


def _selects(rule: MachineDrainRule, labels: Mapping[str, str], namespace: Mapping[str, str]) -> bool:
    if not rule.spec.pods:
        return True
    return any(
        matches(rule, entry.selector, labels) and matches(rule, entry.namespace_selector, namespace)
        for entry in rule.spec.pods
    )


def matches(rule: MachineDrainRule, selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """No selector and an empty one select everything. Raises ContractError that names the rule."""
    if selector is None:
        return True
    try:
        return selectors.labels_from_wire(to_wire(selector)).matches(labels)
    except BadRequest as error:
        raise ContractError(
            f"MachineDrainRule {rule.name} has a selector that cannot be read: {error.message}"
        ) from error
