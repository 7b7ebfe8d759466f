"""Bodies of PATCH requests: parsed, checked, and put on an object.

Upstream: apiserver pkg/endpoints/handlers/patch.go.
"""

from typing import Any

import orjson

from capi.kube import json, patch, yaml
from capi.kube.errors import BadRequest, Invalid, RequestEntityTooLarge, UnsupportedMediaType
from capi.kube.types import Object
from capi.server.registry.interface import PatchType
from capi.server.registry.schema import causes
from capi.server.registry.target import Target

_MAX_OPERATIONS = 10_000


def patched(current: Object, patch_type: PatchType, body: bytes, *, schema: Object) -> Object:
    """`current` after the patch; `current` itself if nothing changes. Raises BadRequest, Invalid or what `kube.patch` says."""
    parsed = _json(body)
    if patch_type == "application/json-patch+json":
        if not isinstance(parsed, list):
            raise BadRequest("error decoding patch: json: a JSON patch is a list of operations")
        if len(parsed) > _MAX_OPERATIONS:
            raise RequestEntityTooLarge(
                f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(parsed)}"
            )
        return _object(_bounded(patch.json_patch(current, parsed)))
    if not isinstance(parsed, dict):
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {type(parsed).__name__} into Go value of type map[string]interface {{}}"
        )
    if patch_type == "application/merge-patch+json":
        return _object(patch.merge(current, parsed))
    if patch_type == "application/strategic-merge-patch+json":
        return _object(patch.strategic(current, parsed, schema))
    raise UnsupportedMediaType(f"the body of the request was in an unknown format: {patch_type}")


def _json(body: bytes) -> Any:
    try:
        return json.load(body)
    except ValueError as error:
        raise BadRequest(f"error decoding patch: {error}") from None


def _bounded(result: Any) -> Any:
    """Operations may nest what the objects and the patch alone do not."""
    try:
        json.check_depth(result)
    except ValueError as error:
        raise Invalid(f"the patched object is {error}") from None
    return result


def _object(result: Any) -> Object:
    if not isinstance(result, dict):
        raise Invalid("the server rejected our request due to an error in our request")
    return result


def parse_apply(body: bytes) -> Object:
    """An apply configuration: JSON, or else YAML. Raises BadRequest."""
    try:
        config = json.load(body)
    except orjson.JSONDecodeError:
        try:
            config = yaml.load(body)
        except BadRequest as error:
            raise BadRequest(f"error decoding YAML: {error.message}") from error
    except ValueError as error:
        raise BadRequest(f"error decoding patch: {error}") from None
    if not isinstance(config, dict):
        raise BadRequest("error decoding YAML: the apply configuration is not an object")
    return config


def check_apply(target: Target, config: Object) -> None:
    """What an apply configuration must and must not say about itself. Raises BadRequest or Invalid."""
    kind = target.served.type
    if not target.options.field_manager:
        cause = causes.required("fieldManager", "is required for apply patch")
        text = f'PatchOptions.meta.k8s.io "" is invalid: fieldManager: {cause.message}'
        raise Invalid(text, group="meta.k8s.io", kind="PatchOptions", causes=[cause])
    meta = config.get("metadata") or {}
    if not isinstance(meta, dict):
        raise BadRequest("metadata must be an object")
    if meta.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    for member, wanted in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        sent = config.get(member)
        if not sent:
            raise BadRequest(f"Object '{member.capitalize()}' is missing in the apply configuration")
        if sent != wanted:
            raise BadRequest(f"the {member} in the data ({sent}) does not match the expected {member} ({wanted})")
    if (name := meta.get("name")) and name != target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if (space := meta.get("namespace")) and kind.namespaced and space != target.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
