"""Volumes that must be detached before the instance goes, so that no two Nodes write to one. Pure.

Upstream: internal/controllers/machine/machine_controller.go (shouldWaitForNodeVolumes).
"""

from collections.abc import Collection, Sequence

from capi.api.builtin import Node, PersistentVolume, VolumeAttachment
from capi.controllers.core.machine.drain.pods import Behavior, PodVerdict
from capi.controllers.core.machine.drain.view import VolumeView

_CSI = "kubernetes.io/csi/"
_NAMED = 5


def attached_names(node: Node) -> set[str]:
    """Volumes as the attach-detach controller names them in the Node's status."""
    return {volume.name for volume in node.status.volumes_attached if volume.name}


def attachments_of(node: Node, attachments: Sequence[VolumeAttachment]) -> set[str]:
    """PersistentVolumes that are attached to the Node."""
    return {
        found.spec.source.persistent_volume_name
        for found in attachments
        if found.status.attached and found.spec.node_name == node.name and found.spec.source.persistent_volume_name
    }


def waiting_for(node: Node, view: VolumeView, skipped: Collection[PodVerdict]) -> list[str]:
    """What is still attached: claims as namespace/name, volumes without a claim and unknown ones by their own name.

    Claims of Pods that the drain leaves alone are not waited for, as nobody will release them.
    """
    names, by_attachment = attached_names(node), attachments_of(node, view.attachments)
    left = _claims(skipped)
    found: list[str] = []
    matched: set[str] = set()
    for volume in view.volumes:
        known = _node_name(volume)
        if known not in names and volume.name not in by_attachment:
            continue
        matched |= {known, volume.name}
        claim = volume.spec.claim_ref
        if claim is None:
            found.append(f"PersistentVolume {volume.name}")
        elif (claim.namespace, claim.name) not in left:
            found.append(f"PersistentVolumeClaim {claim.namespace}/{claim.name}")
    found += [f"volume {name}" for name in (names | by_attachment) - matched]
    return sorted(found)


def _node_name(volume: PersistentVolume) -> str:
    csi = volume.spec.csi
    return f"{_CSI}{csi.driver}^{csi.volume_handle}" if csi is not None else ""


def _claims(verdicts: Collection[PodVerdict]) -> set[tuple[str, str]]:
    return {
        (verdict.pod.namespace, volume.persistent_volume_claim.claim_name)
        for verdict in verdicts
        if verdict.behavior is Behavior.SKIP
        for volume in verdict.pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }


def message(found: Sequence[str]) -> str:
    """What the Deleting condition says."""
    more = f", ... ({len(found) - _NAMED} more)" if len(found) > _NAMED else ""
    return f"Waiting for Node volumes to be detached: {', '.join(found[:_NAMED])}{more}"
