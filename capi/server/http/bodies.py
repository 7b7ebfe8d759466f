"""Request bodies → parsed objects: JSON, YAML, and what repeated keys were found on the way.

Protobuf bodies pass through `protobuf.decode`, which knows the messages of its table and refuses the rest with 415.
"""

import json
from typing import Any

from capi.kube import json as kube_json
from capi.kube import yaml
from capi.kube.errors import BadRequest, UnsupportedMediaType
from capi.kube.messages import Request
from capi.kube.types import Json, Object, ResourceType
from capi.server.http import formats, protobuf
from capi.server.registry import forms

_ACCEPTED = f"{formats.JSON}, {formats.YAML}"


def decode(request: Request, kind: ResourceType, *, builtin: bool = True) -> Object:
    """The object in the body. For built-in kinds apiVersion and kind come from `kind` where the body has none.

    Raises BadRequest for what is no object of that kind, UnsupportedMediaType for other media types.
    """
    value = _decode(request)
    if not isinstance(value, dict):
        raise BadRequest(_unrecognized(kind.kind, f"json: cannot unmarshal {_go_type(value)} into Go value"))
    given, version = value.get("kind"), value.get("apiVersion")
    if given and given != kind.kind:
        raise BadRequest(_wrong_kind(kind, str(given)))
    if not builtin and not (given and version):
        missing = "apiVersion" if given else "Kind"
        text = request.body[:256].decode("utf-8", "replace")
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {kind.kind}): Object '{missing}' is missing in '{text}'"
        )
    if given is None or version is None:
        return {"apiVersion": version or kind.api_version, "kind": kind.kind, **_without(value, "apiVersion", "kind")}
    return value


def decode_any(request: Request) -> Object:
    """The object in the body, of whatever kind. Raises BadRequest."""
    value = _decode(request)
    if not isinstance(value, dict):
        raise BadRequest(_unrecognized("", f"json: cannot unmarshal {_go_type(value)} into Go value"))
    return value


def decode_options(request: Request) -> Object | None:
    """A DeleteOptions body; None if there is none. Raises BadRequest."""
    if not request.body.strip():
        return None
    value = _decode(request)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadRequest(f"json: cannot unmarshal {_go_type(value)} into Go value of type v1.DeleteOptions")
    forms.check(forms.DeleteOptions, value, "v1")
    return value or None


def duplicates(body: bytes, content_type: str) -> list[str]:
    """Paths of keys that occur twice in one JSON object, e.g. `data.a`. YAML refuses them when it is decoded."""
    if formats.media_type(content_type) != formats.JSON:
        return []
    seen = False

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal seen
        found = dict(pairs)
        seen = seen or len(found) != len(pairs)
        return found

    json.loads(body, object_pairs_hook=collect)
    return _duplicate_paths(body) if seen else []


def _decode(request: Request) -> Json:
    media = formats.media_type(request.headers.get("content-type", ""))
    if media == formats.JSON:
        try:
            return kube_json.load(request.body)
        except ValueError as error:
            raise BadRequest(_unrecognized("", f"json parse error: {error}")) from None
    if media == formats.YAML:
        return yaml.load(request.body)
    if media == formats.PROTOBUF:
        return protobuf.decode(request.body)
    raise UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {_ACCEPTED}"
    )


def _duplicate_paths(body: bytes) -> list[str]:
    """Walks the pairs again, this time with positions; only for bodies known to have duplicates."""
    paths: list[str] = []

    def walk(value: Any, path: str) -> None:
        if isinstance(value, _Pairs):
            names = [name for name, _ in value]
            for name, child in value:
                inner = f"{path}.{name}" if path else name
                if names.count(name) > 1 and inner not in paths:
                    paths.append(inner)
                walk(child, inner)
        elif isinstance(value, list):
            for index, child in enumerate(value):
                walk(child, f"{path}[{index}]")

    walk(json.loads(body, object_pairs_hook=_Pairs), "")
    return paths


class _Pairs(list[tuple[str, Any]]):
    """A JSON object that keeps repeated keys."""


def _without(value: Object, *names: str) -> Object:
    return {key: child for key, child in value.items() if key not in names}


def _unrecognized(kind: str, text: str) -> str:
    of = f" (must be of type {kind})" if kind else ""
    return f"the object provided is unrecognized{of}: couldn't get version/kind; {text}"


def _wrong_kind(kind: ResourceType, given: str) -> str:
    return f"the object provided is unrecognized (must be of type {kind.kind}): kind {given!r} was sent to {kind.qualified_plural}"


def _go_type(value: Json) -> str:
    return {str: "string", list: "array", bool: "bool", type(None): "null"}.get(type(value), "number")
