"""DevCluster and its template: the infrastructure of a development cluster.

Upstream: test/infrastructure/docker/api/v1beta2/{devcluster,devclustertemplate}_types.go.
"""

from typing import Annotated, ClassVar, TypeAlias

import msgspec

from capi.api.core.v1beta2.shared import APIEndpoint, Conditions, FailureDomain, TemplateMeta
from capi.api.infra.v1beta2.shared import GROUP, LABELS, VERSION_NAME, DeprecatedStatus
from capi.api.schema import AGE, CLUSTER_LABEL_COLUMN, Crd, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

FailureDomains: TypeAlias = Annotated[tuple[FailureDomain, ...], Rule(min_items=1, max_items=100, list_keys=("name",))]
"""Sorted by name."""


class LocalObjectReference(Api):
    """An object of the same namespace, by name."""

    name: str = ""


class DockerLoadBalancer(Api):
    """The container that balances the load of the control plane machines."""

    image_repository: str = ""
    image_tag: str = ""
    custom_ha_proxy_config_template_ref: LocalObjectReference | None = msgspec.field(
        default=None, name="customHAProxyConfigTemplateRef"
    )
    """A ConfigMap with the template in its key `value`."""


class DockerClusterBackend(Api):
    """A cluster of containers."""

    failure_domains: FailureDomains = ()
    load_balancer: DockerLoadBalancer | None = None


class InMemoryClusterBackend(Api):
    """A simulated cluster, whose API this process serves."""


class DevClusterBackend(Api):
    """Where the cluster lives; exactly one."""

    docker: DockerClusterBackend | None = None
    in_memory: InMemoryClusterBackend | None = None


class DevClusterSpec(Api):
    """What is wanted of a DevCluster."""

    control_plane_endpoint: APIEndpoint | None = None
    """Filled in by the controller when it is not given."""
    backend: Annotated[DevClusterBackend, Rule(required=True)] = msgspec.field(default_factory=DevClusterBackend)


class DevClusterInitialization(Api):
    """Steps that were reached."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    provisioned: bool | None = None


class DevClusterStatus(Api):
    """What was observed of a DevCluster."""

    openapi: ClassVar[Rule] = Rule(min_properties=1)
    conditions: Conditions = ()
    initialization: DevClusterInitialization | None = None
    failure_domains: FailureDomains = ()
    deprecated: DeprecatedStatus | None = None


class DevCluster(Resource):
    """A DevCluster is the infrastructure of a development cluster: containers, or a simulation in memory."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DevCluster", "devclusters")
    crd: ClassVar[Crd] = Crd(singular="devcluster", labels=LABELS, required=(), columns=(CLUSTER_LABEL_COLUMN, AGE))
    spec: DevClusterSpec = DevClusterSpec()
    status: DevClusterStatus = DevClusterStatus()


class DevClusterTemplateResource(Api, kw_only=True):
    """The DevClusters made from a template."""

    metadata: TemplateMeta | None = None
    spec: DevClusterSpec


class DevClusterTemplateSpec(Api, kw_only=True):
    """What is wanted of a DevClusterTemplate."""

    template: DevClusterTemplateResource


class DevClusterTemplate(Resource, kw_only=True):
    """A DevClusterTemplate is what DevClusters are made from. Its spec does not change."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DevClusterTemplate", "devclustertemplates")
    crd: ClassVar[Crd] = Crd(singular="devclustertemplate", labels=LABELS, status=False, columns=(AGE,))
    spec: DevClusterTemplateSpec
