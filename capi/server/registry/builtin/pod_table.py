"""The computed cells of a pod's table row.

Source: printPod in pkg/printers/internalversion/printers.go of Kubernetes.
"""

from datetime import datetime

from capi.kube.types import Object
from capi.server.registry.builtin import ages
from capi.server.registry.builtin.fields import at, elements, section


def ready(obj: Object, now: datetime) -> str:
    """Ready over all containers; init containers that go on running count."""
    sidecars = _sidecars(obj)
    running = [
        s
        for s in elements(obj, "status", "containerStatuses")
        if s.get("ready") and at(s, "state", "running") is not None
    ]
    helpers = [
        s for s in elements(obj, "status", "initContainerStatuses") if s.get("name") in sidecars and s.get("ready")
    ]
    total = len(list(elements(obj, "spec", "containers"))) + len(sidecars)
    return f"{len(running) + len(helpers)}/{total}"


def _sidecars(obj: Object) -> set[str]:
    return {str(c.get("name")) for c in elements(obj, "spec", "initContainers") if c.get("restartPolicy") == "Always"}


def status(obj: Object, now: datetime) -> str:
    """The phase, or what holds the pod up."""
    phase = str(at(obj, "status", "phase") or "")
    reason = str(at(obj, "status", "reason") or phase)
    if any(
        c.get("reason") == "SchedulingGated"
        for c in elements(obj, "status", "conditions")
        if c.get("type") == "PodScheduled"
    ):
        reason = "SchedulingGated"
    initializing = _initializing(obj)
    reason = initializing or _of_containers(obj, reason)
    if at(obj, "metadata", "deletionTimestamp"):
        if at(obj, "status", "reason") == "NodeLost":
            return "Unknown"
        if phase not in ("Succeeded", "Failed"):
            return "Terminating"
    return reason


def _initializing(obj: Object) -> str:
    """What the first unfinished init container says; "" when all are done or there is none."""
    sidecars = _sidecars(obj)
    total = len(list(elements(obj, "spec", "initContainers")))
    for index, container in enumerate(elements(obj, "status", "initContainerStatuses")):
        state = section(container, "state")
        ended = state.get("terminated")
        if (ended and ended.get("exitCode") == 0) or (container.get("name") in sidecars and container.get("started")):
            continue
        if ended:
            return f"Init:{_ending(ended)}"
        waiting = str(section(state, "waiting").get("reason") or "")
        return f"Init:{waiting}" if waiting not in ("", "PodInitializing") else f"Init:{index}/{total}"
    return ""


def _ending(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _of_containers(obj: Object, reason: str) -> str:
    running, failed = False, ""
    for container in reversed(list(elements(obj, "status", "containerStatuses"))):
        state = section(container, "state")
        if waiting := section(state, "waiting").get("reason"):
            reason = str(waiting)
        elif ended := state.get("terminated"):
            reason = _ending(ended)
            failed = reason if ended.get("exitCode") else failed
        elif container.get("ready") and state.get("running") is not None:
            running = True
    if reason != "Completed":
        return reason
    if running and any(
        c.get("status") == "True" for c in elements(obj, "status", "conditions") if c.get("type") == "Ready"
    ):
        return "Running"
    return failed or ("NotReady" if running else reason)


def restarts(obj: Object, now: datetime) -> str:
    """How often containers restarted, and how long ago the last time."""
    statuses = list(elements(obj, "status", "containerStatuses"))
    sidecars, initializing = _sidecars(obj), bool(_initializing(obj))
    first = elements(obj, "status", "initContainerStatuses")
    statuses += [s for s in first if initializing or s.get("name") in sidecars]
    count = sum(int(s.get("restartCount") or 0) for s in statuses)
    ends = [end for s in statuses if (end := at(s, "lastState", "terminated", "finishedAt"))]
    return f"{count} ({ages.since(max(ends), now)} ago)" if count and ends else str(count)


def readiness_gates(obj: Object, now: datetime) -> str:
    gates = [g.get("conditionType") for g in elements(obj, "spec", "readinessGates")]
    true = {c.get("type") for c in elements(obj, "status", "conditions") if c.get("status") == "True"}
    return f"{sum(g in true for g in gates)}/{len(gates)}" if gates else "<none>"
