"""Validation of values by a structural schema, with Kubernetes' causes and validation ratcheting.

A failure is dropped when it lies in a part of the object that did not change (see `correlate`).

Source: k8s.io/kube-openapi/pkg/validation/{validate,errors}, pkg/apiserver/validation/{validation,ratcheting}.go of
k8s.io/apiextensions-apiserver. As there, bounds of numeric formats (int32) are not checked for custom resources.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import orjson

from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.schema import causes, correlate, formats, regex
from capi.server.registry.schema.correlate import MISSING

Validate: TypeAlias = Callable[[Any, Any, str, list[Cause]], None]
"""(value, old, path, found): appends what is wrong."""
_Check: TypeAlias = Callable[[Any, str, list[Cause]], None]

_INT64 = 2**63
_EXACT = 2**53 - 1
NOWHERE = "<nil>"
"""The field of causes that concern combinations of schemas, as Kubernetes prints it."""


def json_type(value: Any) -> str:
    """The JSON Schema name of a value's type; integers beyond 64 bits are numbers."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -_INT64 <= value < _INT64 else "number"
    for name, cls in (("string", str), ("object", dict), ("array", list), ("number", float)):
        if isinstance(value, cls):
            return name
    return "null"


def validator(schema: Object) -> Validate:
    """The checks of one schema node and all below it."""
    checks = [check for build in _BUILDERS if (check := build(schema)) is not None]
    null_builders = (_enum_check,) if schema.get("nullable") else (_type_check, _enum_check)
    null_checks = [check for build in null_builders if (check := build(schema)) is not None]
    descend = _descent(schema)
    equal = correlate.equality(schema)

    def validate(value: Any, old: Any, path: str, found: list[Cause]) -> None:
        before = len(found)
        for check in null_checks if value is None else checks:
            check(value, path, found)
        if descend is not None:
            descend(value, old, path, found)
        if len(found) > before and old is not MISSING and equal(value, old):
            del found[before:]

    return validate


def _type_check(schema: Object) -> _Check | None:
    if schema.get("x-kubernetes-int-or-string"):
        types: tuple[str, ...] = ("integer", "string")
    elif schema.get("type"):
        types = (str(schema["type"]),)
    else:
        return None
    format_ = str(schema.get("format") or "")
    format_ = format_ if formats.check(format_) else ""
    accepted = {*types, *(("integer",) if "number" in types else ())}

    def check(value: Any, path: str, found: list[Cause]) -> None:
        got = json_type(value)
        if got in accepted:
            return
        if got == "number" and "integer" in types and float(value).is_integer() and abs(value) <= _EXACT:
            return
        wanted = ",".join(types)
        if format_ and got not in ("string", "array", "null"):
            wanted, got = format_, {"integer": "int64", "number": "float64"}.get(got, "")
        found.append(causes.type_invalid(path, got, f"{path} in body must be of type {wanted}: {causes.quoted(got)}"))

    return check


def _string_check(schema: Object) -> _Check | None:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    pattern = str(schema.get("pattern") or "")
    matches = regex.compile(pattern) if pattern else None
    if longest is None and shortest is None and matches is None:
        return None

    def check(value: Any, path: str, found: list[Cause]) -> None:
        if not isinstance(value, str):
            return
        if longest is not None and len(value) > longest:
            found.append(causes.too_long(path, longest))
        elif shortest is not None and len(value) < shortest:
            found.append(causes.invalid(path, value, f"{path} in body should be at least {shortest} chars long"))
        elif matches is not None and not matches(value):
            found.append(causes.invalid(path, value, f"{path} in body should match '{pattern}'"))

    return check


def _format_check(schema: Object) -> _Check | None:
    name = str(schema.get("format") or "")
    valid = formats.check(name)
    if valid is None:
        return None

    def check(value: Any, path: str, found: list[Cause]) -> None:
        if isinstance(value, str) and not valid(value):
            text = f"{path} in body must be of type {name}: {causes.quoted(value)}"
            found.append(causes.type_invalid(path, value, text))

    return check


def _number_check(schema: Object) -> _Check | None:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if low is None and high is None and step is None:
        return None
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))

    def check(value: Any, path: str, found: list[Cause]) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return

        def fail(text: str, bound: float) -> None:
            shown = causes.number(int(bound) if isinstance(value, int) else float(bound))
            found.append(causes.invalid(path, value, f"{path} in body should be {text} {shown}"))

        if step is not None and value / step % 1:
            fail("a multiple of", step)
        if low is not None and (value <= low if above else value < low):
            fail("greater than" if above else "greater than or equal to", low)
        if high is not None and (value >= high if below else value > high):
            fail("less than" if below else "less than or equal to", high)

    return check


def _size_check(schema: Object) -> _Check | None:
    names = ("minItems", "maxItems", "minProperties", "maxProperties")
    low_items, high_items, low_keys, high_keys = (schema.get(name) for name in names)
    unique = bool(schema.get("uniqueItems"))
    if not unique and all(schema.get(name) is None for name in names):
        return None

    def check(value: Any, path: str, found: list[Cause]) -> None:
        if isinstance(value, list):
            low, high, unit = low_items, high_items, "items"
            if unique and any(item in value[:index] for index, item in enumerate(value)):
                found.append(causes.invalid(path, "", f"{path} in body shouldn't contain duplicates"))
        elif isinstance(value, dict):
            low, high, unit = low_keys, high_keys, "properties"
        else:
            return
        if low is not None and len(value) < low:
            found.append(causes.invalid(path, len(value), f"{path} in body should have at least {low} {unit}"))
        if high is not None and len(value) > high:
            found.append(causes.too_many(path, len(value), high))

    return check


def _enum_check(schema: Object) -> _Check | None:
    values: Sequence[Any] | None = schema.get("enum")
    if not values:
        return None
    supported = [value if isinstance(value, str) else orjson.dumps(value).decode() for value in values]

    def check(value: Any, path: str, found: list[Cause]) -> None:
        if value is None or not any(_same(value, allowed) for allowed in values):
            found.append(causes.not_supported(path, value, supported))

    return check


def _same(value: Any, allowed: Any) -> bool:
    return bool(value == allowed) and isinstance(value, bool) == isinstance(allowed, bool)


def _combination_check(schema: Object) -> _Check | None:
    """anyOf, oneOf, allOf and not. Of failed alternatives the first one's causes are shown."""
    some, one, every = ([validator(s) for s in schema.get(name) or ()] for name in ("anyOf", "oneOf", "allOf"))
    never = validator(schema["not"]) if schema.get("not") is not None else None
    if not (some or one or every or never):
        return None

    def outcomes(alternatives: Sequence[Validate], value: Any, path: str) -> list[list[Cause]]:
        results: list[list[Cause]] = []
        for alternative in alternatives:
            results.append([])
            alternative(value, MISSING, path, results[-1])
        return results

    def complain(path: str, text: str, found: list[Cause]) -> None:
        found.append(causes.invalid(NOWHERE, "", f"{causes.quoted(path)} {text}"))

    def check(value: Any, path: str, found: list[Cause]) -> None:
        if some and all(results := outcomes(some, value, path)):
            complain(path, "must validate at least one schema (anyOf)", found)
            found += results[0]
        if one and (valid := (results := outcomes(one, value, path)).count([])) != 1:
            state = f"Found {valid} valid alternatives" if valid else "Found none valid"
            complain(path, f"must validate one and only one schema (oneOf). {state}", found)
            found += [] if valid else results[0]
        if every and any(results := outcomes(every, value, path)):
            found += [cause for result in results for cause in result]
            complain(path, f"must validate all the schemas (allOf){'. None validated' if all(results) else ''}", found)
        if never is not None and not outcomes([never], value, path)[0]:
            complain(path, "must not validate the schema (not)", found)

    return check


_BUILDERS = (_type_check, _combination_check, _string_check, _format_check, _number_check, _size_check, _enum_check)


def _descent(schema: Object) -> Validate | None:
    items = schema.get("items")
    properties = {name: validator(child) for name, child in (schema.get("properties") or {}).items()}
    required = tuple(schema.get("required") or ())
    additional = schema.get("additionalProperties")
    others = validator(additional) if isinstance(additional, dict) else None
    each = validator(items) if isinstance(items, dict) else None
    old_items = correlate.items(schema)

    def list_items(value: list[Any], old: Any, path: str, found: list[Cause]) -> None:
        assert each is not None
        find = old_items(old)
        for index, item in enumerate(value):
            each(item, find(item), f"{path}[{index}]", found)

    def members(value: Object, old: Any, path: str, found: list[Cause]) -> None:
        for name, child in value.items():
            below = properties.get(name, others)
            if below is not None:
                below(child, correlate.member(old, name), f"{path}.{name}" if path else name, found)
        missing = (name for name in required if name not in value)
        found += [causes.required(f"{path}.{name}" if path else name) for name in missing]

    def descend(value: Any, old: Any, path: str, found: list[Cause]) -> None:
        if isinstance(value, dict):
            members(value, old, path, found)
        elif isinstance(value, list) and each is not None:
            list_items(value, old, path, found)

    return descend if properties or required or others or each else None
