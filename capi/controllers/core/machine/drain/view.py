"""What a drain and the wait for volumes look at in the workload cluster."""

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
    """Uids of the DaemonSets that exist; read only if a Pod has one."""
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels of namespaces by name; read only if a rule asks for them."""
    rules: Sequence[MachineDrainRule] = ()
    """Those that concern the Machine, by name."""
    error: CapiError | None = None
    """Something above could not be read: nobody is evicted on half the facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeView:
    """What is attached to a Node."""

    attachments: Sequence[VolumeAttachment] = ()
    volumes: Sequence[PersistentVolume] = ()
    """Read only while something is attached."""
    error: CapiError | None = None
