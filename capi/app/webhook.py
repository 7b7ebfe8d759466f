"""The webhook server: admission and conversion for API servers that are not ours.

`capi manager --webhook-port` and `capi webhook` run it. It makes its own certificate, and tells the API server of it: into the
configurations and CRDs that `capi manifests` made, or, with a URL, into configurations of its own.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from urllib.parse import urlsplit

import orjson

from capi.admission import review
from capi.admission.convert import convert_review
from capi.admission.review import Review
from capi.admission.webhooks import CONVERT_PATH, WEBHOOKS, Endpoint, configurations, conversion, path_of
from capi.aio.clock import Clock
from capi.api import crds
from capi.api.builtin import Secret
from capi.api.core import labels
from capi.app import webhook_certificates as certificates
from capi.app.progress import Progress
from capi.app.settings import WebhookSettings
from capi.app.webhook_versions import ReferencedVersions
from capi.client.client import Client, Query
from capi.kube.errors import ApiError, BadRequest, CapiError, Conflict, InternalError, NotFound
from capi.kube.messages import Answer, Request, Response
from capi.kube.types import Object, ResourceType
from capi.server.http import tls
from capi.server.http.listener import Listener, serve

LOOK_AGAIN = timedelta(hours=1)
"""How often the certificate and what the API server knows of it are looked at when nothing happens."""
PAUSE = timedelta(seconds=5)
"""Least time between two looks, and after a failure."""
LABELS: Mapping[str, str] = {labels.PROVIDER: labels.PROVIDER_CORE, "app.kubernetes.io/name": "capi"}
MANAGER = "capi-webhook"
TRIES = 3
_GROUP, _CRD_GROUP = "admissionregistration.k8s.io", "apiextensions.k8s.io"
_MUTATING = ResourceType(
    _GROUP, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
_VALIDATING = ResourceType(
    _GROUP, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
_CRD = ResourceType(_CRD_GROUP, "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)


class WebhookHandler:
    """POST of a review to its path; GET /healthz."""

    def __init__(self, versions: ReferencedVersions) -> None:
        self._versions = versions
        self._reviews: dict[str, Review] = {}
        for hook in WEBHOOKS:
            self._reviews[path_of("mutate", hook)] = review.mutate
            self._reviews[path_of("validate", hook)] = review.validate

    async def handle(self, request: Request) -> Answer:
        if request.path in ("/healthz", "/readyz"):
            return Response(200, b"ok", (("Content-Type", "text/plain"),))
        answer = self._reviews.get(request.path)
        if request.method != "POST" or (answer is None and request.path != CONVERT_PATH):
            return Response(404, b'{"error":"no such webhook"}')
        try:
            body = _parsed(request.body)
            found = answer(body) if answer is not None else await self._convert(body)
        except ApiError as error:
            return Response(error.status_code, orjson.dumps(error.status))
        except CapiError as error:
            return Response(500, orjson.dumps(InternalError(f"versions cannot be looked up: {error}").status))
        return Response(200, orjson.dumps(found))

    async def _convert(self, body: Object) -> Object:
        asked = body.get("request")
        objects = asked.get("objects") if isinstance(asked, dict) else None
        if isinstance(objects, list):
            await self._versions.load(objects)
        return convert_review(body, self._versions)


def _parsed(body: bytes) -> Object:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadRequest("the body must be a JSON object")
    return found


class WebhookServer:
    """Serves, and keeps certificate and registrations right until it is closed."""

    def __init__(self, client: Client, clock: Clock, settings: WebhookSettings) -> None:
        self._client = client
        self._clock = clock
        self._settings = settings
        self._handler = WebhookHandler(ReferencedVersions(client, clock))
        self._context: ssl.SSLContext | None = None
        self._news = asyncio.Event()
        self.listener: Listener | None = None

    @property
    def hosts(self) -> list[str]:
        """Names under which API servers reach it."""
        service, namespace = Endpoint().service, self._settings.namespace
        found = [f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"]
        url = urlsplit(self._settings.url).hostname
        return [*found, *([url] if url else [])]

    async def start(self, progress: Progress) -> None:
        """Raises ListenError, ApiError, TransportError."""
        made = await self._certificates()
        self._context = tls.server_context(made.serving, None)
        self.listener = await serve(self._handler, self._settings.host, self._settings.port, self._context)
        progress.step(f"webhooks at https://{self.listener.host}:{self.listener.port}")
        missing = await self._register(made)
        for what in missing:
            progress.note(f"{what} is not there: capi manifests | kubectl apply --server-side -f -")
        if not missing:
            progress.step("webhooks are registered")

    async def run(self) -> None:
        """Renew what has to be renewed and set right what others changed, until cancelled."""
        name = f"metadata.name={certificates.NAME}"
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(Secret.resource, self._settings.namespace, (("fieldSelector", name),)))
            for kind in (_MUTATING, _VALIDATING):
                group.create_task(self._follow(kind, None, (("labelSelector", "app.kubernetes.io/name=capi"),)))
            group.create_task(self._follow(_CRD, None, (("labelSelector", labels.PROVIDER),)))
            await self._look()

    async def _look(self) -> None:
        patience = LOOK_AGAIN
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), patience.total_seconds())
            self._news.clear()
            try:
                made = await self._certificates()
                if self._context is not None:
                    tls.present(self._context, made.serving)
                await self._register(made)
                patience = LOOK_AGAIN
            except CapiError:
                patience = PAUSE
            await self._clock.sleep(PAUSE.total_seconds())

    async def _follow(self, kind: ResourceType, namespace: str | None, query: Query) -> None:
        """Every change is a reason to look: a Secret or configuration that is deleted or replaced stops all writes."""
        while True:
            with contextlib.suppress(CapiError):
                async with self._client.watch(kind, namespace, query) as events:
                    async for _ in events:
                        self._news.set()
            await self._clock.sleep(PAUSE.total_seconds())

    async def close(self) -> None:
        if self.listener is not None:
            await self.listener.close()

    async def _certificates(self) -> certificates.Certificates:
        settings = self._settings
        return await certificates.ensure(self._client, settings.namespace, self.hosts, self._clock.now())

    async def _register(self, made: certificates.Certificates) -> list[str]:
        """Tell the API server whom to call and trust. Returns what should be there and is not."""
        endpoint = Endpoint(namespace=self._settings.namespace, url=self._url(), ca=made.bundle)
        wanted = configurations(endpoint, LABELS)
        missing = []
        for kind, body in zip((_MUTATING, _VALIDATING), wanted, strict=True):
            if endpoint.url:
                await self._client.apply(kind, body, manager=MANAGER)
            elif not await self._trust(kind, body["metadata"]["name"], made.bundle):
                missing.append(f"{kind.kind} {body['metadata']['name']}")
        for definition in crds.all():
            if len(definition["spec"]["versions"]) > 1:
                await self._convert(definition["metadata"]["name"], endpoint)
        return missing

    def _url(self) -> str:
        """The URL to register; with port 0 in it, the port that is listened on."""
        url, listener = self._settings.url, self.listener
        if not url or listener is None:
            return url
        return f"https://{urlsplit(url).hostname}:{urlsplit(url).port or listener.port}"

    async def _trust(self, kind: ResourceType, name: str, bundle: str) -> bool:
        """Fill in the authority where it is another one; False if there is no such configuration."""
        for _ in range(TRIES):
            try:
                found: Object = await self._client.get(kind, name)
                await self._fill_in(kind, found, bundle)
            except NotFound:
                return False
            except Conflict:
                continue  # another replica was faster
            return True
        raise Conflict(f"{kind.kind} {name} keeps changing; look who writes it")

    async def _fill_in(self, kind: ResourceType, found: Object, bundle: str) -> None:
        hooks = [
            {**hook, "clientConfig": {**hook["clientConfig"], "caBundle": bundle}}
            for hook in found.get("webhooks") or ()
        ]
        if hooks != (found.get("webhooks") or []):
            metadata = found["metadata"]
            version = {"resourceVersion": metadata["resourceVersion"]}
            await self._client.patch(kind, metadata["name"], "", {"metadata": version, "webhooks": hooks})

    async def _convert(self, name: str, endpoint: Endpoint) -> None:
        """Have the API server ask here for the other version of a kind."""
        try:
            found: Object = await self._client.get(_CRD, name)
        except NotFound:
            return
        wanted = conversion(endpoint)
        if found["spec"].get("conversion") != wanted and len(found["spec"]["versions"]) > 1:
            await self._client.patch(_CRD, name, "", {"spec": {"conversion": wanted}})


@asynccontextmanager
async def serving(
    client: Client, clock: Clock, settings: WebhookSettings, progress: Progress
) -> AsyncIterator[WebhookServer]:
    """A webhook server that runs as long as the block. Raises ListenError, ApiError, TransportError."""
    server = WebhookServer(client, clock, settings)
    await server.start(progress)
    try:
        yield server
    finally:
        await server.close()
