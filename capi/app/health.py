"""Health and metrics of `capi manager` over plain HTTP: /healthz, /readyz, /metrics."""

from prometheus_client import generate_latest

from capi.kube.messages import Answer, Request, Response
from capi.runtime.manager import Manager
from capi.server.http.listener import Listener, serve

_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


class HealthHandler:
    """/healthz: caches are in contact with the API server. /readyz: caches are filled (standing by for the lease counts)."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    async def handle(self, request: Request) -> Answer:
        match request.path:
            case "/healthz" | "/livez":
                trouble = self._manager.trouble()
                return _answer(not trouble, "; ".join(f"{kind}: {why}" for kind, why in trouble.items()))
            case "/readyz":
                return _answer(self._manager.synced, "caches are not filled yet")
            case "/metrics":
                return Response(200, generate_latest(self._manager.metrics.registry), _TEXT)
        return Response(404, b"404 page not found\n", _TEXT)


def _answer(good: bool, trouble: str) -> Response:
    return Response(200, b"ok", _TEXT) if good else Response(503, f"{trouble}\n".encode(), _TEXT)


async def serve_health(manager: Manager, host: str, port: int) -> Listener:
    """Raises ListenError when the port is taken."""
    return await serve(HealthHandler(manager), host, port)
