"""Volumes that must be detached before the instance goes, so that no two Nodes write to one. Pure.

Upstream: internal/controllers/machine/machine_controller.go (shouldWaitForNodeVolumes, attachedVolumeInformation).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from capi.api.builtin import Node, PersistentVolume, VolumeAttachment
from capi.controllers.core.machine.drain.pods import Behavior, PodVerdict
from capi.controllers.core.machine.drain.view import VolumeView
from capi.kube import times

_CSI = "kubernetes.io/csi/"
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """What is attached to a Node, as its owners know it."""

    claims: Sequence[str] = ()
    """PersistentVolumeClaims as namespace/name."""
    unclaimed: Sequence[str] = ()
    """PersistentVolumes without a claim."""
    unknown: Sequence[str] = ()
    """Names in the Node's status that no PersistentVolume has."""
    dangling: Sequence[str] = ()
    """PersistentVolumes of a VolumeAttachment that do not exist."""

    @property
    def nothing(self) -> bool:
        return not (self.claims or self.unclaimed or self.unknown or self.dangling)


def names_in_status(node: Node) -> set[str]:
    """Volumes as the attach-detach controller names them in the Node's status."""
    return {volume.name for volume in node.status.volumes_attached if volume.name}


def names_by_attachment(node: Node, attachments: Iterable[VolumeAttachment]) -> set[str]:
    """PersistentVolumes that are attached to the Node."""
    return {
        found.spec.source.persistent_volume_name
        for found in attachments
        if found.status.attached and found.spec.node_name == node.name and found.spec.source.persistent_volume_name
    }


def waiting_for(node: Node, view: VolumeView, verdicts: Collection[PodVerdict]) -> Attached:
    """What is still attached, but for the claims of Pods that the drain left alone: nobody will release those."""
    listed, attached = names_in_status(node), names_by_attachment(node, view.attachments)
    found = [v for v in view.volumes if v.name in attached or _name_in_status(v) in listed]
    claims, unclaimed = set[str](), []
    for volume in found:
        claim = volume.spec.claim_ref
        if claim is None or claim.kind != "PersistentVolumeClaim":
            unclaimed.append(volume.name)
        else:
            claims.add(f"{claim.namespace}/{claim.name}")
    return Attached(
        claims=sorted(claims - _left_alone(verdicts)),
        unclaimed=sorted(unclaimed),
        unknown=sorted(listed - {_name_in_status(volume) for volume in found}),
        dangling=sorted(attached - {volume.name for volume in found}),
    )


def _name_in_status(volume: PersistentVolume) -> str:
    csi = volume.spec.csi
    return f"{_CSI}{csi.driver}^{csi.volume_handle}" if csi is not None else ""


def _left_alone(verdicts: Iterable[PodVerdict]) -> set[str]:
    return {
        f"{verdict.pod.namespace}/{volume.persistent_volume_claim.claim_name}"
        for verdict in verdicts
        if verdict.behavior is Behavior.SKIP
        for volume in verdict.pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }


def message(found: Attached, started: datetime) -> str:
    """What the Deleting condition says."""
    kinds = (
        ("PersistentVolumeClaims", found.claims),
        ("PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim", found.unclaimed),
        ("Node with .status.volumesAttached entries not matching a PersistentVolume", found.unknown),
        (
            "VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume",
            found.dangling,
        ),
    )
    head = f"Waiting for Node volumes to be detached (started at {times.format(started)})"
    return "\n".join([head, *(f"* {kind}: {_listed(names)}" for kind, names in kinds if names)])


def _listed(names: Sequence[str]) -> str:
    more = f", ... ({len(names) - _NAMED} more)" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
