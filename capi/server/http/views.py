"""How objects are shown: Table rows, PartialObjectMetadata, or as they are.

Source: KEP-2332 (server-side printing), apiextensions-apiserver pkg/registry/customresource/tableconvertor.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

import orjson

from capi.kube import jsonpath
from capi.kube.errors import BadRequest
from capi.kube.types import Json, Object
from capi.server.registry.builtin import ages
from capi.server.registry.interface import Column, Representation, ResourceInfo

META = {"apiVersion": "meta.k8s.io/v1"}
Include = Literal["None", "Metadata", "Object"]
_NAME_TEXT = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to"
    " request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and"
    " configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_AGE = Column(
    "Age",
    "date",
    ".metadata.creationTimestamp",
    description="CreationTimestamp is a timestamp representing the server time when this object was created.",
)


def include_of(option: str) -> Include:
    """The includeObject option. Raises BadRequest."""
    if option in ("", "Metadata"):
        return "Metadata"
    if option == "None":
        return "None"
    if option == "Object":
        return "Object"
    raise BadRequest(f'Invalid value: "{option}": includeObject must be one of None, Metadata, Object')


def partial(obj: Object) -> Object:
    """PartialObjectMetadata of an object."""
    return {"kind": "PartialObjectMetadata", **META, "metadata": obj.get("metadata") or {}}


def partial_list(items: Sequence[Object], metadata: Object) -> Object:
    return {
        "kind": "PartialObjectMetadataList",
        **META,
        "metadata": metadata,
        "items": [partial(item) for item in items],
    }


def scale_info(info: ResourceInfo) -> ResourceInfo:
    """How the scale of a resource is printed."""
    columns = (
        Column("Desired", "integer", ".spec.replicas"),
        Column("Available", "integer", ".status.replicas"),
        _AGE,
    )
    return replace(info, columns=columns, cells=None)


class Tabler:
    """Tables of one resource. Cells are computed for `now()`, because ages are text."""

    def __init__(self, info: ResourceInfo, include: Include, now: Callable[[], datetime]) -> None:
        self._info, self._include, self._now = info, include, now
        self._columns = info.columns or (_AGE,)
        self._named = any(column.name == "Name" for column in self._columns)
        self._cells = [_cell(column) for column in self._columns]

    def definitions(self) -> list[Object]:
        name = [] if self._named else [_definition(Column("Name", "string", "", 0, _NAME_TEXT, "name"))]
        return [*name, *map(_definition, self._columns)]

    def row(self, obj: Object) -> Object:
        now = self._now()
        if self._info.cells is not None and self._info.columns:
            cells = list(self._info.cells(obj, now))
        else:
            cells = [cell(obj, now) for cell in self._cells]
        if not self._named:
            cells.insert(0, obj["metadata"].get("name", ""))
        row: Object = {"cells": cells}
        if self._include == "Object":
            row["object"] = obj
        elif self._include == "Metadata":
            row["object"] = partial(obj)
        return row

    def table(self, items: Sequence[Object], metadata: Object) -> Object:
        rows = [self.row(item) for item in items]
        return {"kind": "Table", **META, "metadata": metadata, "columnDefinitions": self.definitions(), "rows": rows}


class PartialView:
    """Watch events as PartialObjectMetadata. Stateless: share `PARTIAL`."""

    def encode(self, obj: Object, encoded: bytes) -> bytes:
        return orjson.dumps(partial(obj))


PARTIAL: Representation = PartialView()


class TableView:
    """Watch events as Tables of one row; only the first carries the column definitions. One per watch."""

    def __init__(self, tabler: Tabler) -> None:
        self._tabler = tabler
        self._first = True

    def encode(self, obj: Object, encoded: bytes) -> bytes:
        metadata = obj.get("metadata") or {}
        definitions = self._tabler.definitions() if self._first else None
        self._first = False
        row = (
            self._tabler.row(obj) if metadata.get("name") else {"cells": [], "object": partial(obj)}
        )  # a bookmark has no name
        shown = {"resourceVersion": metadata.get("resourceVersion", "")}
        return orjson.dumps(
            {"kind": "Table", **META, "metadata": shown, "columnDefinitions": definitions, "rows": [row]}
        )


def _definition(column: Column) -> Object:
    text = column.description or f"Custom resource definition column (in JSONPath format): {column.path}"
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": text,
        "priority": column.priority,
    }


def _cell(column: Column) -> Callable[[Object, datetime], Json]:
    find = jsonpath.compile(column.path) if column.path else lambda obj: []
    convert = _CONVERT.get(column.type, _as_text)

    def cell(obj: Object, now: datetime) -> Json:
        found = find(obj)
        if not found or found[0] is None:
            return None
        return ages.since(found[0], now) if column.type == "date" and isinstance(found[0], str) else convert(found[0])

    return cell


def _as_text(value: Any) -> Json:
    """As Go's fmt prints it, with JSON for what has structure."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode("utf-8")
    return str(value)


def _as_integer(value: Any) -> Json:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_number(value: Any) -> Json:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_boolean(value: Any) -> Json:
    return value if isinstance(value, bool) else None


def _nothing(value: Any) -> Json:
    return None


_CONVERT: dict[str, Callable[[Any], Json]] = {
    "string": _as_text,
    "integer": _as_integer,
    "number": _as_number,
    "boolean": _as_boolean,
    "date": _nothing,
}
