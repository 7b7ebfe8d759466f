"""`capi manager`: the controllers against any Kubernetes API server, one of several at a time by lease."""

import asyncio
from contextlib import AsyncExitStack

from capi.aio.clock import SystemClock
from capi.app import compose
from capi.app.datadir import DataDir
from capi.app.health import serve_health
from capi.app.process import background, stop_signal
from capi.app.progress import Progress
from capi.app.settings import ManagerSettings, WebhookSettings
from capi.app.webhook import serving
from capi.client import http, kubeconfig
from capi.client.client import Client
from capi.client.config import ClusterConfig
from capi.controllers.core.nodes import NodeSync
from capi.kube.errors import CapiError, NotFound
from capi.kube.types import ResourceType
from capi.runtime.election import Election

NAMESPACES = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)


class MissingKinds(CapiError):
    """The API server does not know Cluster API's kinds."""


async def manager(settings: ManagerSettings, progress: Progress) -> int:
    """Runs until a signal. Exit code 0. Raises CapiError; LeadershipLost when another manager may have taken over."""
    clock = SystemClock()
    stopped = stop_signal()
    config = kubeconfig.load(settings.kubeconfig, context=settings.context)
    async with AsyncExitStack() as stack:
        transport = http.connect(config)
        stack.push_async_callback(transport.close)
        client = Client(transport)
        await _check(client, config.server)
        start = await stack.enter_async_context(background())
        if settings.webhooks is not None:
            await _ensure_namespace(client, settings.webhooks.namespace)
            hooks = await stack.enter_async_context(serving(client, clock, settings.webhooks, progress))
            start(hooks.run(), "webhooks")
        if settings.data_dir is not None:
            DataDir(settings.data_dir).prepare()
        infra = await stack.enter_async_context(
            compose.infrastructure(clock, directory=settings.data_dir, host=settings.workload_host, docker=True)
        )
        election = (
            Election(namespace=settings.lease_namespace, name=settings.lease_name) if settings.leader_elect else None
        )
        if election is not None:
            await _ensure_namespace(client, settings.lease_namespace)
        running = compose.manager(
            transport,
            clock,
            infra,
            only=settings.controllers,
            election=election,
            namespace=settings.namespace,
            watch_filter=settings.watch_filter,
            sync=NodeSync(settings.sync_labels, settings.sync_annotations),
            tune_gc=True,
        )
        if settings.health_port is not None:
            health = await serve_health(running, settings.health_host, settings.health_port)
            stack.push_async_callback(health.close, 0.0)
            progress.step(f"health and metrics at http://{health.host}:{health.port}")
        progress.step(f"controllers run against {config.server}")
        task = start(running.run(), "controllers")
        await stopped.wait()
        running.stop()
        await asyncio.wait([task])
    return 0


async def webhook(settings: WebhookSettings, config: ClusterConfig, progress: Progress) -> int:
    """`capi webhook`: the webhooks without the controllers. Runs until a signal. Exit code 0. Raises CapiError."""
    stopped = stop_signal()
    async with AsyncExitStack() as stack:
        transport = http.connect(config)
        stack.push_async_callback(transport.close)
        client = Client(transport)
        await _ensure_namespace(client, settings.namespace)
        start = await stack.enter_async_context(background())
        hooks = await stack.enter_async_context(serving(client, SystemClock(), settings, progress))
        start(hooks.run(), "webhooks")
        await stopped.wait()
    return 0


async def _check(client: Client, server: str) -> None:
    """The server answers and knows our kinds. Raises TransportError, ApiError, MissingKinds."""
    try:
        await client.send("GET", "/apis/cluster.x-k8s.io/v1beta2")
    except NotFound as error:
        raise MissingKinds(
            f"{server} does not serve cluster.x-k8s.io/v1beta2; install the CRDs first:"
            " capi manifests --only crds | kubectl apply --server-side -f -"
        ) from error


async def _ensure_namespace(client: Client, name: str) -> None:
    try:
        await client.get(NAMESPACES, name)
    except NotFound:
        await client.apply(NAMESPACES, {"metadata": {"name": name}}, manager="capi-manager")
