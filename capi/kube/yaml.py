"""YAML as Kubernetes reads it: YAML 1.1 booleans (`no`, `on`), but dates and `12:30` stay strings, and keys are strings.

Source: sigs.k8s.io/yaml (YAML is converted to JSON first, and JSON has neither dates nor base 60).
"""

import math
import re
from typing import Any

import yaml

from capi.kube import json
from capi.kube.errors import BadRequest
from capi.kube.types import Json

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MORE_NODES = 100_000
_FLOAT = re.compile(
    r"^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_INT = re.compile(r"^(?:[-+]?0b[0-1_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?0o?[0-7_]+|[-+]?(?:0|[1-9][0-9_]*))$")


class _Loader(_Base):  # type: ignore[misc]  # the C loader's class is untyped
    """CSafeLoader without timestamps and sexagesimal numbers, and with duplicate keys refused."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in ("timestamp", "int", "float")]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
_NUMBERS = (("tag:yaml.org,2002:int", _INT, "-+0123456789"), ("tag:yaml.org,2002:float", _FLOAT, "-+0123456789."))
for _name, _pattern, _first in _NUMBERS:
    _Loader.add_implicit_resolver(_name, _pattern, list(_first))


def _mapping(loader: Any, node: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if key_node.tag == _MERGE:
            for source in _sources(loader, value_node):
                merged = {**source, **merged}  # the earlier source wins
            continue
        key = _key(loader.construct_object(key_node, deep=True), key_node)
        if key in out:
            raise _error(f'key "{key}" already set in map', key_node)
        out[key] = loader.construct_object(value_node, deep=True)
    return {**merged, **out}


def _key(key: Json, node: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        return "null"
    if not isinstance(key, str | int | float):
        raise _error("a key must be a string", node)
    return str(key)


def _sources(loader: Any, node: Any) -> list[dict[str, Any]]:
    """What `<<` merges in: a mapping or a list of mappings."""
    value = loader.construct_object(node, deep=True)
    sources = value if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise _error("expected a mapping or a list of mappings to merge", node)
    return sources


def _number(loader: Any, node: Any) -> float:
    value = float(loader.construct_yaml_float(node))
    if not math.isfinite(value):
        raise _error(f"{node.value} is no JSON number", node)
    return value


def _whole(loader: Any, node: Any) -> int | float:
    value = int(loader.construct_yaml_int(node))
    return value if -(2**63) <= value < 2**64 else float(value)


def _unknown(loader: Any, node: Any) -> Any:
    raise _error(f"the tag {node.tag} has no place in an API object", node)


def _error(text: str, node: Any) -> Exception:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


_MERGE = "tag:yaml.org,2002:merge"
_Loader.yaml_constructors = {
    f"tag:yaml.org,2002:{name}": _Base.yaml_constructors[f"tag:yaml.org,2002:{name}"]
    for name in ("null", "bool", "str", "seq")
}
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
for _tag in (_MERGE, "tag:yaml.org,2002:value"):  # the scalars `<<` and `=` where they are no key of a mapping
    _Loader.add_constructor(_tag, _Base.construct_yaml_str)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)
_Loader.add_constructor("tag:yaml.org,2002:int", _whole)
_Loader.add_constructor(None, _unknown)


def _bounded(document: Json, length: int) -> Json:
    """Refuses what aliases blow up: the written-out document may hold a node per byte of the text, and some more."""
    if not isinstance(document, dict | list):
        return document
    left, level = length + _MORE_NODES, [document]
    for _ in range(json.MAX_DEPTH):
        below: list[Json] = []
        for parent in level:
            children = parent.values() if isinstance(parent, dict) else parent
            below += (child for child in children if isinstance(child, dict | list))
            left -= len(children)
            if left < 0:
                raise ValueError("its aliases stand for too much")
        level = below
        if not level:
            return document
    raise ValueError(json.TOO_DEEP)


def load_all(text: str | bytes) -> list[Json]:
    """All documents of a stream, empty ones left out. Raises BadRequest that says line and column."""
    try:
        documents = [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
        return [_bounded(document, len(text)) for document in documents]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise BadRequest(f"not YAML: {where}{error.problem or error.context}") from error
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise BadRequest(f"not YAML: {error}") from error


def load(text: str | bytes) -> Json:
    """The one document of `text`; None if it is empty. Raises BadRequest."""
    documents = load_all(text)
    if len(documents) > 1:
        raise BadRequest(f"expected one YAML document, found {len(documents)}")
    return documents[0] if documents else None


def dump(value: Json) -> str:
    """Block style, insertion order, no aliases."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


class _Dumper(yaml.SafeDumper):
    """Quotes texts that `_Loader`, or another reader, takes for numbers: PyYAML's own rules know neither 1e3 nor 0o7."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _name, _pattern, _first in _NUMBERS:
    _Dumper.add_implicit_resolver(_name, _pattern, list(_first))
