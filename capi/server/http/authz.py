"""Who may do what. A seam: `MastersOnly` is all there is until role-based access control.

Source: apiserver pkg/authorization/authorizer, pkg/endpoints/handlers/responsewriters/errors.go (texts).
"""

from dataclasses import dataclass
from typing import Protocol

from capi.kube.errors import Forbidden
from capi.kube.messages import UserInfo
from capi.server.http.tls import AUTHENTICATED

MASTERS = "system:masters"
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_DISCOVERY = ("/api", "/apis", "/openapi", *_PUBLIC)
_SELF_REVIEWS = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is to be decided. For a path that is no resource, `path` is set and the rest empty."""

    user: UserInfo
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """`reason` may be empty."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides from attributes alone; must not wait."""

    def authorize(self, attributes: Attributes) -> Decision: ...


class MastersOnly:
    """system:masters may do everything, other users discover and review themselves, anonymous ones ask for health."""

    def authorize(self, attributes: Attributes) -> Decision:
        groups = attributes.user.groups
        if MASTERS in groups:
            return Decision(True)
        known = AUTHENTICATED in groups
        if attributes.path:
            return Decision(
                attributes.verb in ("get", "head") and _under(attributes.path, _DISCOVERY if known else _PUBLIC)
            )
        return Decision(known and attributes.verb == "create" and attributes.resource in _SELF_REVIEWS)


def check(authorizer: Authorizer, attributes: Attributes) -> None:
    """Raises Forbidden with Kubernetes' text."""
    decision = authorizer.authorize(attributes)
    if decision.allowed:
        return
    text = _text(attributes) + (f": {decision.reason}" if decision.reason else "")
    if attributes.path:
        raise Forbidden(f"forbidden: {text}")
    resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    shown = f'{resource} "{attributes.name}"' if attributes.name else resource
    raise Forbidden(
        f"{shown} is forbidden: {text}", name=attributes.name, group=attributes.group, kind=attributes.resource
    )


def _text(attributes: Attributes) -> str:
    user = f'User "{attributes.user.name}" cannot {attributes.verb}'
    if attributes.path:
        return f'{user} path "{attributes.path}"'
    resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    return f'{user} resource "{resource}" in API group "{attributes.group}" {scope}'


def _under(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root + "/") for root in roots)
