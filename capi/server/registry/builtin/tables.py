"""Table columns of the built-in kinds, as kubectl shows them.

Source: pkg/printers/internalversion/printers.go of Kubernetes. A kind without an entry shows its creation time.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from capi.kube.types import GroupKind, Json, Object
from capi.server.registry.builtin import ages, pod_table
from capi.server.registry.builtin.fields import at, elements, section
from capi.server.registry.interface import Column

Cell: TypeAlias = Callable[[Object, datetime], Json]


class Entry(NamedTuple):
    """One column: `wide` ones are shown with -o wide only."""

    name: str
    cell: Cell
    type: str = "string"
    wide: bool = False


def columns(kind: GroupKind) -> tuple[Column, ...]:
    return tuple(
        Column(e.name, e.type, "", int(e.wide), format="name" if e.name == "Name" else "") for e in _entries(kind)
    )


def cells(kind: GroupKind) -> Callable[[Object, datetime], Sequence[Json]]:
    entries = _entries(kind)
    return lambda obj, now: [entry.cell(obj, now) for entry in entries]


def _entries(kind: GroupKind) -> Sequence[Entry]:
    return _TABLES.get(kind, _CREATED_AT)


def _path(*path: str, default: Any = "") -> Cell:
    def cell(obj: Object, now: datetime) -> Json:
        value = at(obj, *path)
        return default if value is None else value

    return cell


def _count(*members: str) -> Cell:
    return lambda obj, now: sum(len(obj.get(member) or ()) for member in members)


def _age(obj: Object, now: datetime) -> str:
    return ages.since(at(obj, "metadata", "creationTimestamp"), now)


_AGE = Entry("Age", _age)
_CREATED_AT = (Entry("Created At", _path("metadata", "creationTimestamp"), "date"),)


def _integer(name: str, *path: str) -> Entry:
    return Entry(name, _path(*path, default=0), "integer")


def _node_status(obj: Object, now: datetime) -> str:
    ready = next((c for c in elements(obj, "status", "conditions") if c.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    return ",".join([*words, "SchedulingDisabled"] if at(obj, "spec", "unschedulable") else words)


def _node_roles(obj: Object, now: datetime) -> str:
    labels: Mapping[str, str] = at(obj, "metadata", "labels") or {}
    roles = {
        key.removeprefix("node-role.kubernetes.io/") for key in labels if key.startswith("node-role.kubernetes.io/")
    }
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(filter(None, roles))) or "<none>"


def _address(kind: str) -> Cell:
    def cell(obj: Object, now: datetime) -> str:
        found = (a.get("address") for a in elements(obj, "status", "addresses") if a.get("type") == kind)
        return str(next(found, "<none>"))

    return cell


def _node_info(name: str) -> Cell:
    return lambda obj, now: at(obj, "status", "nodeInfo", name) or ages.UNKNOWN


def _first_seen(obj: Object, now: datetime) -> str:
    return ages.since(obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime"), now)


def _last_seen(obj: Object, now: datetime) -> str:
    last = at(obj, "series", "lastObservedTime") or obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    return ages.since(last, now) if last else _first_seen(obj, now)


def _event_count(obj: Object, now: datetime) -> int:
    return at(obj, "series", "count") or obj.get("count") or obj.get("deprecatedCount") or 1


def _event_target(obj: Object, now: datetime) -> str:
    about = _about(obj)
    return "/".join(filter(None, (str(about.get("kind") or "").lower(), str(about.get("name") or ""))))


def _about(obj: Object) -> Object:
    return section(obj, "involvedObject") or section(obj, "regarding")


def _event_source(obj: Object, now: datetime) -> str:
    source = section(obj, "source") or section(obj, "deprecatedSource")
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else str(component)


_EVENT = (
    Entry("Last Seen", _last_seen),
    Entry("Type", _path("type")),
    Entry("Reason", _path("reason")),
    Entry("Object", _event_target),
    Entry("Subobject", lambda obj, now: _about(obj).get("fieldPath") or "", wide=True),
    Entry("Source", _event_source, wide=True),
    Entry("Message", lambda obj, now: str(obj.get("message") or obj.get("note") or "").strip()),
    Entry("First Seen", _first_seen, wide=True),
    Entry("Count", _event_count, wide=True),
    Entry("Name", _path("metadata", "name"), wide=True),
)


def _containers(member: str) -> Entry:
    def cell(obj: Object, now: datetime) -> str:
        found = elements(obj, "spec", "template", "spec", "containers")
        return ",".join(str(c.get("image" if member == "Images" else "name") or "") for c in found)

    return Entry(member, cell, wide=True)


def _labels(value: Any) -> str:
    return ",".join(f"{k}={v}" for k, v in sorted(value.items())) if value else "<none>"


def _selector(obj: Object, now: datetime) -> str:
    selector = at(obj, "spec", "selector") or {}
    terms = [f"{k}={v}" for k, v in sorted((selector.get("matchLabels") or {}).items())]
    for need in elements(selector, "matchExpressions"):
        key, values = need.get("key"), f"({','.join(need.get('values') or ())})"
        word = {
            "In": f"{key} in {values}",
            "NotIn": f"{key} notin {values}",
            "Exists": str(key),
            "DoesNotExist": f"!{key}",
        }
        terms.append(word.get(str(need.get("operator")), "<invalid>"))
    return ",".join(terms) or "<none>"


_TEMPLATE = (_containers("Containers"), _containers("Images"))
_SELECTOR = Entry("Selector", _selector, wide=True)


def _ready(obj: Object, now: datetime) -> str:
    return f"{at(obj, 'status', 'readyReplicas') or 0}/{at(obj, 'spec', 'replicas') or 0}"


def _ports(obj: Object, now: datetime) -> str:
    def one(port: Object) -> str:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}"

    return ",".join(map(one, elements(obj, "spec", "ports"))) or "<none>"


def _external_ip(obj: Object, now: datetime) -> str:
    spec = section(obj, "spec")
    ips: list[str] = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or "")
    if spec.get("type") == "LoadBalancer":
        ingress = elements(obj, "status", "loadBalancer", "ingress")
        found = [str(i.get("ip") or i.get("hostname") or "") for i in ingress]
        return ",".join([*filter(None, found), *ips]) or "<pending>"
    return ",".join(ips) or "<none>"


def _endpoints(obj: Object, now: datetime) -> str:
    found = []
    for subset in elements(obj, "subsets"):
        ports = [port.get("port") for port in elements(subset, "ports")] or [None]
        found += [f"{a.get('ip')}:{p}" if p else str(a.get("ip")) for p in ports for a in elements(subset, "addresses")]
    shown = ",".join(found[:3])
    return f"{shown} + {len(found) - 3} more..." if len(found) > 3 else shown or "<none>"


def _or_na(name: str) -> Cell:
    return lambda obj, now: "N/A" if at(obj, "spec", name) is None else str(at(obj, "spec", name))


def _subjects(kind: str) -> Cell:
    def cell(obj: Object, now: datetime) -> str:
        found = [s for s in elements(obj, "subjects") if s.get("kind") == kind]
        names = (f"{s.get('namespace')}/{s.get('name')}" if kind == "ServiceAccount" else s.get("name") for s in found)
        return ", ".join(map(str, names))

    return cell


_BINDING = (
    Entry("Role", lambda obj, now: f"{at(obj, 'roleRef', 'kind')}/{at(obj, 'roleRef', 'name')}"),
    _AGE,
    Entry("Users", _subjects("User"), wide=True),
    Entry("Groups", _subjects("Group"), wide=True),
    Entry("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)
_MODES: Mapping[Any, str] = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access_modes(part: str) -> Cell:
    return lambda obj, now: ",".join(str(_MODES.get(mode, mode)) for mode in at(obj, part, "accessModes") or ())


def _phase(obj: Object, now: datetime) -> str:
    return "Terminating" if at(obj, "metadata", "deletionTimestamp") else at(obj, "status", "phase") or ""


def _claim(obj: Object, now: datetime) -> str:
    ref = at(obj, "spec", "claimRef")
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""


_VOLUME_TAIL = (
    Entry("StorageClass", _path("spec", "storageClassName")),
    Entry("VolumeAttributesClass", _path("spec", "volumeAttributesClassName", default="<unset>")),
)
_VOLUME_MODE = Entry("VolumeMode", _path("spec", "volumeMode", default="<unset>"), wide=True)
_WEBHOOKS = (Entry("Webhooks", _count("webhooks"), "integer"), _AGE)

_TABLES: Mapping[GroupKind, Sequence[Entry]] = {
    GroupKind("", "Namespace"): (Entry("Status", _path("status", "phase")), _AGE),
    GroupKind("", "Node"): (
        Entry("Status", _node_status),
        Entry("Roles", _node_roles),
        _AGE,
        Entry("Version", _path("status", "nodeInfo", "kubeletVersion")),
        Entry("Internal-IP", _address("InternalIP"), wide=True),
        Entry("External-IP", _address("ExternalIP"), wide=True),
        Entry("OS-Image", _node_info("osImage"), wide=True),
        Entry("Kernel-Version", _node_info("kernelVersion"), wide=True),
        Entry("Container-Runtime", _node_info("containerRuntimeVersion"), wide=True),
    ),
    GroupKind("", "Pod"): (
        Entry("Ready", pod_table.ready),
        Entry("Status", pod_table.status),
        Entry("Restarts", pod_table.restarts),
        _AGE,
        Entry(
            "IP", lambda obj, now: next((p.get("ip") for p in elements(obj, "status", "podIPs")), "<none>"), wide=True
        ),
        Entry("Node", _path("spec", "nodeName", default="<none>"), wide=True),
        Entry("Nominated Node", _path("status", "nominatedNodeName", default="<none>"), wide=True),
        Entry("Readiness Gates", pod_table.readiness_gates, wide=True),
    ),
    GroupKind("", "Secret"): (Entry("Type", _path("type")), Entry("Data", _count("data")), _AGE),
    GroupKind("", "ConfigMap"): (Entry("Data", _count("data", "binaryData")), _AGE),
    GroupKind("", "ServiceAccount"): (_AGE,),
    GroupKind("", "Event"): _EVENT,
    GroupKind("events.k8s.io", "Event"): _EVENT,
    GroupKind("coordination.k8s.io", "Lease"): (Entry("Holder", _path("spec", "holderIdentity")), _AGE),
    GroupKind("", "Service"): (
        Entry("Type", _path("spec", "type")),
        Entry("Cluster-IP", _path("spec", "clusterIP", default="<none>")),
        Entry("External-IP", _external_ip),
        Entry("Port(s)", _ports),
        _AGE,
        Entry("Selector", lambda obj, now: _labels(at(obj, "spec", "selector")), wide=True),
    ),
    GroupKind("", "Endpoints"): (Entry("Endpoints", _endpoints), _AGE),
    GroupKind("", "PersistentVolume"): (
        Entry("Capacity", _path("spec", "capacity", "storage")),
        Entry("Access Modes", _access_modes("spec")),
        Entry("Reclaim Policy", _path("spec", "persistentVolumeReclaimPolicy")),
        Entry("Status", _phase),
        Entry("Claim", _claim),
        *_VOLUME_TAIL,
        Entry("Reason", _path("status", "reason")),
        _AGE,
        _VOLUME_MODE,
    ),
    GroupKind("", "PersistentVolumeClaim"): (
        Entry("Status", _phase),
        Entry("Volume", _path("spec", "volumeName")),
        Entry("Capacity", _path("status", "capacity", "storage")),
        Entry("Access Modes", _access_modes("status")),
        *_VOLUME_TAIL,
        _AGE,
        _VOLUME_MODE,
    ),
    GroupKind("apps", "Deployment"): (
        Entry("Ready", _ready),
        Entry("Up-to-date", _path("status", "updatedReplicas", default=0)),
        Entry("Available", _path("status", "availableReplicas", default=0)),
        _AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    GroupKind("apps", "ReplicaSet"): (
        _integer("Desired", "spec", "replicas"),
        _integer("Current", "status", "replicas"),
        _integer("Ready", "status", "readyReplicas"),
        _AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    GroupKind("apps", "StatefulSet"): (Entry("Ready", _ready), _AGE, *_TEMPLATE),
    GroupKind("apps", "DaemonSet"): (
        _integer("Desired", "status", "desiredNumberScheduled"),
        _integer("Current", "status", "currentNumberScheduled"),
        _integer("Ready", "status", "numberReady"),
        _integer("Up-to-date", "status", "updatedNumberScheduled"),
        _integer("Available", "status", "numberAvailable"),
        Entry("Node Selector", lambda obj, now: _labels(at(obj, "spec", "template", "spec", "nodeSelector"))),
        _AGE,
        *_TEMPLATE,
        _SELECTOR,
    ),
    GroupKind("policy", "PodDisruptionBudget"): (
        Entry("Min Available", _or_na("minAvailable")),
        Entry("Max Unavailable", _or_na("maxUnavailable")),
        _integer("Allowed Disruptions", "status", "disruptionsAllowed"),
        _AGE,
    ),
    GroupKind("storage.k8s.io", "StorageClass"): (
        Entry("Provisioner", _path("provisioner")),
        Entry("ReclaimPolicy", _path("reclaimPolicy", default="Delete")),
        Entry("VolumeBindingMode", _path("volumeBindingMode", default="Immediate")),
        Entry("AllowVolumeExpansion", _path("allowVolumeExpansion", default=False)),
        _AGE,
    ),
    GroupKind("storage.k8s.io", "VolumeAttachment"): (
        Entry("Attacher", _path("spec", "attacher")),
        Entry("PV", _path("spec", "source", "persistentVolumeName")),
        Entry("Node", _path("spec", "nodeName")),
        Entry("Attached", _path("status", "attached", default=False), "boolean"),
        _AGE,
    ),
    GroupKind("scheduling.k8s.io", "PriorityClass"): (
        _integer("Value", "value"),
        Entry("Global-Default", _path("globalDefault", default=False), "boolean"),
        _AGE,
        Entry("PreemptionPolicy", _path("preemptionPolicy"), wide=True),
    ),
    GroupKind("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    GroupKind("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
}
