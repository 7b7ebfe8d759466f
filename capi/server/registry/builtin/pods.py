"""Pods and pod templates: defaults, quality of service, and what of a pod may change.

Source: pkg/apis/core/v1/defaults.go, pkg/registry/core/pod/strategy.go, ValidatePod and ValidatePodUpdate in
pkg/apis/core/validation/validation.go, and the admission plug-ins Priority and DefaultTolerationSeconds.
Volumes, probes and security contexts are checked for type only.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from capi.kube import quantity, validation
from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.builtin.fields import at, elements, section, text, thawed, with_member
from capi.server.registry.schema import causes

_CONTAINERS = ("initContainers", "containers")
_TAINTS_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
SELECTABLE = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
)  # fmt: skip


def default(obj: Object) -> Object:
    """A pod with every default filled in."""
    pod = thawed(obj)
    spec = pod.setdefault("spec", {})
    default_spec(spec)
    _default_requests(spec)
    spec.setdefault("enableServiceLinks", True)
    return pod


def default_spec(spec: Object) -> None:
    """Defaults that pods and pod templates share; changes `spec`."""
    _fill(
        spec,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        securityContext={},
        terminationGracePeriodSeconds=30,
        schedulerName="default-scheduler",
    )
    for member in (*_CONTAINERS, "ephemeralContainers"):
        for container in elements(spec, member):
            _default_container(container)
    for volume in elements(spec, "volumes"):
        _default_volume(volume)
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _fill(target: Object, **defaults: Any) -> None:
    for name, value in defaults.items():
        if target.get(name) in (None, ""):
            target[name] = value


def _default_container(container: Object) -> None:
    tag = _tag(str(container.get("image") or ""))
    _fill(
        container,
        imagePullPolicy="Always" if tag == "latest" else "IfNotPresent",
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        resources={},
    )
    for port in elements(container, "ports"):
        _fill(port, protocol="TCP")
    for env in elements(container, "env"):
        if isinstance(ref := at(env, "valueFrom", "fieldRef"), dict):
            _fill(ref, apiVersion="v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(probe := container.get(name), dict):
            _fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            if isinstance(get := probe.get("httpGet"), dict):
                _fill(get, path="/", scheme="HTTP")


def _tag(image: str) -> str:
    """The tag of an image reference: "latest" when it names neither tag nor digest."""
    name, _, digest = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return tag if colon else "" if digest else "latest"


def _default_volume(volume: Object) -> None:
    if not any(isinstance(value, dict) for name, value in volume.items() if name != "name"):
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(source := volume.get(name), dict):
            _fill(source, defaultMode=0o644)
    for source in elements(volume, "projected", "sources"):
        if isinstance(token := source.get("serviceAccountToken"), dict):
            _fill(token, expirationSeconds=3600)
    if isinstance(host := volume.get("hostPath"), dict):
        host.setdefault("type", "")


def _default_requests(spec: Object) -> None:
    """Limits stand for missing requests; host networking makes every container port a host port."""
    for member in _CONTAINERS:
        for container in elements(spec, member):
            if limits := at(container, "resources", "limits"):
                container["resources"]["requests"] = {**limits, **section(container["resources"], "requests")}
            for port in elements(container, "ports") if spec.get("hostNetwork") else ():
                _fill(port, hostPort=port.get("containerPort"))


def field(obj: Object, path: str) -> str:
    """Field selectors: a missing flag is false; podIPs is the list as Go prints it."""
    if path == "status.podIPs":
        return ",".join(str(ip.get("ip") or "") for ip in elements(obj, "status", "podIPs"))
    return text(obj, path) or ("false" if path == "spec.hostNetwork" else "")


def create(obj: Object) -> Object:
    """Status Pending with its quality of service; priority 0; tolerates unready nodes for five minutes."""
    spec = dict(section(obj, "spec"))
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations: list[Object] = list(spec.get("tolerations") or ())
    for key in _TAINTS_TOLERATED:
        if not any(_tolerates(t, key) for t in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    spec["tolerations"] = tolerations
    return {**obj, "spec": spec, "status": {"phase": "Pending", "qosClass": quality(spec)}}


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")


def update(new: Object, old: Object) -> Object:
    return with_member(new, "status", old.get("status"))


def quality(spec: Object) -> str:
    """status.qosClass: BestEffort without requests and limits, Guaranteed when every container's limits equal them."""
    totals: dict[str, dict[str, Decimal]] = {"requests": {}, "limits": {}}
    guaranteed = True
    for container in (c for member in _CONTAINERS for c in elements(spec, member)):
        for part, total in totals.items():
            for name, amount in section(section(container, "resources"), part).items():
                if name in ("cpu", "memory") and (value := quantity.parse(str(amount))) > 0:
                    total[name] = total.get(name, Decimal(0)) + value
        limits = section(section(container, "resources"), "limits")
        guaranteed &= all(name in limits and quantity.parse(str(limits[name])) > 0 for name in ("cpu", "memory"))
    if not totals["requests"] and not totals["limits"]:
        return "BestEffort"
    return "Guaranteed" if guaranteed and totals["requests"] == totals["limits"] else "Burstable"


def validate(obj: Object, old: Object | None) -> list[Cause]:
    found = list(spec_causes(section(obj, "spec"), "spec"))
    return found + list(_update_causes(section(obj, "spec"), section(old, "spec"))) if old is not None else found


def spec_causes(spec: Object, path: str) -> Iterator[Cause]:
    """What any pod spec needs: named containers with images."""
    if not spec.get("containers"):
        yield causes.required(f"{path}.containers")
    seen: set[str] = set()
    for member in _CONTAINERS:
        for index, container in enumerate(elements(spec, member)):
            where, name = f"{path}.{member}[{index}]", str(container.get("name") or "")
            if not name:
                yield causes.required(f"{where}.name")
            elif name in seen:
                yield causes.duplicate(f"{where}.name", name)
            else:
                yield from (causes.invalid(f"{where}.name", name, wrong) for wrong in validation.dns_label(name))
            seen.add(name)
            if not container.get("image"):
                yield causes.required(f"{where}.image")
    for name, values in _ENUMS.items():
        if (value := spec.get(name)) is not None and value not in values:
            yield causes.not_supported(f"{path}.{name}", value, values)


_ENUMS = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
}


def _update_causes(new: Object, old: Object) -> Iterator[Cause]:
    for member in _CONTAINERS:
        if len(new.get(member) or ()) != len(old.get(member) or ()):
            yield causes.forbidden(f"spec.{member}", "pod updates may not add or remove containers")
            return
    deadline, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if before is not None and deadline is None:
        yield causes.invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")
    elif before is not None and deadline > before:
        yield causes.invalid("spec.activeDeadlineSeconds", deadline, "must be less than or equal to previous value")
    kept = [_timeless(t) for t in new.get("tolerations") or ()]
    if any(_timeless(t) not in kept for t in old.get("tolerations") or ()):
        yield causes.forbidden(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )
    if _comparable(new, old) != old:
        yield causes.forbidden("spec", f"pod updates may not change fields other than {_UPDATABLE}")


def _timeless(toleration: Object) -> Object:
    return {k: v for k, v in toleration.items() if k != "tolerationSeconds" and v not in (None, "")}


def _comparable(new: Object, old: Object) -> Object:
    """`new` with everything that may change taken from `old`."""
    munged = dict(new)
    for member in _CONTAINERS:
        if munged.get(member):
            pairs = zip(munged[member], old[member], strict=True)
            munged[member] = [with_member(mine, "image", theirs.get("image")) for mine, theirs in pairs]
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        munged = with_member(munged, name, old.get(name))
    grace = old.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = grace
    return munged
