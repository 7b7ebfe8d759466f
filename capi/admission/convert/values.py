"""Conversion of single values: references, durations, absent members. Pure.

Source: upstream api/core/v1beta1/conversion.go; the rules that hold for all kinds.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeAlias

from capi.kube import duration
from capi.kube.types import GroupKind, Object

ApiVersions: TypeAlias = Callable[[GroupKind], str]
"""The apiVersion by which objects of a kind are referred to, by the contract labels of its CRD."""
FALLBACK = "v1beta1"


def by_group(kind: GroupKind) -> str:
    """For kinds whose CRD nobody looks up: only the group of an apiVersion means anything on the way back."""
    return f"{kind.group}/{FALLBACK}" if kind.group else "v1"


_INT32 = 2**31 - 1


def kept(**members: Any) -> Object:
    """The members that are set: absent ones are None, and so are empty strings and containers of old optional members."""
    return {name: value for name, value in members.items() if value not in (None, "", {}, [])}


def moved(source: Object, names: Mapping[str, str]) -> Object:
    """Members under other names; absent ones stay absent."""
    return {new: source[old] for old, new in names.items() if source.get(old) is not None}


def without(source: Object, *names: str) -> Object:
    return {key: value for key, value in source.items() if key not in names}


def reference_down(ref: Object | None, namespace: str, versions: ApiVersions) -> Object:
    """apiGroup, kind, name as an ObjectReference; {} for none."""
    if not ref:
        return {}
    kind = GroupKind(str(ref.get("apiGroup") or ""), str(ref.get("kind") or ""))
    found = {"apiVersion": versions(kind), "kind": kind.kind, "name": ref.get("name") or ""}
    return {**found, "namespace": namespace} if namespace else found


def reference_up(ref: Object | None) -> Object | None:
    """An ObjectReference as apiGroup, kind, name: everything else of it is given up. None for an empty one."""
    if not ref or not (ref.get("kind") or ref.get("name") or ref.get("apiVersion")):
        return None
    group, slash, _ = str(ref.get("apiVersion") or "").partition("/")
    return {"apiGroup": group if slash else "", "kind": ref.get("kind") or "", "name": ref.get("name") or ""}


def duration_down(seconds: int | None) -> str | None:
    """Seconds in Go's spelling."""
    return None if seconds is None else duration.format(timedelta(seconds=seconds))


def duration_up(text: str | None) -> int | None:
    """Whole seconds, cut towards zero, at most what 32 bits hold. Raises ValueError for what is no duration."""
    return None if text is None else min(_INT32, int(duration.parse(text).total_seconds()))


def conditions_down(status: Object, **more: Any) -> Object:
    """`status.v1beta2` of an old object: the new conditions, and what else is new; {} if there is none of it."""
    found = kept(conditions=status.get("conditions"))
    return {**found, **{name: value for name, value in more.items() if value is not None}}


def deprecated(status: Object) -> Object:
    """`status.deprecated.v1beta1`."""
    found = (status.get("deprecated") or {}).get("v1beta1")
    return found if isinstance(found, dict) else {}


def true_or_none(value: Any) -> bool | None:
    """An old bool: false was never told apart from unset."""
    return True if value else None


def endpoint_down(endpoint: Object | None) -> Object:
    """An old endpoint is always there; "" and 0 are unset."""
    endpoint = endpoint or {}
    return {"host": endpoint.get("host") or "", "port": endpoint.get("port") or 0}


def endpoint_up(endpoint: Object | None) -> Object:
    """Empty if there is nothing in it."""
    endpoint = endpoint or {}
    return kept(host=endpoint.get("host"), port=endpoint.get("port") or None)


def domains_down(domains: list[Object] | None) -> Object:
    """Failure domains by name."""
    return {
        domain["name"]: {"controlPlane": bool(domain.get("controlPlane")), **kept(attributes=domain.get("attributes"))}
        for domain in domains or ()
    }


def domains_up(domains: Object | None) -> list[Object]:
    """Failure domains as a list, sorted by name."""
    return [
        {"name": name, "controlPlane": bool(domain.get("controlPlane")), **kept(attributes=domain.get("attributes"))}
        for name, domain in sorted((domains or {}).items())
    ]
