"""Get and list: revisions, pages and their continue tokens.

Upstream: apiserver pkg/storage/etcd3/store.go (GetList), pkg/storage/continue.go, apimachinery internalversion validation.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import orjson

from capi.kube.errors import BadRequest, Expired, MethodNotAllowed
from capi.kube.types import Key, Object
from capi.server.registry import refusals, scale
from capi.server.registry.interface import Listing, ListOptions
from capi.server.registry.selection import Selection
from capi.server.registry.served import Served
from capi.server.store.interface import Compacted, Entry, Store

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the"
    " continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with"
    " the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the"
    " first chunk was returned and now may show up in the list."
)


def parse_revision(text: str) -> int:
    """A resourceVersion option; "" is 0. Raises ValueError."""
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if len(text) > 20 or (text and int(text) >= 2**64):
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text or 0)


class Reader:
    """Reads of committed state."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, served: Served, key: Key, resource_version: str = "", subresource: str = "") -> tuple[Object, bytes]:
        """The object, or its scale. Raises NotFound, and Timeout for a revision that is not there yet."""
        try:
            wanted = parse_revision(resource_version)
        except ValueError as error:
            raise refusals.plain(str(error)) from None
        if wanted > self._store.revision:
            raise refusals.too_large_version(wanted, self._store.revision)
        if subresource and subresource not in served.info.subresources:
            raise refusals.not_found(served.type, key.name)
        entry = self._store.get(served.table, key)
        if entry is None:
            raise refusals.not_found(served.type, key.name)
        if subresource == "scale":
            shown = scale.get(served.from_storage(entry.object), served.info.scale)
            return shown, orjson.dumps(shown)
        if subresource not in ("", "status"):
            raise MethodNotAllowed()
        return served.present(entry)

    def list(self, served: Served, namespace: str, options: ListOptions) -> Listing:
        """One page. Raises BadRequest, Invalid, Expired and Timeout as the API conventions say."""
        selection = Selection(served, namespace, options)
        page = _page(options)
        revision = page.revision or self._store.revision
        if revision > self._store.revision:
            raise refusals.too_large_version(revision, self._store.revision)
        if not page.exact:
            revision = self._store.revision
        try:
            entries = self._entries(served, selection, revision, page.after)
        except Compacted as compacted:
            raise self._expired(page, compacted) from compacted
        return self._collect(served, selection, entries, revision, options.limit)

    def _entries(
        self, served: Served, selection: Selection, revision: int, after: Key | None
    ) -> Iterator[tuple[Key, Entry]]:
        if revision == self._store.revision:
            if (only := selection.only) is not None:
                entry = self._store.get(served.table, only)
                return iter([(only, entry)] if entry is not None and (after is None or only > after) else [])
            return self._store.scan(served.table, selection.namespace, after)
        return self._store.scan_at(served.table, revision, selection.namespace, after)

    def _expired(self, page: "_Page", compacted: Compacted) -> Expired:
        if page.after is None:
            return refusals.too_old_version(page.revision, compacted.oldest)
        return Expired(_EXPIRED, list_continue=_token(-1, page.after))

    def _collect(
        self, served: Served, selection: Selection, entries: Iterator[tuple[Key, Entry]], revision: int, limit: int
    ) -> Listing:
        found: list[Entry] = []
        last: Key | None = None
        token, left = "", None
        for key, entry in entries:
            if limit and len(found) == limit and last is not None:
                token = _token(revision, last)
                left = 1 + sum(1 for _ in entries) if selection.everything else None
                break
            last = key
            if selection.everything or selection.matches(entry):
                found.append(entry)
        encoded = [served.list_item(served.encoded(entry)) for entry in found]
        return Listing(_Items(served, found), encoded, revision, token, left)


class _Items(Sequence[Object]):
    """Objects of a page, parsed when they are looked at: most answers only need their JSON."""

    def __init__(self, served: Served, entries: Sequence[Entry]) -> None:
        self._served, self._entries = served, entries

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> Object: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Object]: ...
    def __getitem__(self, index: int | slice) -> Object | Sequence[Object]:
        if isinstance(index, slice):
            return _Items(self._served, self._entries[index])
        return self._served.from_storage(self._entries[index].object)


class _Page(NamedTuple):
    revision: int
    """0 = the latest."""
    exact: bool
    after: Key | None = None


def _page(options: ListOptions) -> _Page:
    _check_options(options)
    if options.continue_:
        revision, after = _parse_token(options.continue_)
        return _Page(max(revision, 0), revision > 0, after)
    try:
        revision = parse_revision(options.resource_version)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    exact = options.resource_version_match == "Exact" or (options.limit > 0 and not options.resource_version_match)
    return _Page(revision, exact and revision > 0)


def _check_options(options: ListOptions) -> None:
    match, revision = options.resource_version_match, options.resource_version
    if options.send_initial_events is not None:
        raise refusals.invalid_options(
            "ListOptions",
            "sendInitialEvents",
            "Forbidden: sendInitialEvents is forbidden for list",
            "FieldValueForbidden",
        )
    if options.limit < 0:
        raise BadRequest(f"limit must not be negative: {options.limit}")
    if match:
        if not revision:
            text = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
            raise refusals.invalid_options("ListOptions", "resourceVersionMatch", text, "FieldValueForbidden")
        if match not in ("Exact", "NotOlderThan"):
            text = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
            raise refusals.invalid_options("ListOptions", "resourceVersionMatch", text, "FieldValueNotSupported")
        if match == "Exact" and revision == "0":
            text = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            raise refusals.invalid_options("ListOptions", "resourceVersionMatch", text, "FieldValueForbidden")
    if options.continue_:
        if match:
            text = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
            raise refusals.invalid_options("ListOptions", "resourceVersionMatch", text, "FieldValueForbidden")
        if revision not in ("", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")


def _token(revision: int, last: Key) -> str:
    start = f"{last}\0"
    return (
        base64.urlsafe_b64encode(orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start}))
        .decode()
        .rstrip("=")
    )


def _parse_token(text: str) -> tuple[int, Key]:
    try:
        token = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        revision, start, version = int(token["rv"]), str(token["start"]), token["v"]
        if version != "meta.k8s.io/v1" or not revision or not start:
            raise ValueError("incorrect encoded start resourceVersion, version or start key")
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise BadRequest(f"invalid continue token: continue key is not valid: {error}") from None
    namespace, _, name = start.removesuffix("\0").rpartition("/")
    return revision, Key(namespace, name)
