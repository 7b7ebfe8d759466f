"""Which OpenAPI v3 schemas a CRD may have: structural ones, with sound list types, defaults and validation rules.

Source: pkg/apiserver/schema/validation.go and pkg/apis/apiextensions/validation/validation.go of
k8s.io/apiextensions-apiserver. Not done: the cost estimate of validation rules.
"""

from collections.abc import Iterator
from typing import Any

from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.schema import causes, regex

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_JUNCTORS = ("anyOf", "allOf", "oneOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED = {
    "id": "id is not supported",
    "additionalItems": "additionalItems is not supported",
    "patternProperties": "patternProperties is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "$ref": "$ref is not supported",
}
_NOT_NESTED = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_LEVELS = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def validate(schema: Object, path: str) -> list[Cause]:
    """Everything wrong with a schema's form; rules and defaults are looked at by `definition` once the form is right."""
    return list(_node(schema, path, "root"))


def children(schema: Object) -> Iterator[tuple[str, Object]]:
    """The sub-schemas of a well-formed schema, with the path a CRD's causes name them by."""
    for name, child in (schema.get("properties") or {}).items():
        yield f"properties[{name}]", child
    for name in ("items", "additionalProperties"):
        if isinstance(child := schema.get(name), dict):
            yield name, child


def has_rules(schema: Object) -> bool:
    """Whether there is any validation rule in a well-formed schema."""
    return bool(schema.get("x-kubernetes-validations")) or any(has_rules(child) for _, child in children(schema))


def _node(schema: Any, path: str, level: str) -> Iterator[Cause]:
    if not isinstance(schema, dict):
        yield causes.invalid(path, schema, "must be a schema object")
        return
    yield from _keywords(schema, path)
    yield from _type(schema, path, level)
    yield from _extensions(schema, path)
    yield from _resource(schema, path, level)
    yield from _list_type(schema, path)
    yield from _junctors(schema, path)
    for name, child in (schema.get("properties") or {}).items():
        yield from _node(child, f"{path}.properties[{name}]", "field")
    if isinstance(items := schema.get("items"), dict):
        yield from _node(items, f"{path}.items", "item")
    if isinstance(additional := schema.get("additionalProperties"), dict):
        yield from _node(additional, f"{path}.additionalProperties", "field")


def _keywords(schema: Object, path: str) -> Iterator[Cause]:
    for name, text in _UNSUPPORTED.items():
        if schema.get(name):
            yield causes.forbidden(f"{path}.{name}", text)
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield causes.forbidden(f"{path}.uniqueItems", text)
    if schema.get("additionalProperties") is False:
        yield causes.forbidden(f"{path}.additionalProperties", "additionalProperties cannot be set to false")
    if schema.get("additionalProperties") and schema.get("properties"):
        yield causes.forbidden(
            f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    if isinstance(schema.get("items"), list):
        yield causes.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("type") == "array" and schema.get("items") is None:
        yield causes.required(f"{path}.items", "must be specified")
    yield from _pattern(schema, path)


def _pattern(schema: Object, path: str) -> Iterator[Cause]:
    try:
        regex.compile(str(schema.get("pattern") or ""))
    except ValueError as error:
        text = f"must be a valid regular expression, but isn't: {error}"
        yield causes.invalid(f"{path}.pattern", schema["pattern"], text)


def _type(schema: Object, path: str, level: str) -> Iterator[Cause]:
    kind = schema.get("type") or ""
    if kind == "null":
        yield causes.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    elif kind and kind not in TYPES:
        yield causes.not_supported(f"{path}.type", kind, TYPES)
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    embedded = schema.get("x-kubernetes-embedded-resource")
    if embedded and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield causes.invalid(f"{path}.type", kind, text) if kind else causes.required(f"{path}.type", text)
    elif not kind and not free:
        yield causes.required(f"{path}.type", _LEVELS[level])
    if level == "root" and kind not in ("", "object"):
        yield causes.invalid(f"{path}.type", kind, "must be object at the root")
    if level == "root" and schema.get("nullable"):
        yield causes.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    if level == "root" and schema.get("additionalProperties"):
        yield causes.forbidden(f"{path}.additionalProperties", "must not be used at the root")


def _extensions(schema: Object, path: str) -> Iterator[Cause]:
    preserve = schema.get("x-kubernetes-preserve-unknown-fields")
    if preserve is False:
        yield causes.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                yield causes.invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None and schema.get("type") != "object":
        yield _needs_type(schema, path, "object", "x-kubernetes-map-type")
    if map_type not in (None, "atomic", "granular"):
        yield causes.not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _needs_type(schema: Object, path: str, wanted: str, because: str) -> Cause:
    text = f"must be {wanted} if {because} is specified"
    kind = schema.get("type")
    return causes.invalid(f"{path}.type", kind, text) if kind else causes.required(f"{path}.type", text)


def _resource(schema: Object, path: str, level: str) -> Iterator[Cause]:
    """The root and embedded resources: apiVersion, kind and metadata are what they are everywhere."""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    properties = schema.get("properties") or {}
    if embedded and schema.get("additionalProperties"):
        yield causes.forbidden(
            f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set"
        )
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not properties:
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield causes.required(f"{path}.properties", text)
    if level != "root" and not embedded:
        return
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if name in properties and (kind := (properties[name] or {}).get("type") or "") != wanted:
            text = "must be object" if name == "metadata" else "must be string"
            yield causes.invalid(f"{path}.properties[{name}].type", kind, text)
    meta = properties.get("metadata") or {}
    extra = set(meta) - {"type", "properties", "description"} or set(meta.get("properties") or ()) - {
        "name",
        "generateName",
    }
    if level == "root" and extra:
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield causes.forbidden(f"{path}.properties[metadata]", text)


def _list_type(schema: Object, path: str) -> Iterator[Cause]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    here = f"{path}.x-kubernetes-list-type"
    if kind is not None and schema.get("type") != "array":
        yield _needs_type(schema, path, "array", "x-kubernetes-list-type")
    if kind not in (None, "atomic", "set", "map"):
        yield causes.not_supported(here, kind, ("atomic", "set", "map"))
    if keys and kind != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield causes.required(here, text) if kind is None else causes.invalid(here, kind, text)
    items = schema.get("items") or {}
    if kind in ("set", "map") and items.get("nullable"):
        yield causes.forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {kind}")
    if kind == "set":
        yield from _set_items(items, f"{path}.items")
    if kind == "map":
        yield from _map_items(schema, items, keys, path)


def _set_items(items: Object, path: str) -> Iterator[Cause]:
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
        yield causes.invalid(f"{path}.x-kubernetes-list-type", items["x-kubernetes-list-type"], text)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield causes.invalid(f"{path}.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), text)


def _map_items(schema: Object, items: Object, keys: list[Any], path: str) -> Iterator[Cause]:
    here = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield causes.required(here, "must not be empty if x-kubernetes-list-type is map")
    if not schema.get("items"):
        yield causes.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield causes.invalid(f"{path}.items.type", items.get("type") or "", text)
    properties = items.get("properties") or {}
    if len(set(keys)) < len(keys):
        yield causes.invalid(here, keys, "must not contain duplicate entries")
    for key in dict.fromkeys(keys):
        field = properties.get(key)
        where = f"{path}.items.properties[{key}]"
        if field is None:
            yield causes.invalid(here, keys, "entries must all be names of item properties")
            continue
        if field.get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield causes.invalid(f"{where}.type", field["type"], text)
        named = "this property is in x-kubernetes-list-map-keys, so it"
        if field.get("default") is None and key not in (items.get("required") or ()):
            yield causes.required(f"{where}.default", f"{named} must have a default or be a required property")
        if field.get("nullable"):
            yield causes.forbidden(f"{where}.nullable", f"{named} cannot be nullable")


def _junctors(schema: Object, path: str) -> Iterator[Cause]:
    """Combinations may only restrict values; the pattern that spells int-or-string is let through."""
    for name in _JUNCTORS:
        if name == "anyOf" and schema.get(name) == _INT_OR_STRING:
            continue
        children: list[Object] = schema.get(name) or []
        for index, child in enumerate(children):
            skip = name == "allOf" and index == 0 and child.get("anyOf") == _INT_OR_STRING
            yield from _nested(
                {k: v for k, v in child.items() if k != "anyOf"} if skip else child, f"{path}.{name}[{index}]"
            )
    if schema.get("not") is not None:
        yield from _nested(schema["not"], f"{path}.not")


def _nested(schema: Object, path: str) -> Iterator[Cause]:
    for name, text in _NOT_NESTED.items():
        if schema.get(name):
            yield causes.forbidden(f"{path}.{name}", text)
    properties = schema.get("properties") or {}
    if "metadata" in properties:
        yield causes.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")
    yield from _pattern(schema, path)
    yield from _junctors(schema, path)
    for name, child in properties.items():
        yield from _nested(child, f"{path}.properties[{name}]")
    if isinstance(items := schema.get("items"), dict):
        yield from _nested(items, f"{path}.items")
