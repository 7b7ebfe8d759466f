"""One simulated cluster's API server: registry, HTTP front and certificates over a store.

Clients authenticate with a certificate of the cluster's authority. The serving certificate is made at every start.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from capi.aio.clock import Clock
from capi.client.pki import KeyPair, issue_serving
from capi.kube.messages import Handler
from capi.server.http.app import ApiServer
from capi.server.http.listener import Listener, serve
from capi.server.http.tls import server_context
from capi.server.registry.registry import ApiRegistry
from capi.server.store.interface import Store


@dataclass(frozen=True, slots=True)
class Front:
    """An API server that has started and is not listening yet."""

    handler: Handler
    run: Callable[[], Awaitable[None]]
    """Its background work; runs until cancelled."""
    clock: Clock
    authority: KeyPair

    async def listen(self, host: str, port: int) -> Listener:
        """Serve it on `host`:`port`. Raises ListenError."""
        names = (host, "localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
        serving = issue_serving(
            self.authority, tuple(dict.fromkeys(names)), self.clock.now(), common_name="kube-apiserver"
        )
        return await serve(self.handler, host, port, server_context(serving, self.authority.certificate))


async def open_front(store: Store, clock: Clock, authority: KeyPair, version: str, resources: AsyncExitStack) -> Front:
    """Start an API server over `store`; what it opens is closed with `resources`."""
    registry = ApiRegistry(store, clock=clock)
    resources.push_async_callback(registry.close)
    await registry.start()
    return Front(ApiServer(registry, clock=clock, version=version), registry.run, clock, authority)
