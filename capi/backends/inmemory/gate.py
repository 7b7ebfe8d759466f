"""What stands before a simulated cluster's API server: shut, nobody gets an answer and all watches end.

The server itself and its data go on behind it. For callers in this process; sockets are closed by whoever listens.
"""

from dataclasses import replace

import orjson

from capi.kube.errors import ServiceUnavailable
from capi.kube.messages import Answer, Handler, Producer, Request, Response, Sink


class Gate:
    """A Handler in front of another one. Open at first."""

    def __init__(self, handler: Handler, name: str) -> None:
        self._handler = handler
        self._name = name
        self._streams: set[_Cuttable] = set()
        self._open = True

    def is_open(self) -> bool:
        return self._open

    def shut(self) -> None:
        """From now on everything is answered with 503. Idempotent."""
        self._open = False
        for stream in list(self._streams):
            stream.cut()

    def open(self) -> None:
        """Idempotent."""
        self._open = True

    async def handle(self, request: Request) -> Answer:
        """See Handler."""
        if not self.is_open():
            return self._refusal()
        answer = await self._handler.handle(request)
        if not self.is_open():  # shut meanwhile: the answer is lost, as it is when a server goes down
            if not isinstance(answer, Response):
                answer.producer.stop()
            return self._refusal()
        if isinstance(answer, Response):
            return answer
        return replace(answer, producer=_Cuttable(answer.producer, self._streams))

    def _refusal(self) -> Response:
        down = ServiceUnavailable(f"the API server of cluster {self._name} does not answer: an outage is simulated")
        return Response(down.status_code, orjson.dumps(down.status))


class _Cuttable:
    """A Producer whose reader sees an end of the stream when it is cut."""

    def __init__(self, inner: Producer, siblings: "set[_Cuttable]") -> None:
        self._inner = inner
        self._siblings = siblings
        self._sink: Sink | None = None
        self._over = False
        siblings.add(self)

    def start(self, sink: Sink) -> None:
        if self._over:
            sink.end()
            return
        self._sink = sink
        self._inner.start(sink)

    def resume(self) -> None:
        if not self._over:
            self._inner.resume()

    def stop(self) -> None:
        self._over = True
        self._siblings.discard(self)
        self._inner.stop()

    def cut(self) -> None:
        self.stop()
        if self._sink is not None:
            self._sink.end()
