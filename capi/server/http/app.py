"""ApiServer: a `messages.Handler` over a Registry. HTTP, in-process callers and tests all come through here.

A request is authenticated, resolved, authorized, carried out and counted, in this order; nothing it can contain makes `begin`
or `handle` raise. Reads are answered at once, which lets the listener do without a task.
"""

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Mapping
from time import perf_counter

import orjson

from capi.aio.clock import Clock
from capi.kube import yaml
from capi.kube.errors import ApiError, InternalError, MethodNotAllowed, RequestEntityTooLarge, Timeout
from capi.kube.messages import Answer, Request, Response, Stream, UserInfo
from capi.server.http import (
    authn,
    authz,
    bodies,
    calls,
    discovery,
    formats,
    health,
    openapi,
    responses,
    reviews,
    targets,
)
from capi.server.http.authn import Authenticator, StaticTokens
from capi.server.http.authz import Attributes, Authorizer, MastersOnly
from capi.server.http.calls import Call, NoSuchPath
from capi.server.http.catalog import Catalogs
from capi.server.http.ids import AuditIds
from capi.server.http.metrics import Labels, Metrics
from capi.server.http.targets import Target
from capi.server.http.tls import AUTHENTICATED
from capi.server.http.verbs import Verbs, warning_value
from capi.server.http.watching import Counted
from capi.server.registry.interface import Registry

KUBERNETES_VERSION = "v1.35.0"
"""Whose semantics are served."""
REQUEST_SECONDS = 60.0
GZIP_BYTES = 128 * 1024
BODY_BYTES = 3 * 1024 * 1024
_PRETTY_AGENTS = ("curl", "Wget", "Mozilla")
_CACHE = ("Cache-Control", "no-cache, private")
_log = logging.getLogger(__name__)


class ApiServer:
    """See the module. Without `authorizer` only system:masters may work; without `authenticator` there are no tokens."""

    def __init__(  # noqa: PLR0913 - the ports of a server
        self,
        registry: Registry,
        *,
        clock: Clock,
        authenticator: Authenticator | None = None,
        authorizer: Authorizer | None = None,
        metrics: Metrics | None = None,
        checks: Mapping[str, health.Check] | None = None,
        version: str = KUBERNETES_VERSION,
    ) -> None:
        self.registry = registry
        self.metrics = metrics or Metrics()
        self._authenticator = authenticator or StaticTokens()
        self._authorizer = authorizer or MastersOnly()
        self._reviewer = reviews.Reviewer(self._authenticator, self._authorizer)
        self._checks = checks or {}
        self._version = version
        self._catalogs = Catalogs(registry)
        self._verbs = Verbs(registry, clock.now)
        self._ids = AuditIds()

    async def handle(self, request: Request) -> Answer:
        outcome = self.begin(request)
        return outcome if isinstance(outcome, Response | Stream) else await outcome

    def begin(self, request: Request) -> Answer | Awaitable[Answer]:
        """The answer if it needs no waiting, else an awaitable of it. Never raises."""
        exchange = _Exchange(self, request, perf_counter())
        try:
            outcome = self._dispatch(request, exchange)
        except Exception as error:
            return exchange.finish(_failure(error))
        if isinstance(outcome, Response | Stream):
            return exchange.finish(outcome)
        return _awaited(outcome, exchange)

    def _dispatch(self, request: Request, exchange: "_Exchange") -> Answer | Awaitable[Answer]:
        if len(request.body) > BODY_BYTES:
            raise RequestEntityTooLarge(f"Request entity too large: limit is {BODY_BYTES}")
        user = self._user(request)
        target = targets.parse(request.path)
        if target is None:
            return self._path(request, user)
        verb = targets.verb_of(request, target)
        if verb is None:
            raise MethodNotAllowed()
        exchange.verb = verb
        authz.check(self._authorizer, calls.attributes(user, target, verb, request))
        info = self.registry.lookup(target.group, target.version, target.resource) or reviews.lookup(
            *target.prefix, target.resource
        )
        if info is None:
            raise calls.unknown_resource(self._catalogs.current(), target)
        exchange.target = target
        exchange.deprecation = info.deprecation_warning
        calls.check_path(info, target, verb)
        call = Call(request, user, target, verb, info, formats.choose(request.headers.get("accept", ""), verb))
        if target.group in reviews.GROUPS:
            return responses.json(self._reviewer.answer(info, bodies.decode(request, info.type), user), 201)
        return self._verbs.read(call) if verb in ("get", "list", "watch") else self._verbs.write(call)

    def _user(self, request: Request) -> UserInfo:
        user = authn.identify(request, self._authenticator)
        other = authn.impersonated(request)
        if other is None:
            return user
        authz.check(self._authorizer, Attributes(user, "impersonate", resource="users", name=other.name))
        for group in other.groups:
            if group != AUTHENTICATED:
                authz.check(self._authorizer, Attributes(user, "impersonate", resource="groups", name=group))
        return other

    def _path(self, request: Request, user: UserInfo) -> Response:
        """Paths that are no resource."""
        authz.check(self._authorizer, Attributes(user, request.method.lower(), path=request.path))
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed()
        path = request.path.rstrip("/") or "/"
        if path in health.PATHS:
            return health.answer(request, self._checks)
        if path == "/version":
            return responses.json(health.version(self._version))
        if path == "/metrics":
            return Response(200, self.metrics.render(), (("Content-Type", "text/plain; version=0.0.4; charset=utf-8"),))
        catalog = self._catalogs.current()
        if path == "/":
            roots = [f"/apis/{group}/{version}" if group else f"/api/{version}" for group, version in catalog.resources]
            return responses.json(
                {
                    "paths": sorted(
                        ["/api", "/apis", *roots, *health.PATHS, "/metrics", "/openapi/v2", "/openapi/v3", "/version"]
                    )
                }
            )
        found = openapi.answer(request, catalog) if path.startswith("/openapi/") else discovery.answer(request, catalog)
        return found or responses.page_not_found()


class _Exchange:
    """What is learnt about a request on its way; turns its outcome into the final answer and counts it."""

    __slots__ = ("_request", "_server", "_started", "deprecation", "target", "verb")

    def __init__(self, server: ApiServer, request: Request, started: float) -> None:
        self._server, self._request, self._started = server, request, started
        self.target: Target | None = None
        """What is served; paths that are not must not become labels of metrics."""
        self.verb = ""
        self.deprecation = ""

    def finish(self, answer: Answer) -> Answer:
        self._count(answer)
        headers = (
            answer.headers if any(name == "Cache-Control" for name, _ in answer.headers) else (*answer.headers, _CACHE)
        )
        headers = (*headers, ("Audit-Id", self._server._ids.next(self._request)))
        if self.deprecation:
            headers = (*headers, ("Warning", warning_value(self.deprecation)))
        if isinstance(answer, Stream):
            return Stream(Counted(answer.producer, self._server.metrics), answer.status, headers)
        return _compressed(self._request, _formatted(self._request, Response(answer.status, answer.body, headers)))

    def _count(self, answer: Answer) -> None:
        target, request, metrics = self.target, self._request, self._server.metrics
        agent = metrics.agent(request.headers.get("user-agent", ""))
        where = (
            (target.group, target.version, target.resource, target.subresource)
            if target and answer.status != 404
            else ("", "", "", "")
        )
        seconds = None if isinstance(answer, Stream) else perf_counter() - self._started
        metrics.count(Labels(self._shown_verb(), *where, answer.status, agent), seconds)

    def _shown_verb(self) -> str:
        if self.verb in ("list", "watch", "deletecollection"):
            return self.verb.upper()
        if self.verb == "patch" and self._request.headers.get("content-type", "").startswith("application/apply-patch"):
            return "APPLY"
        return self._request.method if self._request.method in _METHODS else "other"


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


async def _awaited(outcome: Awaitable[Answer], exchange: _Exchange) -> Answer:
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            return exchange.finish(await outcome)
    except TimeoutError:
        return exchange.finish(_failure(Timeout("Timeout: request did not complete within the allotted timeout")))
    except Exception as error:
        return exchange.finish(_failure(error))


def _failure(error: Exception) -> Response:
    if isinstance(error, ApiError):
        return responses.failure(error)
    if isinstance(error, NoSuchPath):
        return error.answer
    _log.error("Serving a request failed", exc_info=error)
    return responses.failure(InternalError(f"Internal error occurred: {type(error).__name__}"))


def _formatted(request: Request, answer: Response) -> Response:
    """YAML if asked for; indented for people with curl or `?pretty`."""
    if not answer.body or answer.headers[0] != responses.JSON:
        return answer
    form = formats.negotiate(request.headers.get("accept", ""))
    if form is not None and form.media == formats.YAML:
        body = yaml.dump(orjson.loads(answer.body)).encode("utf-8")
        return Response(answer.status, body, (("Content-Type", formats.YAML), *answer.headers[1:]))
    pretty = request.option("pretty")
    if targets.truthy(pretty) or (not pretty and request.headers.get("user-agent", "").startswith(_PRETTY_AGENTS)):
        body = orjson.dumps(orjson.loads(answer.body), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        return Response(answer.status, body, answer.headers)
    return answer


def _compressed(request: Request, answer: Response) -> Response:
    if len(answer.body) <= GZIP_BYTES or "gzip" not in request.headers.get("accept-encoding", ""):
        return answer
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    body = packer.compress(answer.body) + packer.flush()
    return Response(answer.status, body, (*answer.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")))
