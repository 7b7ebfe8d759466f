"""YAML as Kubernetes reads it: YAML 1.1 booleans (`no`, `on`), but dates and `12:30` stay strings, and keys are strings.

Source: sigs.k8s.io/yaml (YAML is converted to JSON first, and JSON has neither dates nor base 60).
"""

import re
from typing import Any

import yaml

from capi.kube.errors import BadRequest
from capi.kube.types import Json

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FLOAT = re.compile(
    r"^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9_]+(?:[eE][-+]?[0-9]+)?)$"
)
_INT = re.compile(r"^(?:[-+]?0b[0-1_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?0o?[0-7_]+|[-+]?(?:0|[1-9][0-9_]*))$")


class _Loader(_Base):  # type: ignore[misc]  # the C loader's class is untyped
    """CSafeLoader without timestamps and sexagesimal numbers, and with duplicate keys refused."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in ("timestamp", "int", "float")]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))


def _mapping(loader: Any, node: Any) -> dict[str, Any]:
    loader.flatten_mapping(node)
    out: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, bool):
            key = "true" if key else "false"
        elif key is None:
            key = "null"
        elif not isinstance(key, str | int | float):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a string", key_node.start_mark)
        if str(key) in out:
            raise yaml.constructor.ConstructorError(None, None, f'key "{key}" already set in map', key_node.start_mark)
        out[str(key)] = loader.construct_object(value_node, deep=True)
    return out


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def load_all(text: str | bytes) -> list[Json]:
    """All documents of a stream, empty ones left out. Raises BadRequest that says line and column."""
    try:
        return [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
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
    def ignore_aliases(self, data: Any) -> bool:
        return True
