"""How core reads provider objects it has no types for: typed paths over plain JSON.

The v1beta2 contract is read first; where it has nothing, the v1beta1 place of the same fact. A field that is absent is
None, "" or empty; a field of the wrong type is a ContractError that names object and path.

Source: the provider contract pages of the Cluster API book, and controllers/external/util.go.
"""

from capi.contract.fields import (
    addresses,
    available_replicas,
    conditions,
    control_plane_endpoint,
    control_plane_initialized,
    data_secret_created,
    data_secret_name,
    desired_replicas,
    external_managed_control_plane,
    failure,
    failure_domain,
    failure_domains,
    infrastructure_machine_kind,
    interruptible,
    provider_id,
    provider_id_list,
    provisioned,
    ready_replicas,
    replicas,
    up_to_date_replicas,
    version,
    versions,
)

__all__ = [
    "addresses",
    "available_replicas",
    "conditions",
    "control_plane_endpoint",
    "control_plane_initialized",
    "data_secret_created",
    "data_secret_name",
    "desired_replicas",
    "external_managed_control_plane",
    "failure",
    "failure_domain",
    "failure_domains",
    "infrastructure_machine_kind",
    "interruptible",
    "provider_id",
    "provider_id_list",
    "provisioned",
    "ready_replicas",
    "replicas",
    "up_to_date_replicas",
    "version",
    "versions",
]
