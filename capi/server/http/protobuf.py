"""Protobuf request bodies, as far as kubectl and Go managers need them: what `create namespace|configmap|secret`, `drain` and
`auth can-i` send, and the leases and events of managers.

A body is the bytes `k8s\\0` and a runtime.Unknown that names the kind and holds its message. `MESSAGES` is the table the
decoder works from; kinds outside it are refused with a clear 415. Answers are never protobuf: every client takes JSON.

Source: kubernetes.io/docs/reference/using-api/api-concepts (protobuf encoding), k8s.io/api/*/generated.proto (field numbers).
"""

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from capi.kube import times
from capi.kube.errors import BadRequest, UnsupportedMediaType
from capi.kube.types import Json, Object

MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Fields: TypeAlias = "dict[int, tuple[str, str]]"
"""Field number → JSON name and type: string, bytes, bool, int (dropped when 0), int? (kept), time, microtime, a message's name;
with a trailing `*` repeated, with a leading `%` a map from strings."""

_META: Fields = {1: ("metadata", "ObjectMeta")}
MESSAGES: dict[str, Fields] = {
    "ObjectMeta": {
        1: ("name", "string"), 2: ("generateName", "string"), 3: ("namespace", "string"), 5: ("uid", "string"),
        6: ("resourceVersion", "string"), 7: ("generation", "int"), 8: ("creationTimestamp", "time"),
        9: ("deletionTimestamp", "time"), 10: ("deletionGracePeriodSeconds", "int?"), 11: ("labels", "%string"),
        12: ("annotations", "%string"), 13: ("ownerReferences", "OwnerReference*"), 14: ("finalizers", "string*"),
    },
    "OwnerReference": {
        5: ("apiVersion", "string"), 1: ("kind", "string"), 3: ("name", "string"), 4: ("uid", "string"),
        6: ("controller", "bool"), 7: ("blockOwnerDeletion", "bool"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
    "v1.DeleteOptions": {
        1: ("gracePeriodSeconds", "int?"), 2: ("preconditions", "Preconditions"), 3: ("orphanDependents", "bool"),
        4: ("propagationPolicy", "string"), 5: ("dryRun", "string*"),
    },
    "v1.Namespace": {**_META, 2: ("spec", "NamespaceSpec"), 3: ("status", "NamespaceStatus")},
    "NamespaceSpec": {1: ("finalizers", "string*")},
    "NamespaceStatus": {1: ("phase", "string")},
    "v1.ConfigMap": {**_META, 4: ("immutable", "bool"), 2: ("data", "%string"), 3: ("binaryData", "%bytes")},
    "v1.Secret": {**_META, 5: ("immutable", "bool"), 2: ("data", "%bytes"), 4: ("stringData", "%string"), 3: ("type", "string")},
    "coordination.k8s.io/v1.Lease": {**_META, 2: ("spec", "LeaseSpec")},
    "LeaseSpec": {
        1: ("holderIdentity", "string"), 2: ("leaseDurationSeconds", "int?"), 3: ("acquireTime", "microtime"),
        4: ("renewTime", "microtime"), 5: ("leaseTransitions", "int?"), 6: ("strategy", "string"),
        7: ("preferredHolder", "string"),
    },
    "v1.Event": {
        **_META, 2: ("involvedObject", "ObjectReference"), 3: ("reason", "string"), 4: ("message", "string"),
        5: ("source", "EventSource"), 6: ("firstTimestamp", "time"), 7: ("lastTimestamp", "time"), 8: ("count", "int"),
        9: ("type", "string"), 10: ("eventTime", "microtime"), 11: ("series", "EventSeries"), 12: ("action", "string"),
        13: ("related", "ObjectReference"), 14: ("reportingComponent", "string"), 15: ("reportingInstance", "string"),
    },
    "events.k8s.io/v1.Event": {
        **_META, 2: ("eventTime", "microtime"), 3: ("series", "EventSeries"), 4: ("reportingController", "string"),
        5: ("reportingInstance", "string"), 6: ("action", "string"), 7: ("reason", "string"),
        8: ("regarding", "ObjectReference"), 9: ("related", "ObjectReference"), 10: ("note", "string"),
        11: ("type", "string"), 12: ("deprecatedSource", "EventSource"), 13: ("deprecatedFirstTimestamp", "time"),
        14: ("deprecatedLastTimestamp", "time"), 15: ("deprecatedCount", "int"),
    },
    "EventSource": {1: ("component", "string"), 2: ("host", "string")},
    "EventSeries": {1: ("count", "int"), 2: ("lastObservedTime", "microtime")},
    "ObjectReference": {
        1: ("kind", "string"), 2: ("namespace", "string"), 3: ("name", "string"), 4: ("uid", "string"),
        5: ("apiVersion", "string"), 6: ("resourceVersion", "string"), 7: ("fieldPath", "string"),
    },
    "policy/v1.Eviction": {**_META, 2: ("deleteOptions", "v1.DeleteOptions")},
    "authorization.k8s.io/v1.SelfSubjectAccessReview": {**_META, 2: ("spec", "SelfSubjectAccessReviewSpec")},
    "SelfSubjectAccessReviewSpec": {1: ("resourceAttributes", "ResourceAttributes"), 2: ("nonResourceAttributes", "NonResourceAttributes")},
    "ResourceAttributes": {
        1: ("namespace", "string"), 2: ("verb", "string"), 3: ("group", "string"), 4: ("version", "string"),
        5: ("resource", "string"), 6: ("subresource", "string"), 7: ("name", "string"),
    },
    "NonResourceAttributes": {1: ("path", "string"), 2: ("verb", "string")},
    "authorization.k8s.io/v1.SelfSubjectRulesReview": {**_META, 2: ("spec", "SelfSubjectRulesReviewSpec")},
    "SelfSubjectRulesReviewSpec": {1: ("namespace", "string")},
    "authentication.k8s.io/v1.SelfSubjectReview": _META,
}  # fmt: skip
_KINDS = frozenset(name for name in MESSAGES if "." in name)


def decode(body: bytes) -> Object:
    """The JSON form of a protobuf body. Raises BadRequest for broken bytes, UnsupportedMediaType for kinds not in the table."""
    if not body.startswith(MAGIC):
        raise BadRequest("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        api_version, kind, raw = _unknown(body[len(MAGIC) :])
    except (ValueError, IndexError) as error:
        raise BadRequest(f"the protobuf envelope cannot be read: {error}") from None
    message = f"{api_version}.{kind}"
    if message not in _KINDS:
        known = ", ".join(sorted({name.rpartition(".")[2] for name in _KINDS}))
        raise UnsupportedMediaType(
            f"a {kind or 'body'} of {api_version or 'no version'} cannot be read from protobuf yet - accepted media types include: "
            f"application/json, application/yaml (protobuf only for {known})"
        )
    try:
        return {"apiVersion": api_version, "kind": kind, **_message(raw, MESSAGES[message])}
    except (ValueError, IndexError, OverflowError) as error:
        raise BadRequest(f"{kind} in version {api_version!r} cannot be read: {error}") from None


def _unknown(data: bytes) -> tuple[str, str, bytes]:
    """runtime.Unknown: apiVersion, kind and the raw message."""
    api_version = kind = ""
    raw = b""
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            names = {inner: text.decode("utf-8") for inner, text in _fields(value) if isinstance(text, bytes)}
            api_version, kind = names.get(1, ""), names.get(2, "")
        elif number == 2 and isinstance(value, bytes):
            raw = value
    return api_version, kind, raw


def _message(data: bytes, fields: Fields) -> Object:
    found: Object = {}
    for number, value in _fields(data):
        if number not in fields:
            continue
        name, kind = fields[number]
        if kind.startswith("%"):
            key, item = _entry(value, kind[1:])
            found.setdefault(name, {})[key] = item
        elif kind.endswith("*"):
            found.setdefault(name, []).append(_value(value, kind[:-1]))
        elif (item := _value(value, kind)) is not None:
            found[name] = item
    return found


def _entry(value: "int | bytes", kind: str) -> tuple[str, Json]:
    pair = dict(_fields(_bytes(value)))
    item = _value(pair.get(2, b""), kind)
    return _bytes(pair.get(1, b"")).decode("utf-8"), "" if item is None else item


def _value(value: "int | bytes", kind: str) -> Json:
    """None = the Go zero value, which JSON leaves out."""
    if kind == "string":
        return _bytes(value).decode("utf-8") or None
    if kind == "bytes":
        return base64.b64encode(_bytes(value)).decode("ascii")
    if kind in ("time", "microtime"):
        return _time(_bytes(value), times.format if kind == "time" else times.format_micro)
    if kind in MESSAGES:
        return _message(_bytes(value), MESSAGES[kind])
    number = _int(value)
    if kind == "bool":
        return bool(number)
    return number if number or kind == "int?" else None


def _time(data: bytes, form: Callable[[datetime], str]) -> str | None:
    """meta/v1.Timestamp: seconds and nanoseconds; None for Go's zero time, which is sent empty."""
    parts = dict(_fields(data))
    seconds, nanos = _int(parts.get(1, 0)), _int(parts.get(2, 0))
    return form(_EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)) if seconds else None


def _bytes(value: "int | bytes") -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a string or message belongs")
    return value


def _int(value: "int | bytes") -> int:
    if isinstance(value, bytes):
        raise ValueError("a string where a number belongs")
    return value - (1 << 64) if value >= 1 << 63 else value


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and values: ints of varint and fixed types, bytes of the rest. Raises ValueError."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size, at = _varint(data, at) if wire == 2 else ({1: 8, 5: 4}.get(wire, -1), at)
        if size < 0 or at + size > len(data):
            raise ValueError("truncated or unknown field")
        piece = data[at : at + size]
        at += size
        yield number, piece if wire == 2 else int.from_bytes(piece, "little")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("truncated number")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
