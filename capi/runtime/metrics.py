"""Metrics under the names controller-runtime gives them, so that existing dashboards and alerts keep working."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_PASS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_QUEUE = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


class Metrics:
    """All metrics of one manager, in one collector registry."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry = registry or CollectorRegistry()
        per_controller = ["controller"]
        queue = ["name", "controller"]
        self.passes = Counter(
            "controller_runtime_reconcile", "Passes by result", ["controller", "result"], registry=registry
        )
        self.errors = Counter(
            "controller_runtime_reconcile_errors", "Passes that failed", per_controller, registry=registry
        )
        self.terminal = Counter(
            "controller_runtime_terminal_reconcile_errors",
            "Passes that failed for good",
            per_controller,
            registry=registry,
        )
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of a pass",
            per_controller,
            buckets=_PASS,
            registry=registry,
        )
        self.workers = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers", per_controller, registry=registry
        )
        self.active = Gauge("controller_runtime_active_workers", "Workers busy", per_controller, registry=registry)
        self.writes = Counter(
            "capi_writes", "Writes sent by controllers", ["controller", "verb", "resource"], registry=registry
        )
        self.skipped = Counter(
            "capi_writes_skipped", "Applies not sent because they change nothing", per_controller, registry=registry
        )
        self.depth = Gauge("workqueue_depth", "Keys waiting", queue, registry=registry)
        self.adds = Counter("workqueue_adds", "Keys queued", queue, registry=registry)
        self.waited = Histogram(
            "workqueue_queue_duration_seconds", "Time a key waits", queue, buckets=_QUEUE, registry=registry
        )
        self.retries = Counter("workqueue_retries", "Keys queued after a failure", queue, registry=registry)
        self.leader = Gauge("leader_election_master_status", "1 while leading", ["name"], registry=registry)

    def controller(self, name: str, workers: int) -> "ControllerMetrics":
        self.workers.labels(name).set(workers)
        return ControllerMetrics(self, name)


class ControllerMetrics:
    """One controller's metrics, with their labels bound once. Also the observer of its queue."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics = metrics
        self._name = name
        self._results = {
            result: metrics.passes.labels(name, result) for result in ("success", "error", "requeue", "requeue_after")
        }
        self._errors = metrics.errors.labels(name)
        self._terminal = metrics.terminal.labels(name)
        self._seconds = metrics.seconds.labels(name)
        self._active = metrics.active.labels(name)
        self._skipped = metrics.skipped.labels(name)
        self._depth = metrics.depth.labels(name, name)
        self._adds = metrics.adds.labels(name, name)
        self._waited = metrics.waited.labels(name, name)
        self._retries = metrics.retries.labels(name, name)

    def began(self) -> None:
        self._active.inc()

    def ended(self, result: str, seconds: float) -> None:
        """A pass is over; `result` is success, error, terminal, requeue or requeue_after."""
        self._active.dec()
        self._seconds.observe(seconds)
        if result == "terminal":
            self._terminal.inc()
            result = "error"
        self._results[result].inc()
        if result == "error":
            self._errors.inc()

    def wrote(self, verb: str, resource: str) -> None:
        self._metrics.writes.labels(self._name, verb, resource).inc()

    def skipped(self) -> None:
        self._skipped.inc()

    def added(self, depth: int) -> None:
        self._adds.inc()
        self._depth.set(depth)

    def taken(self, waited: float, depth: int) -> None:
        self._waited.observe(waited)
        self._depth.set(depth)

    def retried(self) -> None:
        self._retries.inc()
