"""Machine: the taints that its Node gets, keeps and loses."""

from datetime import timedelta
from typing import Any

import pytest

from capi.api.builtin.core import Taint
from capi.api.core import annotations
from capi.api.core.v1beta2 import MachineTaint
from capi.controllers.core.taints import wanted_taints
from tests.unit.controllers.builders import NOW, UNINITIALIZED, a_machine, a_node

NOTE = annotations.NODE_TAINTS_FROM_MACHINE
FOREIGN = Taint(key="dedicated", value="gpu", effect="NoSchedule")


def always(key: str, value: str = "", effect: str = "NoSchedule") -> MachineTaint:
    return MachineTaint(key=key, value=value, effect=effect, propagation="Always")


def once(key: str, value: str = "", effect: str = "NoSchedule") -> MachineTaint:
    return MachineTaint(key=key, value=value, effect=effect, propagation="OnInitialization")


def on(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


@pytest.mark.parametrize(
    ("note", "present", "asked", "wanted", "noted"),
    [
        pytest.param(None, (UNINITIALIZED, FOREIGN), (), (FOREIGN,), "", id="nothing asked"),
        pytest.param(None, (UNINITIALIZED, FOREIGN), (always("b"), always("a", "1")), (FOREIGN, on("b"), on("a", "1")), "a:NoSchedule,b:NoSchedule", id="a new Node gets what is kept"),
        pytest.param(None, (), (once("a", "1"),), (on("a", "1"),), "", id="a new Node gets what is for its beginning"),
        pytest.param("", (), (once("a"),), (), "", id="a Node that has begun does not"),
        pytest.param("", (on("a"),), (once("a"),), (on("a"),), "", id="nor does it lose it"),
        pytest.param("", (FOREIGN,), (always("a"),), (FOREIGN, on("a")), "a:NoSchedule", id="added later"),
        pytest.param("a:NoSchedule", (), (always("a"),), (on("a"),), "a:NoSchedule", id="taken off by somebody, put back"),
        pytest.param("a:NoSchedule", (on("a", "1"), FOREIGN), (always("a", "2"),), (on("a", "2"), FOREIGN), "a:NoSchedule", id="another value, in its place"),
        pytest.param("a:NoSchedule", (on("a"), on("b")), (), (on("b"),), "", id="given up; others stay"),
        pytest.param("a:NoSchedule", (on("a"),), (once("a"),), (on("a"),), "", id="no longer kept, but still asked for"),
        pytest.param("a:NoSchedule", (on("a"),), (always("a", effect="NoExecute"),), (on("a", effect="NoExecute"),), "a:NoExecute", id="another effect is another taint"),
        pytest.param("rubbish,,a", (on("a"),), (), (on("a"),), "", id="a note of somebody else"),
    ],
)  # fmt: skip
def test_what_a_node_is_tainted_with(note: str | None, present: Any, asked: Any, wanted: Any, noted: str) -> None:
    marks = {} if note is None else {NOTE: note}
    node = a_node(taints=present, annotations=marks)
    found = wanted_taints(node, a_machine(spec={"taints": asked}))
    assert found == (wanted, noted)
    settled = a_node(taints=found.taints, annotations={NOTE: found.note})
    assert wanted_taints(settled, a_machine(spec={"taints": asked})) == found


def test_since_when_a_taint_is_there_stays() -> None:
    since = NOW - timedelta(minutes=3)
    node = a_node(taints=(Taint(key="a", value="1", effect="NoExecute", time_added=since),), annotations={NOTE: ""})
    [kept] = wanted_taints(node, a_machine(spec={"taints": (always("a", "2", "NoExecute"),)})).taints
    assert (kept.value, kept.time_added) == ("2", since)
