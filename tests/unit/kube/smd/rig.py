"""A small kind for tests of structured merge and diff, and builders for it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from capi.kube import smd

T0 = datetime(2026, 1, 1, tzinfo=UTC)
STRING: Any = {"type": "string"}
INTEGER: Any = {"type": "integer"}


def keyed(items: Any, *keys: str) -> Any:
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), "items": items}


def structure(**properties: Any) -> Any:
    return {"type": "object", "properties": properties}


def mapping(values: Any) -> Any:
    return {"type": "object", "additionalProperties": values}


CONDITIONS = keyed(
    structure(type=STRING, status=STRING, lastTransitionTime={"type": "string", "format": "date-time"}), "type"
)
OPENAPI: Any = structure(
    apiVersion=STRING,
    kind=STRING,
    metadata=structure(
        name=STRING,
        namespace=STRING,
        uid=STRING,
        resourceVersion=STRING,
        labels=mapping(STRING),
        annotations=mapping(STRING),
        finalizers={"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        ownerReferences=keyed({**structure(uid=STRING, name=STRING), "x-kubernetes-map-type": "atomic"}, "uid"),
        managedFields={"type": "array", "items": {"type": "object"}},
    ),
    spec=structure(
        size=INTEGER,
        mode=STRING,
        on={"type": "boolean"},
        gmap=mapping(STRING),
        amap={**mapping(STRING), "x-kubernetes-map-type": "atomic"},
        atom={"type": "array", "items": STRING, "x-kubernetes-list-type": "atomic"},
        plain={"type": "array", "items": STRING},
        names={"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        items=keyed(
            structure(
                name=STRING, value=INTEGER, tags={"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}
            ),
            "name",
        ),
        ports=keyed(
            structure(port=INTEGER, protocol={"type": "string", "default": "TCP"}, name=STRING), "port", "protocol"
        ),
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        deep=structure(a=structure(b=INTEGER, c=INTEGER)),
        amount={"x-kubernetes-int-or-string": True},
    ),
    status=structure(phase=STRING, conditions=CONDITIONS),
)
SCHEMA = smd.Schema.of(OPENAPI)


def a_widget(spec: Any = None, status: Any = None, **meta: Any) -> Any:
    body: Any = {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w", **meta}}
    if spec is not None:
        body["spec"] = spec
    if status is not None:
        body["status"] = status
    return body


def apply(
    live: Any, config: Any, manager: str = "m1", *, force: bool = False, subresource: str = "", at: int = 0, **more: Any
) -> Any:
    """Apply at `at` seconds after T0."""
    more = {"schema": SCHEMA, "api_version": "ex.io/v1", "reset": _reset(subresource), **more}
    return smd.apply(
        live, config, manager=manager, subresource=subresource, force=force, now=T0 + timedelta(seconds=at), **more
    )


def update(old: Any, new: Any, manager: str = "u", *, subresource: str = "", at: int = 0, **more: Any) -> Any:
    more = {"schema": SCHEMA, "api_version": "ex.io/v1", "reset": _reset(subresource), **more}
    return smd.update(old, new, manager=manager, subresource=subresource, now=T0 + timedelta(seconds=at), **more)


def _reset(subresource: str) -> smd.Reset:
    return smd.ONLY_STATUS if subresource == "status" else smd.NOT_STATUS


def entries(obj: Any) -> list[Any]:
    return list(obj["metadata"].get("managedFields") or [])


def owned(obj: Any, manager: str, operation: str = "Apply", subresource: str = "") -> Any:
    """FieldsV1 of one entry, None if there is none."""
    return next(
        (
            e["fieldsV1"]
            for e in entries(obj)
            if (e["manager"], e["operation"], e.get("subresource", "")) == (manager, operation, subresource)
        ),
        None,
    )


def bare(obj: Any) -> Any:
    """Without managedFields."""
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
