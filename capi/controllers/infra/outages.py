"""Simulated outages of a cluster's API, asked for by annotations of its Cluster: what they are now, and how they are told. Pure.

Whoever serves the API carries them out: the hosted control plane, or the DevCluster of one with control plane machines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from capi.api.core.v1beta2 import Cluster
from capi.controllers.infra import knobs, lookups
from capi.controllers.infra.names import INVALID_SIMULATION, OUTAGE_ANNOTATION, SIMULATED_OUTAGE
from capi.kube import conditions, times
from capi.kube.conditions import Condition
from capi.runtime.plan import Event


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Why a cluster's API is not as it should be: reason and message of a condition that is False."""

    reason: str
    message: str
    lasts: timedelta | None = None
    """None: until the annotation changes."""

    def events(self, before: Sequence[Condition], type_: str) -> tuple[Event, ...]:
        """Said once, when the condition of that type begins to say so."""
        found = conditions.get(before, type_)
        said = found is not None and found.reason == self.reason
        return () if said else (Event(self.reason, self.message, "Warning"),)


def is_down(cluster: Cluster, now: datetime) -> bool:
    """Whether the cluster's API is to be down now; what cannot be read is no reason."""
    try:
        return knobs.outage(cluster.metadata.annotations, now) is not None
    except knobs.InvalidKnob:
        return False


def disturbance(cluster: Cluster, now: datetime) -> Disturbance | None:
    """An outage, or an annotation that cannot be understood."""
    misread = knobs.misread(cluster.metadata.annotations, knobs.OF_CLUSTERS, now)
    if misread:
        return Disturbance(INVALID_SIMULATION, f"Cluster {cluster.name}: {misread}")
    found = knobs.outage(cluster.metadata.annotations, now)
    if found is None:
        return None
    until = f"until {times.format(found.until)}" if found.until else "until it is removed"
    message = f"Annotation {OUTAGE_ANNOTATION} of Cluster {cluster.name} simulates an outage {until}"
    return Disturbance(SIMULATED_OUTAGE, message, found.until - now if found.until else None)


def cluster_changed(old: Cluster, new: Cluster) -> bool:
    """Whether anything changed of a Cluster that matters to whoever serves its API."""
    before, after = (knobs.of_cluster(cluster.metadata.annotations) for cluster in (old, new))
    return before != after or lookups.cluster_changed(old, new)
