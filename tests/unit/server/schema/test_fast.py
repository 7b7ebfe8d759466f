"""The fast path never says yes to an object that the slow path would change or refuse."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from capi.server.registry.schema import correlate, fast, lists, shape, values
from tests.unit.server.schema.widgets import SPEC, a_schema, a_widget

SCHEMA = a_schema()
PROVED = fast.proof(SCHEMA)
PRUNE = shape.pruner(SCHEMA, root=True)
DEFAULT = shape.defaulter(SCHEMA)
VALIDATE = values.validator(SCHEMA)
EMBEDDED = lists.embedded_checker(SCHEMA)

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 12), st.integers(), st.floats(allow_nan=False), st.sampled_from(
        ["", "a", "b", "ab", "abcdef", "AB", "é", "2026-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "v1"]
    ), st.text(max_size=3),
)  # fmt: skip
NAMES = st.sampled_from(["k", "v", "n", "x", "a", "b", "apiVersion", "kind", "metadata", "zz"])
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Mostly good values of a schema node, so that the fast path has something to say yes to."""
    match schema.get("type"):
        case "object" if "properties" in schema:
            return st.fixed_dictionaries({}, optional={k: members(v) for k, v in schema["properties"].items()})
        case "object":
            return st.dictionaries(NAMES, st.sampled_from(["a", "b"]), max_size=2)
        case "array":
            return st.lists(fitting(schema["items"]), max_size=3)
        case "integer":
            return st.integers(1, 5)
        case "number":
            return st.floats(0.1, 5) | st.integers(1, 5)
    return st.sampled_from(schema.get("enum") or ["ab", "2026-01-01T00:00:00Z"])


def members(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    return st.one_of(fitting(schema), fitting(schema), fitting(schema), ANYTHING)


SPECS = st.one_of(
    fitting(SPEC), fitting(SPEC).map(lambda spec: {"size": 2, "mode": "a", "sub": {"x": 1}, **spec}), ANYTHING
)


@settings(max_examples=400, deadline=None)
@given(spec=SPECS)
def test_a_proved_object_needs_no_pruning_no_default_and_has_no_causes(spec):
    obj = a_widget(spec)
    if not PROVED(obj):
        return
    dropped: list[str] = []
    causes: list[Any] = []
    assert PRUNE(obj, "", dropped) is obj
    assert dropped == []
    assert DEFAULT(obj) is obj
    VALIDATE({k: v for k, v in obj.items() if k != "metadata"}, correlate.MISSING, "", causes)
    EMBEDDED(obj, "", causes)
    assert causes == []


def test_the_fast_path_does_say_yes():
    spec = {"size": 2, "mode": "b", "sub": {"x": 1}, "map": [{"k": "a", "v": "b"}], "time": "2026-01-01T00:00:00Z"}
    assert PROVED(a_widget({**spec, "nullable": None, "port": "http", "labels": {"a": "b"}, "one": {"a": 1}}))
