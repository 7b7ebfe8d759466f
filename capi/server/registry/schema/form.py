"""Member types of JSONSchemaProps. What looks into a schema of a CustomResourceDefinition may rely on them.

Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types_jsonschema.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from capi.kube.types import Object


class Rule(msgspec.Struct, rename="camel"):
    """One of x-kubernetes-validations."""

    rule: str | None = None
    message: str | None = None
    message_expression: str | None = None
    reason: str | None = None
    field_path: str | None = None
    optional_old_self: bool | None = None


class Props(msgspec.Struct, rename="camel"):
    """Null stands for absent; members of any type (default, enum's values, example) are left out."""

    description: str | None = None
    type: str | None = None
    format: str | None = None
    title: str | None = None
    maximum: float | None = None
    exclusive_maximum: bool | None = None
    minimum: float | None = None
    exclusive_minimum: bool | None = None
    max_length: int | None = None
    min_length: int | None = None
    pattern: str | None = None
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool | None = None
    multiple_of: float | None = None
    enum: list[Any] | None = None
    max_properties: int | None = None
    min_properties: int | None = None
    required: list[str] | None = None
    items: Props | list[Props] | None = None
    all_of: list[Props] | None = None
    one_of: list[Props] | None = None
    any_of: list[Props] | None = None
    not_: Props | None = msgspec.field(name="not", default=None)
    properties: dict[str, Props] | None = None
    additional_properties: bool | Props | None = None
    nullable: bool | None = None
    preserve: bool | None = msgspec.field(name="x-kubernetes-preserve-unknown-fields", default=None)
    embedded: bool | None = msgspec.field(name="x-kubernetes-embedded-resource", default=None)
    int_or_string: bool | None = msgspec.field(name="x-kubernetes-int-or-string", default=None)
    list_map_keys: list[str] | None = msgspec.field(name="x-kubernetes-list-map-keys", default=None)
    list_type: str | None = msgspec.field(name="x-kubernetes-list-type", default=None)
    map_type: str | None = msgspec.field(name="x-kubernetes-map-type", default=None)
    validations: list[Rule] | None = msgspec.field(name="x-kubernetes-validations", default=None)


def wrong(schema: Object) -> str:
    """What has not the type it must have, with its path in the schema; "" if all is well."""
    try:
        msgspec.convert(schema, Props)
    except msgspec.ValidationError as error:
        return str(error).replace("$.", ".")
    return ""
