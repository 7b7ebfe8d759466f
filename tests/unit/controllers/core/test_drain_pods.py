"""Drain: what happens to each Pod, by what it is, by its label, and by rules."""

from datetime import timedelta
from typing import Any

import pytest

from capi.api.builtin import Pod
from capi.api.core.v1beta2 import MachineDrainRule
from capi.controllers.core.machine.drain.pods import Behavior, judge
from capi.controllers.core.machine.drain.rules import needs_namespaces, rules_for
from capi.controllers.core.machine.drain.view import DrainView
from capi.kube.errors import ContractError
from tests.unit.controllers.builders import NOW, a_cluster, a_machine, a_node
from tests.unit.controllers.core.drains import a_pod, a_rule, picks

DAEMON = ("DaemonSet", "ds")
MIRROR = {"kubernetes.io/config.mirror": "x"}
SKIP, DRAIN, WAIT, DONE = Behavior.SKIP, Behavior.DRAIN, Behavior.WAIT, Behavior.DONE


def verdict(pod: Pod, *rules: MachineDrainRule, node: Any = None, **view: Any) -> tuple[Behavior, int]:
    view = {"daemon_sets": frozenset({"ds"}), "namespaces": {"apps": {"team": "a"}}, "rules": rules, **view}
    [found] = judge(DrainView(pods=[pod], **view), node or a_node(), NOW)
    return found.behavior, found.order


def drain_label(value: str) -> Any:
    return {"labels": {"cluster.x-k8s.io/drain": value}}


@pytest.mark.parametrize(
    ("pod", "behavior"),
    [
        pytest.param(a_pod("a"), DRAIN, id="an ordinary Pod"),
        pytest.param(a_pod("a", owner=("", "")), DRAIN, id="one that nobody will replace"),
        pytest.param(a_pod("a", phase="Succeeded"), DRAIN, id="one that has ended"),
        pytest.param(a_pod("a", owner=DAEMON), SKIP, id="a daemon"),
        pytest.param(a_pod("a", owner=DAEMON, phase="Failed"), DRAIN, id="a daemon that has ended"),
        pytest.param(a_pod("a", owner=("DaemonSet", "other")), DRAIN, id="a daemon whose DaemonSet has gone"),
        pytest.param(a_pod("a", annotations=MIRROR), SKIP, id="a static Pod"),
        pytest.param(a_pod("a", **drain_label("skip")), SKIP, id="label skip"),
        pytest.param(a_pod("a", **drain_label("SKIP")), SKIP, id="label SKIP"),
        pytest.param(a_pod("a", **drain_label("Wait-Completed")), WAIT, id="label wait-completed"),
        pytest.param(a_pod("a", phase="Failed", **drain_label("wait-completed")), DONE, id="waited for, and over"),
        pytest.param(a_pod("a", **drain_label("later")), DRAIN, id="a label that means nothing"),
    ],
)
def test_a_pod_is_treated_by_what_it_is(pod: Pod, behavior: Behavior) -> None:
    assert verdict(pod) == (behavior, 0)


@pytest.mark.parametrize(
    ("late", "ready", "behavior"),
    [
        pytest.param(2, "Unknown", SKIP, id="should have ended on a Node that does not answer"),
        pytest.param(1, "Unknown", DRAIN, id="has its second"),
        pytest.param(2, "False", DRAIN, id="the Node answers"),
    ],
)
def test_a_pod_that_nobody_can_end_is_not_waited_for(late: int, ready: str, behavior: Behavior) -> None:
    pod = a_pod("a", ends=NOW - timedelta(seconds=late))
    assert verdict(pod, node=a_node(ready=ready))[0] is behavior


WEB = a_pod("a", labels={"app": "web"})


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        pytest.param((a_rule("a", "Skip"),), (SKIP, 0), id="a rule without selectors selects all"),
        pytest.param((a_rule("a", "Skip", pods=[{"selector": {}}]),), (SKIP, 0), id="an empty selector too"),
        pytest.param((a_rule("a", "Skip", pods=[{"selector": picks(app="db")}]),), (DRAIN, 0), id="another app"),
        pytest.param((a_rule("a", order=7), a_rule("b", "Skip")), (DRAIN, 7), id="the first by name counts"),
        pytest.param((a_rule("a", "WaitCompleted", order=7),), (WAIT, 0), id="only evictions have an order"),
        pytest.param(
            (a_rule("a", "Skip", pods=[{"selector": picks(app="db")}, {"selector": picks(app="web")}]),),
            (SKIP, 0),
            id="one entry is enough",
        ),
        pytest.param(
            (a_rule("a", "Skip", pods=[{"selector": picks(app="web"), "namespaceSelector": picks(team="b")}]),),
            (DRAIN, 0),
            id="of an entry both must match",
        ),
        pytest.param(
            (a_rule("a", "Skip", pods=[{"namespaceSelector": picks(team="a")}]),), (SKIP, 0), id="by namespace"
        ),
    ],
)  # fmt: skip
def test_the_first_rule_that_selects_a_pod_says_how_it_is_treated(rules: Any, wanted: Any) -> None:
    assert verdict(WEB, *rules) == wanted


def test_a_pods_label_beats_every_rule_and_what_it_is_beats_its_label() -> None:
    assert verdict(a_pod("a", **drain_label("wait-completed")), a_rule("a", "Skip")) == (WAIT, 0)
    assert verdict(a_pod("a", owner=DAEMON, **drain_label("wait-completed"))) == (SKIP, 0)
    assert verdict(a_pod("a", annotations=MIRROR), a_rule("a")) == (SKIP, 0)


def test_a_rule_that_asks_for_a_namespace_that_does_not_exist_decides_nothing() -> None:
    rule = a_rule("by-team", "Skip", pods=[{"namespaceSelector": picks(team="a")}])
    with pytest.raises(ContractError, match=r"Namespace apps of Pod a does not exist.*by-team"):
        verdict(WEB, rule, namespaces={})
    assert verdict(WEB, a_rule("first"), rule, namespaces={}) == (DRAIN, 0), "it is not asked"


def test_an_unknown_behavior_decides_nothing() -> None:
    with pytest.raises(ContractError, match=r"MachineDrainRule new has the unknown spec.drain.behavior 'Melt'"):
        verdict(WEB, a_rule("new", "Melt"))


@pytest.mark.parametrize(
    ("machines", "concerned"),
    [
        pytest.param(None, True, id="no selectors: all Machines"),
        pytest.param([{"selector": picks(role="gpu")}], True, id="the Machine's labels"),
        pytest.param([{"selector": picks(role="web")}], False, id="other labels"),
        pytest.param([{"selector": picks(role="gpu"), "clusterSelector": picks(env="prod")}], True, id="both"),
        pytest.param([{"selector": picks(role="gpu"), "clusterSelector": picks(env="test")}], False, id="one of two"),
        pytest.param([{"selector": picks(role="x")}, {"clusterSelector": picks(env="prod")}], True, id="any entry"),
    ],
)
def test_rules_concern_machines_by_labels(machines: Any, concerned: bool) -> None:
    machine = a_machine(meta={"labels": {"role": "gpu"}})
    cluster = a_cluster()
    cluster.metadata.labels["env"] = "prod"
    rules = [a_rule("b", machines=machines or ()), a_rule("a", machines=[{"selector": picks(role="nobody")}])]
    assert [rule.name for rule in rules_for(machine, cluster, rules)] == ["b"] * concerned


def test_a_selector_that_cannot_be_read_spoils_them_all() -> None:
    bad = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
    elsewhere = a_rule("z", machines=[{"selector": picks(role="nobody")}], pods=[{"selector": bad}])
    with pytest.raises(ContractError, match=r"MachineDrainRule z has a selector that cannot be read"):
        rules_for(a_machine(), a_cluster(), [a_rule("a"), elsewhere])


def test_namespaces_are_needed_only_by_rules_that_ask() -> None:
    assert not needs_namespaces([a_rule("a", pods=[{"selector": picks(app="web")}])])
    assert needs_namespaces([a_rule("a"), a_rule("b", pods=[{"namespaceSelector": {}}])])
