"""Defaults of objects in v1beta1: the rules are those of v1beta2. Pure."""

from collections.abc import Callable
from typing import Any

from capi.admission.convert.kinds import convert, hub_of, old_of
from capi.admission.convert.preserve import data_of
from capi.admission.convert.values import by_group
from capi.kube.errors import BadRequest
from capi.kube.types import Object

Default = Callable[[Object, Object | None], Object]


def default_old(obj: Object, old: Object | None, default: Default) -> Object:
    """`obj` with what `default` fills in, and nothing else of it changed; `obj` itself if that is nothing.

    What cannot be converted is left to its schema, which names the field.
    """
    try:
        hub = convert(obj, hub_of(obj), by_group)
        before = convert(old, hub_of(old), by_group) if old is not None else None
    except BadRequest:
        return obj
    filled = default(hub, before)
    if filled is hub:
        return obj
    shown, wanted = (data_of(convert(each, old_of(obj), by_group))[0] for each in (hub, filled))
    result: Object = _overlaid(obj, shown, wanted)
    return result


def _overlaid(obj: Any, shown: Any, wanted: Any) -> Any:
    """`obj` with the members that `wanted` has and `shown` has not.

    What was not written at all comes whole: an old endpoint with a port needs its host, be it empty.
    """
    if not isinstance(wanted, dict):
        return wanted
    was, result = shown if isinstance(shown, dict) else {}, dict(obj) if isinstance(obj, dict) else {}
    for key, value in wanted.items():
        if value != was.get(key):
            result[key] = _overlaid(result[key], was.get(key), value) if key in result else value
    return result
