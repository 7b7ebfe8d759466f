"""Uniqueness in lists with list-type set and map, and the form of embedded resources.

Source: pkg/apiserver/schema/{listtype,objectmeta}/validation.go of k8s.io/apiextensions-apiserver.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import orjson

from capi.kube import validation
from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.schema import causes

Check: TypeAlias = Callable[[Any, str, list[Cause]], None]


def list_checker(schema: Object) -> Check | None:
    """Duplicates in sets and maps anywhere below; None when the schema has neither."""
    return _walker(schema, _list_check)


def embedded_checker(schema: Object) -> Check | None:
    """Embedded resources anywhere below."""
    return _walker(schema, _embedded_check)


def _walker(schema: Object, here: Callable[[Object], Check | None]) -> Check | None:
    """Runs `here`'s check at every node that has one; parts of the schema without any are not entered."""
    own = here(schema)
    properties = {k: w for k, child in (schema.get("properties") or {}).items() if (w := _walker(child, here))}
    additional, items = schema.get("additionalProperties"), schema.get("items")
    others = _walker(additional, here) if isinstance(additional, dict) else None
    each = _walker(items, here) if isinstance(items, dict) else None
    if not (own or properties or others or each):
        return None
    declared = frozenset(schema.get("properties") or ())

    def walk(value: Any, path: str, found: list[Cause]) -> None:
        if own is not None:
            own(value, path, found)
        if isinstance(value, dict):
            for name, below in properties.items():
                if name in value:
                    below(value[name], f"{path}.{name}" if path else name, found)
            for name, child in value.items() if others else ():
                if name not in declared and others is not None:
                    others(child, f"{path}[{name}]", found)
        elif isinstance(value, list) and each is not None:
            for index, child in enumerate(value):
                each(child, f"{path}[{index}]", found)

    return walk


def _list_check(schema: Object) -> Check | None:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return None
    names = tuple(schema.get("x-kubernetes-list-map-keys") or ())

    def check(value: Any, path: str, found: list[Cause]) -> None:
        if not isinstance(value, list) or _surely_unique(value, names):
            return
        if kind == "set":
            keys = value
        else:
            odd = next((i for i, item in enumerate(value) if item is not None and not isinstance(item, dict)), None)
            if odd is not None:
                text = "must be an object for an array of list-type map"
                found.append(causes.invalid(f"{path}[{odd}]", value[odd], text))
                return
            keys = [{name: item[name] for name in names if name in item} for item in (i or {} for i in value)]
        found += [causes.duplicate(f"{path}[{index}]", keys[index]) for index in _repeated(keys)]

    return check


def _surely_unique(value: list[Any], names: tuple[str, ...]) -> bool:
    """The common case at the price of one set; False means nothing."""
    try:
        keys = {tuple([item[name] for name in names]) for item in value} if names else set(value)
    except (TypeError, KeyError):
        return False
    return len(keys) == len(value)


def _repeated(keys: Iterable[Any]) -> list[int]:
    """Index of the second appearance of each repeated value."""
    seen: dict[bytes, int] = {}
    again: list[int] = []
    for index, key in enumerate(keys):
        text = orjson.dumps(key, option=orjson.OPT_SORT_KEYS)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            again.append(index)
    return again


def _embedded_check(schema: Object) -> Check | None:
    return _embedded if schema.get("x-kubernetes-embedded-resource") else None


def _embedded(value: Any, path: str, found: list[Cause]) -> None:
    if not isinstance(value, dict):
        return
    for name in ("apiVersion", "kind"):
        if name not in value:
            found.append(causes.required(f"{path}.{name}"))
        elif not isinstance(value[name], str):
            found.append(causes.invalid(f"{path}.{name}", value[name], "must be a string"))
        elif not value[name]:
            found.append(causes.invalid(f"{path}.{name}", "", "must not be empty"))
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        found.append(causes.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    if isinstance(kind, str) and kind and (wrong := validation.dns_1035_label(kind.lower())):
        text = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
        found.append(causes.invalid(f"{path}.kind", kind, text))
    if "metadata" in value and not isinstance(value["metadata"], dict):
        found.append(causes.invalid(f"{path}.metadata", value["metadata"], "must be an object"))
