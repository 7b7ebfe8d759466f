"""A schema with one of everything, and builders over it."""

from typing import Any

from capi.kube.types import Object
from capi.server.registry import crd
from capi.server.registry.schema import compiled as schemas

TEXT: Object = {"type": "string"}
NUMBER: Object = {"type": "integer"}


def an_object(properties: Object, **more: Any) -> Object:
    return {"type": "object", "properties": properties, **more}


def a_rule(rule: str, **more: Any) -> Object:
    return {"x-kubernetes-validations": [{"rule": rule, **more}]}


SPEC = an_object(
    {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "name": {"type": "string", "maxLength": 5, "minLength": 2, "pattern": "^[a-z]+$"},
        "nullable": {"type": "string", "nullable": True},
        "text": TEXT,
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "embedded": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "sub": an_object({"x": {"type": "integer", "default": 7}}, default={}),
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
        "map": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": an_object({"k": TEXT, "v": TEXT, "n": {"type": "integer", "maximum": 5}}, required=["k"]),
        },
        "plain": {"type": "array", "items": NUMBER},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "time": {"type": "string", "format": "date-time"},
        "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "one": {**an_object({"a": NUMBER, "b": NUMBER}), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    },
    required=["size"],
)


def a_schema(spec: Object = SPEC, **more: Any) -> Object:
    status = an_object({"phase": TEXT, "replicas": NUMBER})
    return crd.with_object_meta(an_object({"spec": spec, "status": status}, required=["spec"], **more))


def compiled(spec: Object = SPEC, **more: Any) -> schemas.CompiledSchema:
    return schemas.compile(a_schema(spec, **more))


def a_widget(spec: Any = None, **more: Any) -> Object:
    spec = {"size": 2} if spec is None else spec
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec, **more}
