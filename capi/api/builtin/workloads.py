"""Read models of the kinds that a drain looks at besides Pods: only the fields it uses.

Source: the Kubernetes API reference (apps/v1, core/v1, storage.k8s.io/v1).
"""

from typing import Annotated, ClassVar

import msgspec

from capi.api.core.v1beta2.machinepool import ObjectReference
from capi.api.schema import Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class DaemonSet(Resource):
    """apps/v1 DaemonSet."""

    resource: ClassVar[ResourceType] = ResourceType("apps", "v1", "DaemonSet", "daemonsets")


class CsiVolume(Api):
    """core/v1 CSIPersistentVolumeSource."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Api):
    """core/v1 PersistentVolumeSpec."""

    csi: CsiVolume | None = None
    claim_ref: ObjectReference | None = None


class PersistentVolume(Resource):
    """core/v1 PersistentVolume."""

    resource: ClassVar[ResourceType] = ResourceType("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class VolumeAttachmentSource(Api):
    """storage.k8s.io/v1 VolumeAttachmentSource."""

    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Api):
    """storage.k8s.io/v1 VolumeAttachmentSpec."""

    node_name: str = ""
    source: Annotated[VolumeAttachmentSource, Rule(required=True)] = msgspec.field(
        default_factory=VolumeAttachmentSource
    )


class VolumeAttachmentStatus(Api):
    """storage.k8s.io/v1 VolumeAttachmentStatus."""

    attached: bool | None = None


class VolumeAttachment(Resource):
    """storage.k8s.io/v1 VolumeAttachment."""

    resource: ClassVar[ResourceType] = ResourceType(
        "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False
    )
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
