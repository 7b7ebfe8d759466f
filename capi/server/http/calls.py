"""One API call on a resource: who, what, on which resource; and the refusals of paths and methods."""

from dataclasses import dataclass

from capi.kube.errors import MethodNotAllowed, NotFound
from capi.kube.messages import Request, Response, UserInfo
from capi.server.http import discovery, formats, responses
from capi.server.http.authz import Attributes
from capi.server.http.catalog import Catalog
from capi.server.http.targets import Target, Verb
from capi.server.registry.interface import ResourceInfo


@dataclass(frozen=True, slots=True)
class Call:
    """A request to a resource, authenticated and resolved."""

    request: Request
    user: UserInfo
    target: Target
    verb: Verb
    info: ResourceInfo
    format: formats.Format


class NoSuchPath(Exception):
    """Nobody serves this path; `answer` says so in the form kube-apiserver uses for it."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.status)
        self.answer = answer


def attributes(user: UserInfo, target: Target, verb: str, request: Request) -> Attributes:
    """What to authorize. A list or watch of one name counts as naming it."""
    name = target.name or (_selected_name(request.option("fieldSelector")) if verb in ("list", "watch") else "")
    return Attributes(
        user, verb, target.group, target.version, target.resource, target.subresource, target.namespace, name
    )


def unknown_resource(catalog: Catalog, target: Target) -> Exception:
    """404: a Status inside a built-in group version, plain text elsewhere."""
    if catalog.is_builtin(target.group, target.version):
        return NotFound("the server could not find the requested resource")
    return NoSuchPath(responses.page_not_found())


_ENDING = ("update", "patch")
"""Custom objects take these while their CRD is being deleted, though discovery no longer lists them: finalizers could not be
taken away otherwise. The registry knows whether the kind takes them. Upstream: apiextensions-apiserver, serveResource."""


def check_path(info: ResourceInfo, target: Target, verb: Verb) -> None:
    """Raises for scopes that do not fit, unknown subresources and unsupported verbs."""
    kind = info.type
    across = kind.namespaced and not target.namespace
    misplaced = not kind.namespaced and target.namespace and kind.plural != "namespaces"
    unknown = target.rest or (target.subresource and target.subresource not in info.subresources)
    if misplaced or unknown or (across and target.name):
        raise _not_found(info)
    if target.subresource:
        if verb not in discovery.verbs_of(target.subresource):
            raise _not_allowed(info, verb)
        return
    if across and verb not in ("list", "watch"):
        raise _not_allowed(info, verb) if info.builtin else _not_found(info)
    ending = not info.builtin and verb in _ENDING
    if (
        (verb not in info.verbs and not ending)
        or (verb == "create" and target.name)
        or (verb in ("update", "patch") and not target.name)
    ):
        raise _not_allowed(info, verb)


def _not_found(info: ResourceInfo) -> Exception:
    if info.builtin:
        return NotFound("the server could not find the requested resource")
    return NoSuchPath(responses.page_not_found())


def _not_allowed(info: ResourceInfo, verb: str) -> MethodNotAllowed:
    if info.builtin:
        return MethodNotAllowed()
    kind = info.type
    return MethodNotAllowed(
        f'{verb} is not supported on resources of kind "{kind.qualified_plural}"', group=kind.group, kind=kind.plural
    )


def _selected_name(field_selector: str) -> str:
    for requirement in field_selector.split(","):
        field, _, value = requirement.partition("=")
        if field.strip() == "metadata.name":
            return value.removeprefix("=").strip()
    return ""
