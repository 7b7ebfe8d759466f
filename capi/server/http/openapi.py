"""OpenAPI documents made from `ResourceInfo.schema`: v3 per group version, v2 as one document.

They carry what kubectl works from: schemas with their group-version-kind (explain, merge keys of apply) and PATCH operations
with a `fieldValidation` parameter (whether the server validates fields).

Source: kubernetes.io/docs/concepts/overview/kubernetes-api (OpenAPI), KEP-2896.
"""

from typing import Any

from capi.kube.messages import Request, Response
from capi.kube.types import Object, ResourceType
from capi.server.http import formats, responses
from capi.server.http.catalog import Catalog, Document
from capi.server.registry.builtin import catalog as builtin
from capi.server.registry.interface import ResourceInfo

_STRING, _INTEGER, _BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_WRITE = {"dryRun": _STRING, "fieldManager": _STRING, "fieldValidation": _STRING}
_LIST = {
    "allowWatchBookmarks": _BOOLEAN, "continue": _STRING, "fieldSelector": _STRING, "labelSelector": _STRING, "limit": _INTEGER,
    "resourceVersion": _STRING, "resourceVersionMatch": _STRING, "sendInitialEvents": _BOOLEAN, "timeoutSeconds": _INTEGER,
    "watch": _BOOLEAN,
}  # fmt: skip
_DELETE = {
    "dryRun": _STRING,
    "gracePeriodSeconds": _INTEGER,
    "orphanDependents": _BOOLEAN,
    "propagationPolicy": _STRING,
}
_Table = tuple[tuple[str, str, Object], ...]
"""Method, x-kubernetes-action and query parameters."""
_COLLECTION: _Table = (
    ("get", "list", _LIST),
    ("post", "post", _WRITE),
    ("delete", "deletecollection", {**_LIST, **_DELETE}),
)
_ITEM: _Table = (
    ("get", "get", {}),
    ("put", "put", _WRITE),
    ("patch", "patch", {**_WRITE, "force": _BOOLEAN}),
    ("delete", "delete", _DELETE),
)
_VERB = {
    "list": "list",
    "post": "create",
    "deletecollection": "deletecollection",
    "get": "get",
    "put": "update",
    "patch": "patch",
    "delete": "delete",
}
_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")


def answer(request: Request, catalog: Catalog) -> Response | None:
    """The answer to an /openapi path; None if it names nothing served."""
    path = request.path.rstrip("/")
    if path == "/openapi/v2":
        return _v2_answer(request, catalog)
    if path == "/openapi/v3":
        return _respond(request, catalog.document("openapi v3", lambda: _index(catalog)), immutable=False)
    document = _version_document(catalog, path.removeprefix("/openapi/v3/"))
    if document is None:
        return None
    asked = request.option("hash")
    if asked and asked != document.etag:
        return Response(301, b"", (responses.PLAIN, ("Location", f"{path}?hash={document.etag}")))
    return _respond(request, document, immutable=bool(asked))


def schema_name(kind: ResourceType) -> str:
    """OpenAPI name of a kind: upstream's for built-in kinds, else the reversed group, version and kind."""
    known = builtin.load().definition_names.get(kind)
    return known or ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _v2_answer(request: Request, catalog: Catalog) -> Response:
    if not formats.accepts_json(request.headers.get("accept", "")):
        return responses.text(406, "OpenAPI v2 is served as application/json only; use /openapi/v3")
    return _respond(request, catalog.document("openapi v2", lambda: _v2(catalog)), immutable=False)


def _respond(request: Request, document: Document, *, immutable: bool) -> Response:
    cache = "public, immutable" if immutable else "no-cache, private"
    headers = (responses.JSON, ("ETag", f'"{document.etag}"'), ("Vary", "Accept"), ("Cache-Control", cache))
    if document.etag in request.headers.get("if-none-match", ""):
        return Response(304, b"", headers[1:])
    return Response(200, document.body, headers)


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _version_document(catalog: Catalog, path: str) -> Document | None:
    found = next(
        (infos for (group, version), infos in catalog.resources.items() if _path(group, version) == path), None
    )
    if found is None:
        return None
    return catalog.document(f"openapi v3 {path}", lambda: _v3(found))


def _index(catalog: Catalog) -> Object:
    paths: Object = {}
    for group, version in catalog.resources:
        path = _path(group, version)
        document = _version_document(catalog, path)
        if document is not None:
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={document.etag}"}
    return {"paths": paths}


def _v3(infos: list[ResourceInfo]) -> Object:
    schemas = {schema_name(info.type): _schema(info) for info in infos}
    paths: Object = {}
    for info in infos:
        paths.update(_paths(info))
    return {
        "openapi": "3.0.0",
        "info": {"title": "capi", "version": "v1"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _schema(info: ResourceInfo) -> Object:
    schema: Object = {"type": "object", **info.schema}
    if not info.schema:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    return {**schema, "x-kubernetes-group-version-kind": [_gvk(info.type)]}


def _paths(info: ResourceInfo) -> Object:
    kind = info.type
    base = f"/{_path(kind.group, kind.version)}"
    collection = f"{base}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
    item = f"{collection}/{{name}}"
    paths = {collection: _operations(info, _COLLECTION, info.verbs), item: _operations(info, _ITEM, info.verbs)}
    if kind.namespaced:
        paths[f"{base}/{kind.plural}"] = _operations(info, _COLLECTION[:1], info.verbs)
    for name in info.subresources:
        if name in ("status", "scale"):
            paths[f"{item}/{name}"] = _operations(info, _ITEM[:3], ("get", "update", "patch"))
    return {path: operations for path, operations in paths.items() if operations}


def _operations(info: ResourceInfo, table: _Table, verbs: tuple[str, ...]) -> Object:
    return {method: _operation(info, action, query) for method, action, query in table if _VERB[action] in verbs}


def _operation(info: ResourceInfo, action: str, query: Object) -> Object:
    reference = {"$ref": f"#/components/schemas/{schema_name(info.type)}"}
    operation: Object = {
        "parameters": [{"name": name, "in": "query", "schema": schema} for name, schema in query.items()],
        "responses": {"200": {"description": "OK", "content": {formats.JSON: {"schema": reference}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(info.type),
    }
    if action == "patch":
        operation["requestBody"] = {"content": {media: {"schema": {"type": "object"}} for media in _PATCHES}}
    elif action in ("post", "put"):
        operation["requestBody"] = {"content": {formats.JSON: {"schema": reference}}, "required": True}
    return operation


def _gvk(kind: ResourceType) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _v2(catalog: Catalog) -> Object:
    definitions: Object = {}
    for infos in catalog.resources.values():
        for info in infos:
            definitions[schema_name(info.type)] = _v2_schema(_schema(info))
    return {"swagger": "2.0", "info": {"title": "capi", "version": "v1"}, "paths": {}, "definitions": definitions}


_V3_ONLY = frozenset({"nullable", "oneOf", "anyOf", "allOf", "not", "x-kubernetes-validations"})


def _v2_schema(schema: Any) -> Any:
    """A schema without what OpenAPI v2 lacks."""
    if not isinstance(schema, dict):
        return schema
    shown = {key: value for key, value in schema.items() if key not in _V3_ONLY}
    if "properties" in shown:
        shown["properties"] = {name: _v2_schema(child) for name, child in shown["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in shown:
            shown[key] = _v2_schema(shown[key])
    return shown
