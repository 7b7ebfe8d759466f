"""The tree of a Cluster against recorded output of clusterctl for the same objects (golden/)."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from capi.app.tree import Node, Options, Ref, Seen, build, wanted
from capi.cli import draw
from capi.kube import yaml
from capi.kube.conditions import Condition
from capi.kube.errors import BadRequest
from capi.kube.types import Object

GOLDEN = Path(__file__).parent / "golden"
RECORDED = datetime(2026, 12, 1, 0, 52, 49, tzinfo=UTC)
"""When the ages in objects.yaml were made; each recording was made some seconds later."""


def seen() -> Seen:
    objects: list[Object] = yaml.load_all((GOLDEN / "objects.yaml").read_text())
    others = {Ref(o["apiVersion"].partition("/")[0], o["kind"], o["metadata"]["name"]): o for o in objects}
    return Seen(
        cluster=objects[0],
        machines=[o for o in objects if o["kind"] == "Machine"],
        pools=[o for o in objects if o["kind"] == "MachinePool"],
        others=others,
    )


@pytest.mark.parametrize(
    "file, after, options",
    [
        pytest.param("default", 6, Options(pool_rows=False), id="default"),
        pytest.param("nogroup", 8, Options(pool_rows=False, grouping=False), id="nothing folded"),
        pytest.param("echo", 9, Options(pool_rows=False, echo=True), id="echo"),
        pytest.param("all", 10, Options(pool_rows=False, conditions="all"), id="all conditions"),
        pytest.param("allplus", 12, Options(pool_rows=False, conditions="all+"), id="interesting conditions"),
        pytest.param(
            "kind-filter",
            13,
            Options(pool_rows=False, conditions="MachinePool,machine/mp-0-w4"),
            id="conditions of some",
        ),
    ],
)
def test_the_tree_is_drawn_as_clusterctl_draws_it(file: str, after: int, options: Options) -> None:
    drawn = draw.text(build(seen(), options), RECORDED + timedelta(seconds=after))
    assert [line.rstrip() for line in drawn.splitlines()] == (GOLDEN / f"{file}.txt").read_text().splitlines()


def rows(node: Node) -> dict[str, Node]:
    return {node.title: node} | {title: row for child in node.children for title, row in rows(child).items()}


def test_pools_show_their_counters_and_their_condition() -> None:
    pool = rows(build(seen(), Options()))["MachinePool default/mp-0, v1.35.0"]
    counters = pool.counters
    assert (counters.replicas, counters.ready, counters.available, counters.up_to_date) == ("5/5", 3, 3, 4)
    assert pool.condition is not None and pool.condition.type == "Available"


def test_only_objects_of_rows_shown_on_their_own_are_read() -> None:
    names = {ref.name for ref in wanted(seen(), Options()) if ref.kind == "DevMachine"}
    assert names == {"c1-cp-aaa", "mp-0-w4", "mp-0-w5", "orphan-1"}


def test_objects_that_are_absent_have_no_row() -> None:
    whole = seen()
    tree = build(Seen(whole.cluster, whole.machines, whole.pools), Options())
    assert not any("DevMachine" in title for title in rows(tree))


def test_white_space_in_the_conditions_is_refused() -> None:
    with pytest.raises(BadRequest, match="whitespace is not allowed"):
        build(seen(), Options(conditions="a, b"))


def test_the_tree_is_data_too() -> None:
    data = build(seen(), Options()).data()
    assert data["kind"] == "Cluster" and data["replicas"] == "6/6"
    assert data["children"][-1]["name"] == "Workers"


def test_colour_changes_no_text() -> None:
    tree = build(seen(), Options(conditions="all+"))
    plain, coloured = draw.text(tree, RECORDED), draw.text(tree, RECORDED, color=True)
    assert "\x1b[31m" in coloured
    stripped = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured.splitlines()]
    assert stripped == [line.rstrip() for line in plain.splitlines()]


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0s"),
        (67, "67s"),
        (406, "6m46s"),
        (600, "10m"),
        (4980, "83m"),
        (18180, "5h3m"),
        (90000, "25h"),
        (273600, "3d4h"),
        (7776000, "90d"),
    ],
)
def test_ages_are_those_of_kubernetes(seconds: int, text: str) -> None:
    assert draw.age(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_in_a_narrow_terminal_columns_go_before_lines_break(width: int) -> None:
    condition = Condition(
        type="Available", status="False", reason="NotAvailable", message="word " * 40, last_transition_time=RECORDED
    )
    tree = Node(kind="MachinePool", namespace="default", name="workers", condition=condition)
    lines = draw.text(tree, RECORDED, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("NAME") and "STATUS" in lines[0] and "MESSAGE" in lines[0]
    assert ("SINCE" in lines[0]) == (width > 80)
