"""Reviews: questions answered at once and never stored. Who am I, may I, whose token is this.

Source: k8s.io/api/authorization/v1, k8s.io/api/authentication/v1.
"""

from collections.abc import Callable
from dataclasses import dataclass

from capi.kube.errors import BadRequest
from capi.kube.messages import UserInfo
from capi.kube.types import Object, ResourceType
from capi.server.http.authn import Authenticator
from capi.server.http.authz import Attributes, Authorizer, Decision
from capi.server.registry import forms
from capi.server.registry.interface import ResourceInfo

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"


def _info(group: str, kind: str, *, namespaced: bool = False) -> ResourceInfo:
    plural = f"{kind.lower()}s"
    return ResourceInfo(
        ResourceType(group, "v1", kind, plural, namespaced),
        singular=kind.lower(),
        list_kind=f"{kind}List",
        verbs=("create",),
    )


INFOS = (
    _info(_AUTHENTICATION, "SelfSubjectReview"),
    _info(_AUTHENTICATION, "TokenReview"),
    _info(_AUTHORIZATION, "LocalSubjectAccessReview", namespaced=True),
    _info(_AUTHORIZATION, "SelfSubjectAccessReview"),
    _info(_AUTHORIZATION, "SelfSubjectRulesReview"),
    _info(_AUTHORIZATION, "SubjectAccessReview"),
)
GROUPS = frozenset({_AUTHENTICATION, _AUTHORIZATION})
"""All resources of these groups are reviews."""
_BY_PLURAL = {(info.type.group, info.type.version, info.type.plural): info for info in INFOS}


def lookup(group: str, version: str, plural: str) -> ResourceInfo | None:
    return _BY_PLURAL.get((group, version, plural))


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Answers reviews of every kind in INFOS."""

    authenticator: Authenticator
    authorizer: Authorizer

    def answer(self, info: ResourceInfo, body: Object, user: UserInfo) -> Object:
        """The review with its status. Raises BadRequest if it asks nothing."""
        answers: dict[str, Callable[[Object, UserInfo], Object]] = {
            "SelfSubjectReview": self._self,
            "TokenReview": self._token,
            "SelfSubjectAccessReview": self._access,
            "SubjectAccessReview": self._access_of,
            "LocalSubjectAccessReview": self._access_of,
            "SelfSubjectRulesReview": self._rules,
        }
        forms.check(forms.Review, body, info.type.version, info.type.kind)
        spec = body.get("spec") or {}
        status = answers[info.type.kind](spec, user)
        metadata = {"creationTimestamp": None, **(body.get("metadata") or {})}
        return {
            "kind": info.type.kind,
            "apiVersion": info.type.api_version,
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }

    def _self(self, spec: Object, user: UserInfo) -> Object:
        return {"userInfo": _user_wire(user)}

    def _token(self, spec: Object, user: UserInfo) -> Object:
        found = self.authenticator.review(str(spec.get("token") or ""))
        if found is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": _user_wire(found)}

    def _access(self, spec: Object, user: UserInfo) -> Object:
        decision = self._decide(spec, user)
        return {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}

    def _access_of(self, spec: Object, user: UserInfo) -> Object:
        return self._access(spec, UserInfo(str(spec.get("user") or ""), tuple(spec.get("groups") or ())))

    def _rules(self, spec: Object, user: UserInfo) -> Object:
        """Rules cannot be enumerated for authorizers that only decide; what holds for everything is told."""
        everything = self._decide({"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}}, user).allowed
        rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}] if everything else []
        paths = [{"verbs": ["*"], "nonResourceURLs": ["*"]}] if everything else []
        return {"resourceRules": rules, "nonResourceRules": paths, "incomplete": not everything}

    def _decide(self, spec: Object, user: UserInfo) -> Decision:
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (resource is None) == (path is None):
            raise BadRequest("exactly one of nonResourceAttributes or resourceAttributes must be specified")
        if path is not None:
            return self.authorizer.authorize(
                Attributes(user, str(path.get("verb") or ""), path=str(path.get("path") or "/"))
            )
        assert resource is not None
        names = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
        return self.authorizer.authorize(Attributes(user, **{name: str(resource.get(name) or "") for name in names}))


def _user_wire(user: UserInfo) -> Object:
    extra = {key: list(values) for key, values in user.extra.items()}
    shown = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {key: value for key, value in shown.items() if value}
