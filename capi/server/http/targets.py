"""What a path and method address. Pure.

Source: apiserver pkg/endpoints/request/requestinfo.go.
"""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from capi.kube.messages import Request

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]

_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_VERBS: dict[str, tuple[Verb, Verb]] = {
    "GET": ("get", "list"),
    "HEAD": ("get", "list"),
    "POST": ("create", "create"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("delete", "deletecollection"),
}
"""Method → verb on a named object, verb on a collection."""


@dataclass(frozen=True, slots=True)
class Target:
    """A resource path taken apart; "" where the path says nothing."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """What follows the subresource (proxy paths)."""
    legacy_watch: bool = False
    """The path had the old `watch/` prefix."""

    @property
    def prefix(self) -> tuple[str, str]:
        return self.group, self.version


def parse(path: str) -> Target | None:
    """The resource addressed by `path` (percent-encoded); None for discovery and all other paths."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, parts = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, parts = parts[1], parts[2], parts[3:]
    else:
        return None
    watching = parts[0] == "watch" and len(parts) > 1
    parts = parts[1:] if watching else parts
    if "%" in path:
        parts = [unquote(part) for part in parts]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    resource, name, subresource, *rest = (*parts, "", "", "")[: max(len(parts), 3)]
    return Target(unquote(group), unquote(version), resource, namespace, name, subresource, "/".join(rest), watching)


def verb_of(request: Request, target: Target) -> Verb | None:
    """The API verb; None for a method that is none."""
    verbs = _VERBS.get(request.method)
    if verbs is None:
        return None
    verb = verbs[0 if target.name else 1]
    if verb == "list" and (target.legacy_watch or truthy(request.option("watch"))):
        return "watch"
    if target.legacy_watch and verb == "get":
        return "watch"
    return verb


def truthy(value: str) -> bool:
    """Query booleans: everything but nothing, "false" and "0" is true."""
    return value not in ("", "false", "0")
