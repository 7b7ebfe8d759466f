"""Events: one storage, two views. Objects are stored in the core form; events.k8s.io/v1 renames its fields.

Source: pkg/apis/core/validation/events.go, pkg/apis/events/v1/conversion.go, pkg/registry/core/event/strategy.go.
"""

from collections.abc import Iterator

from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.builtin.fields import at, section, text
from capi.server.registry.schema import causes

LIFE = 3600.0
"""Seconds an Event is kept."""
_NEW_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_CORE_NAMES = {core: new for new, core in _NEW_NAMES.items()}
SELECTABLE = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
    "reportingComponent", "source", "type",
)  # fmt: skip
SELECTABLE_NEW = tuple(
    path.replace("involvedObject", "regarding").replace("reportingComponent", "reportingController")
    for path in SELECTABLE
)


def to_core(obj: Object) -> Object:
    """events.k8s.io/v1 → the stored core/v1 form."""
    return {**{_NEW_NAMES.get(k, k): v for k, v in obj.items()}, "apiVersion": "v1"}


def from_core(obj: Object) -> Object:
    """The stored core/v1 form → events.k8s.io/v1."""
    return {**{_CORE_NAMES.get(k, k): v for k, v in obj.items()}, "apiVersion": "events.k8s.io/v1"}


def default(obj: Object) -> Object:
    """Go encodes these structs and fields even when empty."""
    encoded = {"involvedObject": {}, "source": {}, "reportingComponent": "", "reportingInstance": ""}
    missing = {k: v for k, v in encoded.items() if obj.get(k) is None}
    times = {k: None for k in ("firstTimestamp", "lastTimestamp", "eventTime") if k not in obj}
    return {**obj, **missing, **times} if missing or times else obj


def default_new(obj: Object) -> Object:
    """The same through the other view: `eventTime` is always shown."""
    return obj if "eventTime" in obj else {**obj, "eventTime": None}


def field(obj: Object, path: str) -> str:
    """Field selectors: `source` is the reporting component of either generation of clients."""
    if path == "source":
        core = at(obj, "source", "component") or at(obj, "deprecatedSource", "component")
        return str(core or obj.get("reportingComponent") or obj.get("reportingController") or "")
    return text(obj, path)


def validate(obj: Object, old: Object | None) -> list[Cause]:
    """A core/v1 write."""
    return list(_legacy(obj, "reportingComponent", "message"))


def validate_new(obj: Object, old: Object | None) -> list[Cause]:
    """An events.k8s.io/v1 write: strict; causes name the core fields, as Kubernetes' do."""
    core = to_core(obj)
    found = list(_legacy(core, "reportingController", "note")) + list(_series(core))
    if old is not None:
        before = to_core(old)
        members = (*_CORE_NAMES, "reason", "type", "eventTime", "action", "related", "reportingInstance")
        return found + [c for m in members for c in causes.immutable(m, core.get(m), before.get(m))]
    if not core.get("eventTime"):
        found.append(causes.required("eventTime"))
    if (kind := core.get("type")) not in ("Normal", "Warning"):
        found.append(causes.invalid("type", "", f"has invalid value: {kind or ''}"))
    for member in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if core.get(member):
            found.append(causes.invalid(member, "", "needs to be unset"))
    return found


def _series(core: Object) -> Iterator[Cause]:
    if (series := core.get("series")) is None:
        return
    if (series.get("count") or 0) < 2:
        yield causes.invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield causes.required("series.lastObservedTime")


def _legacy(core: Object, controller: str, note: str) -> Iterator[Cause]:
    namespace = at(core, "metadata", "namespace") or ""
    about = section(core, "involvedObject").get("namespace") or ""
    new_style = bool(core.get("eventTime"))
    allowed = {"", "default", "kube-system"} - ({""} if new_style else {"kube-system"})
    matches = namespace in allowed if not about else (new_style or namespace == about)
    if not matches:
        yield causes.invalid("involvedObject.namespace", about, "does not match event.namespace")
    if not new_style:
        return
    for path, member in (
        (controller, "reportingComponent"),
        ("reportingInstance",) * 2,
        ("action",) * 2,
        ("reason",) * 2,
    ):
        if not core.get(member):
            yield causes.required(path)
        elif member != "reportingComponent" and len(core[member]) > 128:
            yield causes.invalid(path, "", "can have at most 128 characters")
    if len(core.get("message") or "") > 1024:
        yield causes.invalid(note, "", "can have at most 1024 characters")
