"""What a drain looks at, and what came of the evictions before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from capi.api.builtin import PersistentVolume, Pod, VolumeAttachment
from capi.api.core.v1beta2 import MachineDrainRule
from capi.kube.errors import CapiError


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainView:
    """The Pods of a Node and what decides about them."""

    pods: Sequence[Pod] = ()
    daemon_sets: frozenset[str] = frozenset()
    """Uids of the DaemonSets that exist."""
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels of namespaces by name; read only if a rule asks for them."""
    rules: Sequence[MachineDrainRule] = ()
    """Of the Machine's namespace, by name."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """By uid of a Pod: why its last eviction was refused."""
    error: CapiError | None = None
    """Something above could not be read: nobody is evicted on half the facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeView:
    """Volumes of the workload cluster; read only while something is attached to the Node."""

    attachments: Sequence[VolumeAttachment] = ()
    volumes: Sequence[PersistentVolume] = ()
    error: CapiError | None = None
