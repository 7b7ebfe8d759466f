"""DevCluster, its template and DockerCluster in v1beta1.

Upstream: test/infrastructure/docker/api/v1beta1/{devcluster,devclustertemplate,dockercluster}_types.go.
"""

from typing import Annotated, ClassVar, TypeAlias

import msgspec

from capi.api.core.v1beta1.cluster import APIEndpoint, FailureDomain
from capi.api.core.v1beta1.shared import VERSION_NAME, NewConditions, OldConditions, TemplateMeta
from capi.api.infra.v1beta2.cluster import DockerLoadBalancer, InMemoryClusterBackend
from capi.api.infra.v1beta2.shared import GROUP
from capi.api.schema import AGE, CLUSTER_LABEL_COLUMN, Crd, Rule
from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType

FailureDomains: TypeAlias = dict[str, FailureDomain] | None
"""By name."""


class DockerClusterBackend(Api):
    """A cluster of containers."""

    failure_domains: FailureDomains = None
    load_balancer: DockerLoadBalancer | None = None


class DevClusterBackend(Api):
    """Where the cluster lives; exactly one."""

    docker: DockerClusterBackend | None = None
    in_memory: InMemoryClusterBackend | None = None


class DevClusterSpec(Api):
    """What is wanted of a DevCluster."""

    control_plane_endpoint: APIEndpoint | None = None
    backend: Annotated[DevClusterBackend, Rule(required=True)] = msgspec.field(default_factory=DevClusterBackend)


class ClusterStatus(Api):
    """What was observed of the infrastructure of a cluster."""

    ready: bool | None = None
    failure_domains: FailureDomains = None
    conditions: OldConditions = ()
    v1beta2: NewConditions | None = None


class DevCluster(Resource):
    """A DevCluster is the infrastructure of a development cluster: containers, or a simulation in memory."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DevCluster", "devclusters")
    crd: ClassVar[Crd] = Crd(singular="devcluster", required=(), columns=(CLUSTER_LABEL_COLUMN, AGE))
    spec: DevClusterSpec = DevClusterSpec()
    status: ClusterStatus = ClusterStatus()


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
    crd: ClassVar[Crd] = Crd(singular="devclustertemplate", status=False, columns=(AGE,))
    spec: DevClusterTemplateSpec


class DockerClusterSpec(Api):
    """What is wanted of a DockerCluster."""

    control_plane_endpoint: APIEndpoint | None = None
    failure_domains: FailureDomains = None
    load_balancer: DockerLoadBalancer | None = None


class DockerCluster(Resource):
    """A DockerCluster is the infrastructure of a cluster of containers."""

    resource: ClassVar[ResourceType] = ResourceType(GROUP, VERSION_NAME, "DockerCluster", "dockerclusters")
    crd: ClassVar[Crd] = Crd(singular="dockercluster", required=(), columns=(CLUSTER_LABEL_COLUMN, AGE))
    spec: DockerClusterSpec = DockerClusterSpec()
    status: ClusterStatus = ClusterStatus()
