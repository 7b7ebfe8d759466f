"""A Cluster and all that belongs to it, as a tree of values. Pure: objects in, tree out; drawing is the command line's.

The shape is that of clusterctl's `describe cluster`, so that people find what they know: infrastructure, control plane and
its Machines, workers. Ours: rows of MachinePools show their counters and condition (`Options.pool_rows`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from capi.api.core import labels
from capi.contract import conditions as conditions_of
from capi.kube.conditions import Condition, get
from capi.kube.errors import BadRequest
from capi.kube.objects import Unstructured
from capi.kube.types import GroupKind, Object, ResourceType

FOLDED = 2
"""So many Machines in equal states become one row."""
NEGATIVE = frozenset(("Paused", "Deleting", "RollingOut", "ScalingUp", "ScalingDown", "Updating", "Remediating"))
"""Conditions that are good when False."""


class Ref(NamedTuple):
    """An object by kind and name; its namespace is the Cluster's."""

    group: str
    kind: str
    name: str

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)


@dataclass(frozen=True, slots=True)
class Options:
    """What is shown."""

    grouping: bool = True
    """Fold Machines in equal states."""
    echo: bool = False
    """Show objects that only repeat the state of their owner."""
    conditions: str = ""
    """Objects whose conditions get rows: `all`, or `Kind` or `Kind/name` with commas between; `+`: the interesting ones."""
    pool_rows: bool = True


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was read."""

    cluster: Object
    machines: Sequence[Object] = ()
    pools: Sequence[Object] = ()
    deployments: Sequence[Object] = ()
    others: Mapping[Ref, Object] = field(default_factory=dict)
    """Provider objects; one that is absent has no row."""


@dataclass(frozen=True, slots=True)
class Counters:
    """How many there are, and how many are as they should be; None: not counted."""

    replicas: str = ""
    """`current/desired`; `1` for a Machine."""
    available: int | None = None
    ready: int | None = None
    up_to_date: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One row, with the rows below it."""

    kind: str = ""
    namespace: str = ""
    name: str
    """Of the object; the whole text of a row that stands for none or for several."""
    version: str = ""
    deleted: bool = False
    counters: Counters = Counters()
    condition: Condition | None = None
    conditions: tuple[Condition, ...] = ()
    """Those that get rows of their own; `condition` is not drawn then."""
    members: tuple[str, ...] = ()
    """Names of the Machines folded into this row."""
    order: int = 0
    children: tuple["Node", ...] = ()

    @property
    def title(self) -> str:
        """The row's name as plain text."""
        if not self.kind or self.members:
            return self.name
        text = f"{self.kind} {self.namespace}/{self.name}" + (f", {self.version}" if self.version else "")
        return f"!! DELETED !! {text}" if self.deleted else text

    def data(self) -> Object:
        """For output as JSON or YAML; empty members are left out."""
        out: Object = {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "version": self.version,
            "deleted": self.deleted,
            "replicas": self.counters.replicas,
            "available": self.counters.available,
            "ready": self.counters.ready,
            "upToDate": self.counters.up_to_date,
            "condition": _condition_data(self.condition),
            "conditions": [_condition_data(c) for c in self.conditions],
            "members": list(self.members),
            "children": [child.data() for child in self.children],
        }
        return {key: value for key, value in out.items() if value not in ("", None, False, [])}


def _condition_data(condition: Condition | None) -> Object | None:
    if condition is None:
        return None
    changed = condition.last_transition_time
    out = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "since": changed.strftime("%Y-%m-%dT%H:%M:%SZ") if changed else "",
    }
    return {key: value for key, value in out.items() if value}


def read_conditions(obj: Object) -> tuple[Condition, ...]:
    """Conditions of any object, in whatever shape its kind writes them."""
    return conditions_of(Unstructured.of(_ANY, {**obj, "metadata": {}}))


_ANY = ResourceType("", "", "", "")


def wanted(seen: Seen, options: Options) -> list[Ref]:
    """The provider objects that the tree of `seen` shows or compares with."""
    spec = seen.cluster.get("spec") or {}
    refs = [_ref(spec.get("infrastructureRef")), _ref(spec.get("controlPlaneRef"))]
    for owner in (*seen.pools, *(m for group in _groups(seen, options) for m in group if len(group) < FOLDED)):
        refs += owned_refs(owner)
    return [ref for ref in dict.fromkeys(refs) if ref is not None]


def owned_refs(owner: Object) -> list[Ref | None]:
    """Bootstrap config and infrastructure of a Machine or pool."""
    spec = owner.get("spec") or {}
    if owner.get("kind") == "MachinePool":
        spec = (spec.get("template") or {}).get("spec") or {}
    return [_ref((spec.get("bootstrap") or {}).get("configRef")), _ref(spec.get("infrastructureRef"))]


def _ref(value: Object | None) -> Ref | None:
    if not value or not value.get("name"):
        return None
    return Ref(str(value.get("apiGroup")), str(value.get("kind")), str(value["name"]))


def _groups(seen: Seen, options: Options) -> Iterable[Sequence[Object]]:
    """Machines as they are folded, everywhere in the tree."""
    sets: dict[str, list[Object]] = {}
    for machine in seen.machines:
        sets.setdefault(_place(machine, seen), []).append(machine)
    for machines in sets.values():
        yield from _folded(machines, options)


def _folded(machines: Iterable[Object], options: Options) -> list[list[Object]]:
    """Machines by equal states."""
    if not options.grouping:
        return [[machine] for machine in machines]
    groups: dict[object, list[Object]] = {}
    for machine in machines:
        found = read_conditions(machine)
        states = tuple(
            (c.status, c.reason) if (c := get(found, t)) else None for t in ("Available", "Ready", "UpToDate")
        )
        groups.setdefault(states, []).append(machine)
    return list(groups.values())


def _place(machine: Object, seen: Seen) -> str:
    """Below which row a Machine goes: `control plane`, `pool NAME`, `deployment NAME` or `other`."""
    metadata = machine.get("metadata") or {}
    held = metadata.get("labels") or {}
    if labels.CONTROL_PLANE in held and (seen.cluster.get("spec") or {}).get("controlPlaneRef"):
        return "control plane"
    owner: Object = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), {})
    if owner.get("kind") == "MachinePool" and any(p["metadata"]["name"] == owner.get("name") for p in seen.pools):
        return f"pool {owner['name']}"
    deployment = held.get(labels.DEPLOYMENT_NAME)
    if any(d["metadata"]["name"] == deployment for d in seen.deployments):
        return f"deployment {deployment}"
    return "other"


def build(seen: Seen, options: Options) -> Node:
    """The tree. Raises BadRequest for a bad `options.conditions`."""
    return _Builder(seen, options).cluster()


class _Builder:
    """What all rows need to know."""

    def __init__(self, seen: Seen, options: Options) -> None:
        self._seen, self._options = seen, options
        self._filter = ConditionFilter.parse(options.conditions)
        self._placed: dict[str, list[Object]] = {}
        for machine in seen.machines:
            self._placed.setdefault(_place(machine, seen), []).append(machine)

    def cluster(self) -> Node:
        spec = self._seen.cluster.get("spec") or {}
        children: list[Node] = []
        if infra := self._object(_ref(spec.get("infrastructureRef"))):
            children.append(replace(self._row(infra, "Ready"), order=3))
        if plane := self._object(_ref(spec.get("controlPlaneRef"))):
            row = self._row(plane, "Available", "Ready")
            row = replace(row, counters=_counters(plane), children=_sorted(self._machines("control plane")))
            children.append(replace(row, order=2))
        if workers := self._workers():
            children.append(workers)
        row = self._row(self._seen.cluster, "Available")
        return replace(row, counters=_cluster_counters(self._seen.cluster), children=_sorted(children))

    def _workers(self) -> Node | None:
        rows: list[Node] = []
        for deployment in self._seen.deployments:
            machines = self._machines(f"deployment {deployment['metadata']['name']}")
            row = replace(
                self._row(deployment, "Available"), counters=_counters(deployment), children=_sorted(machines)
            )
            rows.append(row)
        rows += [self._pool(pool) for pool in self._seen.pools]
        if other := self._machines("other"):
            rows.append(Node(name="Other", children=_sorted(other)))
        return Node(name="Workers", order=1, children=_sorted(rows)) if rows else None

    def _pool(self, pool: Object) -> Node:
        row = self._row(pool, *(("Available", "Ready") if self._options.pool_rows else ()))
        if self._options.pool_rows:
            row = replace(row, counters=_counters(pool))
        children = [*self._machines(f"pool {pool['metadata']['name']}"), *self._owned(pool)]
        return replace(row, children=_sorted(children))

    def _machines(self, place: str) -> list[Node]:
        groups = _folded(self._placed.get(place, ()), self._options)
        return [self._machine(g[0]) if len(g) < FOLDED else _fold(g) for g in groups]

    def _machine(self, machine: Object) -> Node:
        found = read_conditions(machine)
        row = replace(self._row(machine, "Ready"), counters=replace(_machine_counters([found]), replicas="1"))
        return replace(row, children=_sorted(self._owned(machine)))

    def _owned(self, owner: Object) -> list[Node]:
        """Rows of the provider objects of a Machine or pool, unless they only repeat its state."""
        rows = []
        for ref in owned_refs(owner):
            child = self._object(ref)
            if child is not None and (self._options.echo or not _echoes(child, owner)):
                rows.append(self._row(child, "Ready"))
        return rows

    def _object(self, ref: Ref | None) -> Object | None:
        return self._seen.others.get(ref) if ref is not None else None

    def _row(self, obj: Object, *types: str) -> Node:
        metadata, found = obj["metadata"], read_conditions(obj)
        condition = next((c for t in types if (c := get(found, t)) is not None), None)
        return Node(
            kind=obj["kind"],
            namespace=metadata.get("namespace") or "",
            name=metadata["name"],
            version=_version(obj),
            deleted=bool(metadata.get("deletionTimestamp")),
            condition=condition,
            conditions=self._filter.of(obj["kind"], metadata["name"], found),
        )


def _sorted(rows: Iterable[Node]) -> tuple[Node, ...]:
    return tuple(sorted(rows, key=lambda row: (-row.order, row.title)))


def _echoes(child: Object, owner: Object) -> bool:
    ours, theirs = get(read_conditions(child), "Ready"), get(read_conditions(owner), "Ready")
    if ours is None or theirs is None:
        return (ours is None and theirs is None) or (ours is not None and ours.status == "True")
    return ours.status == "True" or (ours.status, ours.reason) == (theirs.status, theirs.reason)


def _fold(machines: Sequence[Object]) -> Node:
    """One row for several Machines in equal states."""
    found = [read_conditions(machine) for machine in machines]
    names = sorted(str(machine["metadata"]["name"]) for machine in machines)
    ready = [c for cs in found if (c := get(cs, "Ready")) is not None]
    condition = None
    if ready:
        times = [c.last_transition_time for c in ready if c.last_transition_time]
        shown = ", ".join(names[:FOLDED]) + (", ..." if len(names) > FOLDED else "")
        condition = Condition(
            type="Ready",
            status=ready[0].status,
            reason=ready[0].reason,
            message=f"See {shown}",
            last_transition_time=min(times) if times else None,
        )
    kind = machines[0]["kind"]
    title = f"{len(machines)} {kind}s..."
    return Node(kind=kind, name=title, counters=_machine_counters(found), condition=condition, members=tuple(names))


def _machine_counters(found: Sequence[Sequence[Condition]]) -> Counters:
    def count(type_: str) -> int:
        return sum((c := get(conditions, type_)) is not None and c.status == "True" for conditions in found)

    return Counters(available=count("Available"), ready=count("Ready"), up_to_date=count("UpToDate"))


def _counters(obj: Object) -> Counters:
    """REPLICAS and counters of something with replicas."""
    status, wanted = obj.get("status") or {}, (obj.get("spec") or {}).get("replicas")
    has = wanted is not None or status.get("replicas") is not None
    return Counters(
        f"{status.get('replicas') or 0}/{wanted or 0}" if has else "",
        status.get("availableReplicas"),
        status.get("readyReplicas"),
        status.get("upToDateReplicas"),
    )


def _cluster_counters(cluster: Object) -> Counters:
    status = cluster.get("status") or {}
    roles = [status[role] for role in ("controlPlane", "workers") if status.get(role)]
    if not roles:
        return Counters()

    def total(name: str) -> int:
        return sum(role.get(name) or 0 for role in roles)

    return Counters(
        f"{total('replicas')}/{total('desiredReplicas')}",
        total("availableReplicas"),
        total("readyReplicas"),
        total("upToDateReplicas"),
    )


def _version(obj: Object) -> str:
    spec = obj.get("spec") or {}
    if obj["kind"] == "Cluster":
        return str((spec.get("topology") or {}).get("version") or "")
    if obj["kind"] in ("MachinePool", "MachineDeployment", "MachineSet"):
        spec = (spec.get("template") or {}).get("spec") or {}
    return str(spec.get("version") or "")


@dataclass(frozen=True, slots=True)
class ConditionFilter:
    """Whose conditions get rows."""

    names: frozenset[str] = frozenset()
    """`kind` or `kind/name` in lower case; with `+` at the end only the interesting conditions."""

    @classmethod
    def parse(cls, text: str) -> "ConditionFilter":
        """Raises BadRequest."""
        if any(char.isspace() for char in text):
            raise BadRequest(f'invalid --show-conditions value "{text}": whitespace is not allowed')
        return cls(names=frozenset(part.lower() for part in text.split(",") if part))

    def of(self, kind: str, name: str, conditions: Sequence[Condition]) -> tuple[Condition, ...]:
        """The conditions of one object that get rows, in their order."""
        keys = ("all", kind.lower(), f"{kind}/{name}".lower())
        if any(key in self.names for key in keys):
            return tuple(conditions)
        if any(f"{key}+" in self.names for key in keys):
            return tuple(c for c in conditions if c.type in ("Available", "Ready") or c.message or not good(c))
        return ()


def good(condition: Condition) -> bool:
    """The condition says that all is well."""
    return condition.status == ("False" if condition.type in NEGATIVE else "True")
