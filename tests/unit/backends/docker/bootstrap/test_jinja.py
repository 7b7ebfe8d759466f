"""Jinja: the node's name, and warnings."""

import pytest

from capi.backends.docker.bootstrap.jinja import render
from tests.unit.backends.docker.bootstrap.data import NODE

HEADER = "## template: jinja\n"


@pytest.mark.parametrize(
    "expression",
    [
        "{{ ds.meta_data.local_hostname }}", "{{ds.meta_data.hostname}}", "{{ ds.meta_data.instance_id }}", "{{- v1.local_hostname -}}",
        '{{ ds.meta_data["local_hostname"] }}', "{{ ds['meta_data']['hostname'] }}", "{{ v1.instance_id }}", "{{ ds.meta_data['instance-id'] }}",
    ],
)  # fmt: skip
def test_the_node_has_its_name(expression: str) -> None:
    assert render(f"{HEADER}name: '{expression}'\n", NODE) == ("name: 'c1-w-abc12'\n", [])


@pytest.mark.parametrize("other", ["{{ ds.meta_data.region }}", "{% if x %}", "{{ .Names }}", "{{ hostname | upper }}"])
def test_other_expressions_stay_with_one_warning(other: str) -> None:
    text, warnings = render(f"{HEADER}a: {other}\nb: {other}\n", NODE)
    assert text == f"a: {other}\nb: {other}\n"
    assert len(warnings) == 1
    assert other in warnings[0]


def test_raw_text_is_left_alone() -> None:
    text = "{% raw %}docker ps --format '{{ .Names }} {{ hostname }}'{% endraw %} {{ hostname }}"
    assert render(HEADER + text, NODE) == ("docker ps --format '{{ .Names }} {{ hostname }}' c1-w-abc12", [])


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["{{", "{%", "{% raw %}", "{{ hostname", "{{ hostname }}", "{{ x }}"])
def test_long_text_takes_no_long_time(piece: str) -> None:
    text, warnings = render(HEADER + piece * 100_000, NODE)
    assert text in (piece * 100_000, NODE.name * 100_000, "")
    assert len(warnings) <= 1


@pytest.mark.parametrize("text", ["#cloud-config\na: '{{ hostname }}'", "\n## template: jinja\n{{ hostname }}", ""])
def test_without_its_header_nothing_is_a_template(text: str) -> None:
    assert render(text, NODE) == (text, [])
