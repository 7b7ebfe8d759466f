"""Kubernetes' JSONPath."""

import pytest

from capi.kube import jsonpath

OBJ = {
    "metadata": {"name": "a", "annotations": {"x.io/y": "z"}},
    "spec": {"list": [1, 2, 3, 4], "nested": [[{"n": 1}], [{"n": 2}]]},
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Paused", "status": "False", "n": 2}]
    },
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".metadata.name", ["a"]),
        ("{.metadata.name}", ["a"]),
        ("$.metadata.name", ["a"]),
        ("metadata.name", ["a"]),
        (".metadata['name']", ["a"]),
        (r".metadata.annotations.x\.io/y", ["z"]),
        (".metadata.annotations['x.io/y']", ["z"]),
        (".spec.list[0]", [1]),
        (".spec.list[-1]", [4]),
        (".spec.list[9]", []),
        (".spec.list[1:3]", [2, 3]),
        (".spec.list[0,2]", [1, 3]),
        (".spec.list[*]", [1, 2, 3, 4]),
        (".spec.list", [[1, 2, 3, 4]]),
        (".spec.missing.more", []),
        ("..n", [1, 2, 1, 2]),
        (".spec..n", [1, 2]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Paused')].status", ["False"]),
        (".status.conditions[?(@.n>1)].type", ["Paused"]),
        (".status.conditions[?(@.type!='Ready')].n", [2]),
        (".status.conditions[?(@.missing)].n", []),
        (".metadata.*", ["a", {"x.io/y": "z"}]),
    ],
)
def test_a_path_finds_its_values(path, values):
    assert jsonpath.compile(path)(OBJ) == values


@pytest.mark.parametrize("path", [".a[", ".a[x]", ".a[?(@.b==c)]", ".a b", ".a]"])
def test_bad_syntax_is_a_value_error(path):
    with pytest.raises(ValueError, match="JSONPath"):
        jsonpath.compile(path)


@pytest.mark.parametrize(
    "path",
    [".a[0:2:0]", ".a[::-1]", ".b[?(@.x<@.y)]", ".b[?(@.x>=@.y)]", ".c[?(@.x<@.y)]", ".d[?(@.x>@.y)]"],
)
def test_what_cannot_be_sliced_or_ordered_yields_nothing(path: str) -> None:
    """Columns and selectable fields come from strangers' definitions: they must not break a list or a watch."""
    obj = {
        "a": [1, 2],
        "b": [{"x": {"k": 1}, "y": {"k": 1}}],
        "c": [{"x": [1, "a"], "y": ["a", 1]}],
        "d": [{"x": None, "y": None}],
    }
    assert jsonpath.compile(path)(obj) == []
