"""Who asks: bearer tokens, anonymous, impersonation. Client certificates are read by the listener (`tls.peer_user`).

Source: kubernetes.io/docs/reference/access-authn-authz/authentication.
"""

import hmac
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import unquote

from capi.kube.errors import BadRequest, Unauthorized
from capi.kube.messages import Request, UserInfo
from capi.server.http.tls import AUTHENTICATED

ANONYMOUS = UserInfo("system:anonymous", ("system:unauthenticated",))
_IMPERSONATE = "impersonate-"
_EXTRA = "impersonate-extra-"


class Authenticator(Protocol):
    """Recognises the credentials in a request's headers."""

    def authenticate(self, request: Request) -> UserInfo | None:
        """The user; None if the request carries no credentials. Raises Unauthorized for bad ones."""
        ...

    def review(self, token: str) -> UserInfo | None:
        """Whom a token stands for (TokenReview)."""
        ...


class StaticTokens:
    """Bearer tokens from a fixed table."""

    def __init__(self, tokens: Mapping[str, UserInfo] | None = None) -> None:
        self._tokens = {token: _authenticated(user) for token, user in (tokens or {}).items()}

    def authenticate(self, request: Request) -> UserInfo | None:
        header = request.headers.get("authorization", "")
        if not header:
            return None
        scheme, _, token = header.partition(" ")
        user = self.review(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise Unauthorized()
        return user

    def review(self, token: str) -> UserInfo | None:
        wanted = token.encode("utf-8")
        return next(
            (user for known, user in self._tokens.items() if hmac.compare_digest(known.encode("utf-8"), wanted)), None
        )


def identify(request: Request, authenticator: Authenticator) -> UserInfo:
    """The user of the connection, else of the headers, else anonymous. Raises Unauthorized."""
    return request.user or authenticator.authenticate(request) or ANONYMOUS


def impersonated(request: Request) -> UserInfo | None:
    """Whom the Impersonate-* headers name; None without them. Raises BadRequest if they name no user."""
    headers = request.headers
    if not any(key.startswith(_IMPERSONATE) for key in headers):
        return None
    name = headers.get("impersonate-user", "")
    groups = tuple(filter(None, headers.get("impersonate-group", "").split("\n")))
    uid = headers.get("impersonate-uid", "")
    extra = {
        unquote(key[len(_EXTRA) :]): tuple(value.split("\n"))
        for key, value in headers.items()
        if key.startswith(_EXTRA)
    }
    if not name:
        if groups or uid or extra:
            raise BadRequest("requested impersonation of groups, uid or extra without impersonating a user")
        return None
    user = UserInfo(name, groups, uid, extra)
    return user if name == ANONYMOUS.name else _authenticated(user)


def _authenticated(user: UserInfo) -> UserInfo:
    if AUTHENTICATED in user.groups:
        return user
    return UserInfo(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)
