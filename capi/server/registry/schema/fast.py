"""The fast path: one JSON Schema whose `True` proves that an object needs nothing done and breaks no value rule.

The strict form of a structural schema forbids what pruning would drop, requires what defaulting would add, refuses
nulls that would be removed and checks every value rule. It may say False for a good object (the slow path then decides),
never True for one that would be changed or refused. Uniqueness by map keys and CEL rules are not part of it.
"""

from collections.abc import Callable
from typing import Any

import jsonschema_rs

from capi.kube.types import Object
from capi.server.registry.schema import formats

Proof = Callable[[Any], bool]

_EXACT = 2**53 - 1
_NEVER: Object = {"not": {}}
_QUANTITY = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(n|u|m|k|[KMGTPE]i?|[eE][+-]?[0-9]{1,2})?$"
_DATE_TIME = (
    r"^[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?Z$"
)
"""Nearly every time there is; calling back into Python for each would cost more than all the rest."""
_PLAIN = ("maxLength", "minLength", "pattern", "enum", "minItems", "maxItems", "minProperties", "maxProperties")


def proof(schema: Object) -> Proof:
    """Compiles the strict form. Raises ValueError when the schema has an invalid pattern."""
    names = _formats(schema)
    try:
        validator = jsonschema_rs.Draft7Validator(
            strict(schema, root=True),
            formats=names,
            validate_formats=True,
            ignore_unknown_formats=True,
            pattern_options=jsonschema_rs.RegexOptions(),
        )
    except jsonschema_rs.ValidationError as error:
        raise ValueError(str(error)) from error
    is_valid: Proof = validator.is_valid
    return is_valid


def _formats(schema: Any) -> dict[str, Callable[[str], bool]]:
    """The checks of all formats a schema names."""
    found: dict[str, Callable[[str], bool]] = {}
    if isinstance(schema, dict):
        name = schema.get("format")
        if isinstance(name, str) and (check := formats.check(name)) is not None:
            found[name] = check
        for child in schema.values():
            found |= _formats(child)
    elif isinstance(schema, list):
        for child in schema:
            found |= _formats(child)
    return found


def strict(schema: Object, root: bool = False) -> Object:
    """The strict form as JSON Schema draft 7."""
    if schema.get("x-kubernetes-embedded-resource"):
        return _NEVER
    if _has_multiples({name: schema.get(name) for name in ("multipleOf", "anyOf", "oneOf", "allOf", "not")}):
        return _NEVER
    form = _values(schema)
    form |= _limits(schema, form)
    kind = schema.get("type")
    if kind == "object":
        form |= _object(schema, root)
    elif kind == "array" and isinstance(schema.get("items"), dict):
        form["items"] = strict(schema["items"])
        if schema.get("x-kubernetes-list-type") == "set":
            form["uniqueItems"] = True
    elif (
        not kind and not schema.get("x-kubernetes-int-or-string") and (schema.get("properties") or schema.get("items"))
    ):
        return _NEVER
    return form


def _types(schema: Object) -> list[str]:
    if schema.get("x-kubernetes-int-or-string"):
        types = ["integer", "string"]
    elif schema.get("type"):
        types = [str(schema["type"])]
    else:
        return []
    return [*types, "null"] if schema.get("nullable") and not schema.get("enum") else types


def _values(schema: Object, exact: bool = False) -> Object:
    """The rules on the value itself; `exact` where saying no to a good value would let a bad one through (`not`)."""
    form: Object = {name: schema[name] for name in _PLAIN if schema.get(name) not in (None, "", [])}
    if types := _types(schema):
        form["type"] = types
    name = str(schema.get("format") or "")
    if name == "date-time" and not exact:
        form["allOf"] = [{"pattern": _DATE_TIME}]
    elif formats.check(name) is not None:
        form["format"] = name
    if schema.get("format") == "quantity":
        form["pattern"] = _QUANTITY
    form |= _bounds(schema)
    if schema.get("uniqueItems"):
        form["uniqueItems"] = True
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            form[name] = [*form.get(name, ()), *(_nested(child) for child in schema[name])]
    if schema.get("not") is not None:
        form["not"] = _nested(schema["not"])
    return form


def _bounds(schema: Object) -> Object:
    pairs = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    return {ex if schema.get(ex) else name: schema[name] for name, ex in pairs if schema.get(name) is not None}


def _limits(schema: Object, form: Object) -> Object:
    """Integers that JSON Schema takes for such but Go does not are left to the slow path."""
    if "integer" not in form.get("type", ()):
        return {}
    limit = 2**31 - 1 if schema.get("format") == "int32" else _EXACT
    low = {} if "minimum" in form or "exclusiveMinimum" in form else {"minimum": -limit}
    high = {} if "maximum" in form or "exclusiveMaximum" in form else {"maximum": limit}
    return low | high


def _has_multiples(schema: Any) -> bool:
    """Whether a schema divides anywhere in its value rules; the two engines round differently."""
    if isinstance(schema, list):
        return any(map(_has_multiples, schema))
    if not isinstance(schema, dict):
        return False
    return schema.get("multipleOf") is not None or any(map(_has_multiples, schema.values()))


def _object(schema: Object, root: bool) -> Object:
    properties: Object = schema.get("properties") or {}
    below = {name: strict(child) for name, child in properties.items()}
    if root:
        below = {"apiVersion": {}, "kind": {}, "metadata": {}} | below
    defaulted = [name for name, child in properties.items() if child.get("default") is not None]
    required = list(dict.fromkeys([*(schema.get("required") or ()), *defaulted]))
    additional = schema.get("additionalProperties")
    others: Any = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or additional is True
    if isinstance(additional, dict):
        others = _NEVER if additional.get("default") is not None else strict(additional)
    form: Object = {"properties": below, "additionalProperties": others}
    return form | {"required": required} if required else form


def _nested(schema: Object) -> Object:
    """A value rule below anyOf, oneOf, allOf or not: nothing is pruned or defaulted there."""
    form = _values(schema, exact=True)
    if schema.get("properties"):
        form["properties"] = {key: _nested(child) for key, child in schema["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            form[name] = _nested(schema[name])
    if schema.get("required"):
        form["required"] = schema["required"]
    return form
