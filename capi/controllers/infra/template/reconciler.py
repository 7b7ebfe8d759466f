"""InfraMachineTemplates (DevMachineTemplate, DockerMachineTemplate): what a machine made from them will offer, so that an
autoscaler can scale from zero.

Upstream: docker/reconcilers/devmachinetemplate_reconciler.go, which shows the engine's size for simulated machines too.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from capi.api.core.v1beta2 import Cluster
from capi.api.infra.v1beta2 import DevMachineTemplateStatus
from capi.controllers import pause
from capi.controllers.infra import backends, lookups
from capi.controllers.infra.backends import Backends
from capi.controllers.infra.family import DEV, DOCKER, Family, InfraMachineTemplate
from capi.kube.errors import BackendError
from capi.runtime.plan import Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch, Watch

REMEASURE = timedelta(minutes=10)
"""An engine may be given more."""


class InfraMachineTemplateReconciler:
    """See the module's text. Of one family: a subclass says which."""

    family: ClassVar[Family]
    manager: ClassVar[str]
    finalizer: ClassVar[str | None] = None

    def __init__(self, available: Backends) -> None:
        self.kind: type[InfraMachineTemplate] = self.family.template
        self._backends = available
        self.watches: Sequence[AnyWatch] = (Watch(Cluster),)

    def paused(self, obj: InfraMachineTemplate, reader: Reader) -> Sequence[str]:
        return pause.causes(obj, lookups.cluster_of(obj, reader))

    async def reconcile(self, obj: InfraMachineTemplate, reader: Reader, now: datetime) -> Plan:
        backend = self._backends.get(backends.name_of(obj.spec.template.spec.backend))
        if backend is None or obj.deleting:
            return Plan()
        try:
            shape = await backend.measure()
        except BackendError as error:
            return Plan(error=error)
        if shape is None:
            return Plan()
        return Plan(status=DevMachineTemplateStatus(capacity=dict(shape.capacity)), requeue_after=REMEASURE)


class DevMachineTemplateReconciler(InfraMachineTemplateReconciler):
    """Of DevMachineTemplates."""

    family: ClassVar[Family] = DEV
    manager: ClassVar[str] = "capi-devmachinetemplate"


class DockerMachineTemplateReconciler(InfraMachineTemplateReconciler):
    """Of DockerMachineTemplates."""

    family: ClassVar[Family] = DOCKER
    manager: ClassVar[str] = "capi-dockermachinetemplate"
