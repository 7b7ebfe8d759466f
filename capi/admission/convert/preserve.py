"""What v1beta1 cannot say survives a round trip in an annotation. Pure.

`cluster.x-k8s.io/conversion-data` holds the whole v1beta2 object without its metadata, as upstream writes and reads it. On the
way back each member that the client left as it was shown is what it was; a member that was changed is what the client wrote.
Upstream: util/conversion/conversion.go (MarshalData, UnmarshalData).
Differs: upstream restores a list of members per kind; here that is decided by comparing. Of large objects the lists that
v1beta1 shows as they are (Nodes, providerIDs) are left out: all annotations together may have 256 KiB.
"""

from collections.abc import Callable
from typing import Any

import orjson

from capi.api.core import annotations
from capi.kube.types import Object

LARGE = 64 * 1024
"""Bytes of data from which on lists are left out."""


def with_data(old: Object, hub: Object, up: Callable[[Object], Object]) -> Object:
    """`old` with what `hub` is; `up` converts it back."""
    held = {key: value for key, value in hub.items() if key != "metadata"}
    data = orjson.dumps(held)
    if len(data) > LARGE:
        data = orjson.dumps(_without_lists(held, up(old)))
    return _annotated(old, data.decode())


def _without_lists(held: Object, shown: Object) -> Object:
    """What is held, but for the lists that come back anyway."""
    result: Object = {}
    for key, value in held.items():
        same = shown.get(key)
        if isinstance(value, dict) and isinstance(same, dict):
            result[key] = _without_lists(value, same)
        elif not isinstance(value, list) or value != same:
            result[key] = value
    return result


def _annotated(old: Object, data: str) -> Object:
    metadata = old.get("metadata") or {}
    notes = {**(metadata.get("annotations") or {}), annotations.CONVERSION_DATA: data}
    return {**old, "metadata": {**metadata, "annotations": notes}}


def data_of(old: Object) -> tuple[Object, Object | None]:
    """`old` without the annotation, and what it held; None for none, and for what nobody can read."""
    metadata = old.get("metadata") or {}
    notes = metadata.get("annotations") or {}
    if annotations.CONVERSION_DATA not in notes:
        return old, None
    left = {key: value for key, value in notes.items() if key != annotations.CONVERSION_DATA}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    bare = {**old, "metadata": {**rest, **({"annotations": left} if left else {})}}
    try:
        found = orjson.loads(notes[annotations.CONVERSION_DATA])
    except orjson.JSONDecodeError:
        return bare, None
    return bare, found if isinstance(found, dict) else None


def restored(wrote: Any, shown: Any, held: Any) -> Any:
    """`held` where the client wrote what it was shown (both converted), what it wrote elsewhere."""
    if wrote == shown:
        return held
    if not (isinstance(wrote, dict) and isinstance(shown, dict) and isinstance(held, dict)):
        return wrote
    result = {}
    for key in {**wrote, **held}:
        value = restored(wrote.get(key), shown.get(key), held.get(key))
        if value is not None:
            result[key] = value
    return result
