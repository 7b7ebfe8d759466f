"""The verbs on resources: a Call to a registry call, its outcome to an Answer. Reads answer at once, writes are awaited.

Source: apiserver pkg/endpoints/handlers/{get,create,update,patch,delete,watch}.go.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import cast

import orjson

from capi.kube.errors import BadRequest, UnsupportedMediaType
from capi.kube.messages import Answer, Response, Stream
from capi.kube.types import Object
from capi.server.http import bodies, formats, options, responses, views
from capi.server.http.calls import Call
from capi.server.registry.interface import Listing, PatchType, Registry, Representation, WriteOptions, Written

_PATCHES = ("application/json-patch+json", "application/merge-patch+json", options.APPLY)
_STRICT = "strict decoding error: "
_STRATEGIC = "application/strategic-merge-patch+json"


class Verbs:
    """Every verb of every resource of one registry."""

    def __init__(self, registry: Registry, now: Callable[[], datetime]) -> None:
        self._registry, self._now = registry, now

    # reads

    def read(self, call: Call) -> Answer:
        """get, list or watch. Raises ApiError."""
        return {"get": self._get, "list": self._list, "watch": self._watch}[call.verb](call)

    def _get(self, call: Call) -> Answer:
        target = call.target
        obj, encoded = self._registry.get(
            call.info,
            target.namespace if call.info.type.namespaced else "",
            target.name,
            resource_version=call.request.option("resourceVersion"),
            subresource=target.subresource,
        )
        if not call.format.as_:
            return Response(200, encoded)
        return self._shown(call, obj)

    def _list(self, call: Call) -> Answer:
        listing = self._registry.list(call.info, call.target.namespace, options.list_options(call.request))
        return self._listing(call, listing)

    def _watch(self, call: Call) -> Answer:
        chosen = options.list_options(call.request, call.target.name)
        watcher = self._registry.watch(call.info, call.target.namespace, chosen, self._representation(call))
        return Stream(watcher)

    # writes

    async def write(self, call: Call) -> Response:
        """create, update, patch, delete or deletecollection. Raises ApiError."""
        act = {
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }[call.verb]
        return await act(call)

    async def _create(self, call: Call) -> Response:
        chosen = options.write_options(call.request, call.user, "CreateOptions")
        body = _object(call) if not call.target.subresource else _any_object(call)
        target = call.target

        def create(chosen: WriteOptions) -> Awaitable[Written]:
            return self._registry.create(
                call.info, _namespace(call), body, chosen, name=target.name, subresource=target.subresource
            )

        written, warnings = await _unrepeated(call, chosen, create)
        return self._written(call, written, 201, warnings)

    async def _update(self, call: Call) -> Response:
        chosen = options.write_options(call.request, call.user, "UpdateOptions")
        target = call.target
        body = _object(call) if target.subresource != "scale" else _any_object(call)

        def update(chosen: WriteOptions) -> Awaitable[Written]:
            return self._registry.update(
                call.info, _namespace(call), target.name, body, chosen, subresource=target.subresource
            )

        written, warnings = await _unrepeated(call, chosen, update)
        return self._written(call, written, 201 if written.created else 200, warnings)

    async def _patch(self, call: Call) -> Response:
        patch_type = _patch_type(call)
        chosen = options.write_options(call.request, call.user, "PatchOptions", patch_type)
        target = call.target
        written = await self._registry.patch(
            call.info,
            _namespace(call),
            target.name,
            patch_type,
            call.request.body,
            chosen,
            subresource=target.subresource,
        )
        return self._written(call, written, 201 if written.created else 200)

    async def _delete(self, call: Call) -> Response:
        chosen, background = options.delete_options(call.request, bodies.decode_options(call.request), call.user)
        written = await self._registry.delete(call.info, _namespace(call), call.target.name, chosen)
        gone = written.object.get("kind") == "Status"
        return self._written(call, written, 202 if background and not gone else 200)

    async def _delete_collection(self, call: Call) -> Response:
        chosen, _ = options.delete_options(call.request, bodies.decode_options(call.request), call.user)
        selection = options.list_options(call.request)
        return self._listing(
            call, await self._registry.delete_collection(call.info, _namespace(call), selection, chosen)
        )

    # answers

    def _written(self, call: Call, written: Written, status: int, warnings: tuple[str, ...] = ()) -> Response:
        headers = tuple(("Warning", warning_value(text)) for text in (*warnings, *written.warnings))
        if call.format.as_ and written.object.get("kind") != "Status":
            shown = self._shown(call, written.object)
            return Response(status, shown.body, (responses.JSON, *headers))
        return Response(status, written.encoded or orjson.dumps(written.object), (responses.JSON, *headers))

    def _shown(self, call: Call, obj: Object) -> Response:
        if call.format.as_ == "Table":
            metadata = {"resourceVersion": (obj.get("metadata") or {}).get("resourceVersion", "")}
            return responses.json(self._tabler(call).table([obj], metadata))
        return responses.json(views.partial(obj))

    def _listing(self, call: Call, listing: Listing) -> Response:
        metadata: Object = {"resourceVersion": str(listing.revision)}
        if listing.continue_:
            metadata["continue"] = listing.continue_
        if listing.remaining is not None:
            metadata["remainingItemCount"] = listing.remaining
        if call.format.as_ == "Table":
            return responses.json(self._tabler(call).table(listing.items, metadata))
        if call.format.as_:
            return responses.json(views.partial_list(listing.items, metadata))
        head = {"kind": call.info.list_kind, "apiVersion": call.info.type.api_version, "metadata": metadata}
        return Response(200, b'%b,"items":[%b]}' % (orjson.dumps(head)[:-1], b",".join(listing.encoded)))

    def _representation(self, call: Call) -> Representation | None:
        if call.format.as_ == "Table":
            return views.TableView(self._tabler(call))
        return views.PARTIAL if call.format.as_ else None

    def _tabler(self, call: Call) -> views.Tabler:
        info = call.info if call.target.subresource != "scale" else views.scale_info(call.info)
        return views.Tabler(info, views.include_of(call.request.option("includeObject")), self._now)


def warning_value(text: str) -> str:
    """The value of a Warning header."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'


async def _unrepeated(
    call: Call, chosen: WriteOptions, write: Callable[[WriteOptions], Awaitable[Written]]
) -> tuple[Written, tuple[str, ...]]:
    """The write, and warnings for keys that the body repeats.

    Under Strict such keys refuse the write; a dry run finds the unknown fields, so that one answer names them all.
    """
    if chosen.field_validation == "Ignore":
        return await write(chosen), ()
    repeated = bodies.duplicates(call.request.body, call.request.headers.get("content-type", ""))
    texts = tuple(f'duplicate field "{path}"' for path in repeated)
    if texts and chosen.field_validation == "Strict":
        try:
            await write(replace(chosen, dry_run=True))
        except BadRequest as error:
            if error.message.startswith(_STRICT):
                texts = (*texts, error.message.removeprefix(_STRICT))
        raise BadRequest(_STRICT + ", ".join(texts))
    return await write(chosen), texts


def _namespace(call: Call) -> str:
    return call.target.namespace if call.info.type.namespaced else ""


def _object(call: Call) -> Object:
    return bodies.decode(call.request, call.info.type, builtin=call.info.builtin)


def _any_object(call: Call) -> Object:
    """A body of another kind than the resource's: Scale, Eviction, Binding. The registry checks it."""
    return bodies.decode_any(call.request)


def _patch_type(call: Call) -> PatchType:
    media = formats.media_type(call.request.headers.get("content-type", ""))
    supported = (*_PATCHES, _STRATEGIC) if call.info.builtin else _PATCHES
    if media not in supported:
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(supported)}"
        )
    return cast(PatchType, media)
