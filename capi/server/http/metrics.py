"""What the server counts: requests by verb, resource, answer and client, their durations, and open watches.

Names and labels are kube-apiserver's where it has them (apiserver_request_total …). The counters are plain dicts that a
test reads through `Metrics.writes`: an idle system writes nothing but leases.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
_MOST_AGENTS = 200
"""Distinct user agents counted by name; a client cannot grow the label without end."""
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Labels(NamedTuple):
    """One series of apiserver_request_total. `verb` is upper case: GET, LIST, WATCH, APPLY …"""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    code: int
    user_agent: str


class Metrics(Collector):
    """Counters of one server. Share one between servers to add them up."""

    def __init__(self) -> None:
        self.requests: Counter[Labels] = Counter()
        self.watches = 0
        self.registry = CollectorRegistry()
        self._agents: dict[str, str] = {}
        self._durations = Histogram(
            "apiserver_request_duration_seconds",
            "Time to the answer by verb, group and resource; watches are not in it.",
            ("verb", "group", "resource"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.registry.register(self)

    def count(self, labels: Labels, seconds: float | None) -> None:
        """A request was answered. `seconds` None for those that go on."""
        self.requests[labels] += 1
        if seconds is not None:
            self._durations.labels(labels.verb, labels.group, labels.resource).observe(seconds)

    def agent(self, header: str) -> str:
        """The label for a User-Agent: its product name, or "other" once there are too many."""
        known = self._agents.get(header)
        if known is not None:
            return known
        if len(self._agents) >= _MOST_AGENTS:
            return "other"
        return self._agents.setdefault(header, header.partition("/")[0][:64])

    def writes(self, *, but: Iterable[str] = ("leases",)) -> dict[str, int]:
        """Successful writes so far as "VERB resource[/subresource]", without the resources in `but`."""
        skipped, found = set(but), Counter[str]()
        for labels, count in self.requests.items():
            if labels.verb in WRITES and labels.code < 400 and labels.resource not in skipped and labels.resource:
                found[f"{labels.verb} {'/'.join(filter(None, (labels.resource, labels.subresource)))}"] += count
        return dict(found)

    def collect(self) -> Iterator[Metric]:
        total = CounterMetricFamily("apiserver_request", "Answered requests.", labels=Labels._fields)
        for labels, count in self.requests.items():
            total.add_metric([str(value) for value in labels], count)
        yield total
        yield GaugeMetricFamily("apiserver_longrunning_requests", "Watches that are open.", value=self.watches)

    def render(self) -> bytes:
        """The Prometheus text of /metrics."""
        return generate_latest(self.registry)
