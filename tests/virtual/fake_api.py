"""A small API server for tests of the runtime alone: objects, revisions, watches, naive apply. No schemas, no admission.

The runtime is tested against the real registry too; this one can be told to misbehave: `drop_watches`, `forget_history`,
`mute`, `watch_list`.
"""

import itertools
from typing import Any
from urllib.parse import unquote

import orjson

from capi.kube.errors import AlreadyExists, ApiError, BadRequest, Conflict, Expired, NotFound
from capi.kube.messages import Answer, Request, Response, Sink, Stream
from capi.kube.patch import merge
from capi.kube.types import Object


class FakeApi:
    """Implements messages.Handler. `log` holds (method, path) of every request."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.revision = 100
        self.oldest = 100
        self.history: list[tuple[int, str, str, Object]] = []
        self.watches: list[_Watch] = []
        self.log: list[tuple[str, str]] = []
        self.muted = False
        self.watch_list = True
        self._uid = itertools.count(1)

    @property
    def writes(self) -> list[str]:
        """Every write, leases and events excluded."""
        return [
            f"{method} {path}"
            for method, path in self.log
            if method != "GET" and not path.endswith("/events") and "/leases" not in path
        ]

    async def handle(self, request: Request) -> Answer:
        self.log.append((request.method, request.path))
        try:
            return self._handle(request)
        except ApiError as error:
            return Response(error.status_code, orjson.dumps(error.status))

    def _handle(self, request: Request) -> Answer:
        collection, namespace, name, subresource = parse(request.path)
        if request.method == "GET" and not collection:
            return _json({})
        if request.method == "GET" and request.option("watch"):
            return self._watch(collection, request)
        if request.method == "GET":
            return _json(self._get(collection, namespace, name) if name else self._list(collection, request))
        body = orjson.loads(request.body) if request.body else {}
        if request.method == "POST":
            return _json(self.create(collection, body), 201)
        if request.method == "PUT":
            return _json(self._put(collection, namespace, name, body))
        if request.method == "DELETE":
            return _json(self._delete(collection, namespace, name, body))
        return _json(self._patch(collection, (namespace, name), subresource, body, request))

    def create(self, collection: str, body: Object) -> Object:
        metadata = body["metadata"]
        key = (collection, metadata.get("namespace", ""), metadata["name"])
        if key in self.objects:
            raise AlreadyExists(f"{key} already exists")
        stamp = {"uid": f"uid-{next(self._uid)}", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
        return self.store(key, {**body, "metadata": {**metadata, **stamp}}, "ADDED")

    def edit(self, collection: str, namespace: str, name: str, change: Object) -> Object:
        """Merge a change into an object, as some other client would."""
        return self._merged((collection, namespace, name), change)

    def remove(self, collection: str, namespace: str, name: str) -> None:
        self._delete(collection, namespace, name, {})

    def drop_watches(self) -> None:
        """Break every open watch."""
        for watch in list(self.watches):
            if watch.sink is not None:
                watch.sink.end()
            watch.stop()

    def forget_history(self) -> None:
        self.oldest, self.history = self.revision, []

    def store(self, key: tuple[str, str, str], obj: Object, type_: str) -> Object:
        self.revision += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)}}
        if type_ == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = obj
        self.history.append((self.revision, type_, key[0], obj))
        for watch in list(self.watches):
            if watch.collection == key[0] and not self.muted:
                watch.send(type_, obj)
        return obj

    def _get(self, collection: str, namespace: str, name: str) -> Object:
        found = self.objects.get((collection, namespace, name))
        if found is None:
            raise NotFound(f'{collection} "{name}" not found')
        return found

    def _list(self, collection: str, request: Request) -> Object:
        items = [obj for key, obj in sorted(self.objects.items()) if key[0] == collection]
        start, limit = int(request.option("continue", "0")), int(request.option("limit", "0")) or len(items)
        page = items[start : start + limit]
        more = {"continue": str(start + limit)} if start + limit < len(items) else {}
        return {"kind": "List", "metadata": {"resourceVersion": str(self.revision), **more}, "items": page}

    def _watch(self, collection: str, request: Request) -> Stream:
        initial = request.option("sendInitialEvents") == "true"
        if initial and not self.watch_list:
            raise BadRequest("unknown option sendInitialEvents")
        since = int(request.option("resourceVersion", "0"))
        return Stream(_Watch(self, collection, initial, since))

    def _put(self, collection: str, namespace: str, name: str, body: Object) -> Object:
        current = self._get(collection, namespace, name)
        if body["metadata"].get("resourceVersion") != current["metadata"]["resourceVersion"]:
            raise Conflict("the object has been modified")
        return self.store((collection, namespace, name), body, "MODIFIED")

    def _delete(self, collection: str, namespace: str, name: str, options: Object) -> Object:
        current = self._get(collection, namespace, name)
        uid = (options.get("preconditions") or {}).get("uid")
        if uid and uid != current["metadata"]["uid"]:
            raise Conflict("Precondition failed: UID")
        key = (collection, namespace, name)
        if current["metadata"].get("finalizers"):
            if "deletionTimestamp" in current["metadata"]:
                return current
            return self._merged(key, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:01Z"}})
        self.store(key, current, "DELETED")
        return {"kind": "Status", "status": "Success"}

    def _patch(
        self, collection: str, name: tuple[str, str], subresource: str, body: Object, request: Request
    ) -> Object:
        key = (collection, *name)
        current = self.objects.get(key)
        wanted = body.get("metadata") or {}
        if current is not None:
            for field in ("uid", "resourceVersion"):
                if wanted.get(field, current["metadata"][field]) != current["metadata"][field]:
                    raise Conflict(f"metadata.{field} differs")
        if "apply" not in request.headers["content-type"]:
            if current is None:
                raise NotFound(f"{key} not found")
            return self._merged(key, body)
        manager = request.option("fieldManager")
        if current is None:
            if subresource:
                raise NotFound(f"{key} not found")
            if wanted.get("uid"):
                raise Conflict("uid mismatch: no existing object was found")
            current = self.create(collection, body)
        return self._merged(key, {**body, "metadata": self._managed(current, body, manager, subresource)})

    def _managed(self, current: Object, body: Object, manager: str, subresource: str) -> Object:
        """The body's metadata with managedFields; nothing is ever given up, unlike in a real apply."""
        fields = _fields({k: v for k, v in body.items() if k not in ("apiVersion", "kind")})
        metadata = fields.get("f:metadata", {})
        for name in ("f:name", "f:namespace", "f:uid"):
            metadata.pop(name, None)
        if not metadata:
            fields.pop("f:metadata", None)
        entry = {
            "manager": manager,
            "operation": "Apply",
            "subresource": subresource,
            "apiVersion": body["apiVersion"],
            "fieldsV1": fields,
        }
        others = [
            e
            for e in current["metadata"].get("managedFields", ())
            if (e["manager"], e["subresource"]) != (manager, subresource)
        ]
        return {**body.get("metadata", {}), "managedFields": [*others, entry]}

    def _merged(self, key: tuple[str, str, str], change: Object) -> Object:
        current = self._get(*key)
        changed = merge(current, change)
        if changed == current:
            return current
        if changed.get("spec") != current.get("spec"):
            changed["metadata"] = {**changed["metadata"], "generation": current["metadata"]["generation"] + 1}
        if "deletionTimestamp" in changed["metadata"] and not changed["metadata"].get("finalizers"):
            return self.store(key, changed, "DELETED")
        return self.store(key, changed, "MODIFIED")


class _Watch:
    """A Producer."""

    def __init__(self, api: FakeApi, collection: str, initial: bool, since: int) -> None:
        self.api, self.collection, self.initial, self.since = api, collection, initial, since
        self.sink: Sink | None = None

    def start(self, sink: Sink) -> None:
        self.sink = sink
        if self.initial:
            for key, obj in self.api.objects.items():
                if key[0] == self.collection:
                    self.send("ADDED", obj)
            end = {"k8s.io/initial-events-end": "true"}
            self.send("BOOKMARK", {"metadata": {"resourceVersion": str(self.api.revision), "annotations": end}})
        elif self.since < self.api.oldest:
            self.send("ERROR", Expired("too old resource version").status)
            sink.end()
            return
        else:
            for revision, type_, collection, obj in self.api.history:
                if revision > self.since and collection == self.collection:
                    self.send(type_, obj)
        self.api.watches.append(self)

    def send(self, type_: str, obj: Any) -> None:
        assert self.sink is not None
        self.sink.write(orjson.dumps({"type": type_, "object": obj}) + b"\n")

    def resume(self) -> None:
        """It writes however full its sink is."""

    def stop(self) -> None:
        if self in self.api.watches:
            self.api.watches.remove(self)


def parse(path: str) -> tuple[str, str, str, str]:
    """Collection ("group/version/plural"), namespace, name and subresource of a path."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] not in ("api", "apis"):
        return "", "", "", ""
    prefix, rest = (parts[1:2], parts[2:]) if parts[0] == "api" else (parts[1:3], parts[3:])
    namespace = ""
    if rest and rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    padded = [*rest, "", "", ""][:3]
    return "/".join([*prefix, padded[0]]), namespace, padded[1], padded[2]


def _fields(value: Any) -> Object:
    """FieldsV1 of a body; condition lists are keyed by type, all other lists atomic."""
    if not isinstance(value, dict):
        return {}
    fields: Object = {}
    for name, item in value.items():
        if name == "conditions":
            fields["f:" + name] = {
                'k:{"type":"' + c["type"] + '"}': {".": {}, **{"f:" + member: {} for member in c}} for c in item
            }
        else:
            fields["f:" + name] = _fields(item)
    return fields


def _json(value: Any, status: int = 200) -> Response:
    return Response(status, orjson.dumps(value))
