"""Read model of CustomResourceDefinition: names, versions and conditions; not the schemas.

Source: the Kubernetes API reference (apiextensions.k8s.io/v1).
"""

from datetime import datetime
from typing import ClassVar

from capi.kube.objects import Api, Resource
from capi.kube.types import ResourceType


class CustomResourceDefinitionNames(Api):
    """Names of the kind."""

    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class CustomResourceDefinitionVersion(Api, kw_only=True):
    """One version of the kind."""

    name: str
    served: bool = False
    storage: bool = False
    deprecated: bool | None = None


class CustomResourceDefinitionSpec(Api):
    """What is defined."""

    group: str = ""
    names: CustomResourceDefinitionNames = CustomResourceDefinitionNames()
    scope: str = ""
    versions: tuple[CustomResourceDefinitionVersion, ...] = ()


class CustomResourceDefinitionCondition(Api, kw_only=True):
    """Established, NamesAccepted and others."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class CustomResourceDefinitionStatus(Api):
    """What became of the definition."""

    conditions: tuple[CustomResourceDefinitionCondition, ...] = ()
    accepted_names: CustomResourceDefinitionNames = CustomResourceDefinitionNames()
    stored_versions: tuple[str, ...] = ()


class CustomResourceDefinition(Resource):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    resource: ClassVar[ResourceType] = ResourceType(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
    )
    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()

    @property
    def established(self) -> bool:
        """The kind is served."""
        return any(c.type == "Established" and c.status == "True" for c in self.status.conditions)
