"""Manifests from files: read, resolved against what the server serves, checked together, then applied.

Nothing is applied unless everything passed the server's own checks (a dry run), so a bad file leaves nothing behind.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import orjson

from capi.app.settings import STDIN
from capi.client.answers import parse
from capi.client.client import PATCH_TYPES, Client
from capi.kube import yaml
from capi.kube.errors import ApiError, BadRequest, CapiError, NotFound
from capi.kube.types import GroupKind, Object, ResourceType

MANAGER = "capi-up"
LIMIT = 16 * 2**20
"""Bytes of one file: YAML of more takes minutes and gigabytes, and cannot be interrupted."""


class BadManifest(CapiError):
    """A manifest cannot be applied; mend the file and start again."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file, and where it came from."""

    body: Object
    source: str
    """`quickstart.yaml, document 2 (MachinePool workers)`."""

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(str(self.body["apiVersion"]).rpartition("/")[0], str(self.body["kind"]))


def read(files: Sequence[Path]) -> list[Manifest]:
    """All objects of all files in order; Lists are unpacked. Raises BadManifest that names file and place."""
    return [manifest for file in files for manifest in _read_one(file)]


def _read_one(file: Path) -> list[Manifest]:
    name = named(file)
    text = _text(file, name)
    try:
        documents = yaml.load_all(text)
    except BadRequest as error:
        raise BadManifest(f"{name}: {error.message}") from error
    if not documents:
        raise BadManifest(f"{name}: there is no object in it")
    return [m for number, document in enumerate(documents, 1) for m in _unpack(document, f"{name}, document {number}")]


def named(file: Path) -> str:
    """A file in words."""
    return "standard input" if file == STDIN else str(file)


def _text(file: Path, name: str) -> str:
    data = _bytes(file, name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadManifest(f"{name}: not text in UTF-8: byte 0x{data[error.start]:02x} in line {line}") from error


def _bytes(file: Path, name: str) -> bytes:
    try:
        with sys.stdin.buffer if file == STDIN else file.open("rb") as opened:
            data = opened.read(LIMIT + 1)
    except OSError as error:
        raise BadManifest(f"{name}: {error.strerror}") from error
    if len(data) > LIMIT:
        raise BadManifest(f"{name}: more than {LIMIT // 2**20} MiB; split it into several files")
    return data


def _unpack(document: object, source: str) -> list[Manifest]:
    if not isinstance(document, dict):
        raise BadManifest(
            f"{source}: not an object with apiVersion, kind and metadata, but {type(document).__name__} {document!r:.60}"
        )
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise BadManifest(f"{source}: {field}: Required value: every object needs one")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        return [m for item in document["items"] for m in _unpack(item, source)]
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise BadManifest(f"{source}: metadata.name: Required value: {document['kind']} needs a name")
    return [Manifest(document, f"{source} ({document['kind']} {metadata['name']})")]


async def check(client: Client, manifests: Sequence[Manifest]) -> None:
    """Have the server check all of them without storing any. Raises BadManifest."""
    namespaces = {m.body["metadata"]["name"] for m in manifests if m.group_kind == GroupKind("", "Namespace")}
    later = {_defines(m) for m in manifests} - {None}
    for manifest in manifests:
        if manifest.group_kind in later or manifest.body["metadata"].get("namespace") in namespaces:
            continue  # can only be checked once the kind or the namespace exists
        await _apply_one(client, manifest, dry_run=True)


async def apply(client: Client, manifests: Sequence[Manifest]) -> None:
    """Forced server-side apply as `capi-up`, in order; `check` them first. Raises BadManifest."""
    for manifest in manifests:
        await _apply_one(client, manifest, dry_run=False)


def _defines(manifest: Manifest) -> GroupKind | None:
    if manifest.group_kind != GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"):
        return None
    spec = manifest.body.get("spec") or {}
    return GroupKind(str(spec.get("group")), str((spec.get("names") or {}).get("kind")))


async def _apply_one(client: Client, manifest: Manifest, *, dry_run: bool) -> None:
    try:
        resource = await resolve(client, manifest.body["apiVersion"], manifest.body["kind"])
        metadata = dict(manifest.body["metadata"])
        if resource.namespaced:
            metadata.setdefault("namespace", "default")
        body = {**manifest.body, "metadata": metadata}
        query = [("fieldManager", MANAGER), ("force", "true"), ("fieldValidation", "Strict")]
        if dry_run:
            query.append(("dryRun", "All"))
        path = resource.path(metadata.get("namespace"), metadata["name"])
        await client.send("PATCH", path, tuple(query), orjson.dumps(body), PATCH_TYPES["apply"])
    except ApiError as error:
        raise BadManifest(f"{manifest.source}: {error.message}") from error


async def resolve(client: Client, api_version: str, kind: str) -> ResourceType:
    """The resource that serves a kind, by discovery. Raises NotFound naming apiVersion and kind."""
    group, _, version = api_version.rpartition("/")
    path = f"/apis/{api_version}" if group else f"/api/{api_version}"
    try:
        resources = parse(await client.send("GET", path)).get("resources") or []
    except NotFound:
        resources = []
    for found in resources:
        if found["kind"] == kind and "/" not in found["name"]:
            return ResourceType(group, version, kind, found["name"], bool(found["namespaced"]))
    if meant := get_close_matches(kind, {str(found["kind"]) for found in resources}, n=1):
        raise NotFound(f'no kind "{kind}" in apiVersion "{api_version}" is served here; did you mean {meant[0]}?')
    if served := await _versions(client, group, kind):
        raise NotFound(
            f'kind "{kind}" is served in {", ".join(served)} here, not in "{api_version}"; change apiVersion'
        )
    raise NotFound(
        f'no kind "{kind}" in apiVersion "{api_version}" is served here; check both, or apply its CustomResourceDefinition first'
    )


async def _versions(client: Client, group: str, kind: str) -> list[str]:
    """In which other versions of its group a kind is served."""
    try:
        versions = parse(await client.send("GET", f"/apis/{group}")).get("versions") or [] if group else []
    except NotFound:
        return []
    served = []
    for version in versions:
        answer = parse(await client.send("GET", f"/apis/{version['groupVersion']}"))
        if any(found["kind"] == kind for found in answer.get("resources") or []):
            served.append(str(version["groupVersion"]))
    return served
