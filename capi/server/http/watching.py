"""Counts open watches around their producers."""

from capi.kube.messages import Producer, Sink
from capi.server.http.metrics import Metrics


class Counted:
    """A Producer that is counted in `Metrics.watches` from its start to its end, whoever ends it."""

    def __init__(self, producer: Producer, metrics: Metrics) -> None:
        self._producer, self._metrics = producer, metrics
        self._sink: Sink | None = None

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self._metrics.watches += 1
        self._producer.start(self)

    def stop(self) -> None:
        self._release()
        self._producer.stop()

    def resume(self) -> None:
        self._producer.resume()

    def write(self, data: bytes) -> bool:
        return self._sink is not None and self._sink.write(data)

    def end(self) -> None:
        sink = self._release()
        if sink is not None:
            sink.end()

    def _release(self) -> Sink | None:
        sink, self._sink = self._sink, None
        if sink is not None:
            self._metrics.watches -= 1
        return sink
