"""What one pass over an InfraCluster looks at. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from capi.api.core.v1beta2 import APIEndpoint, Cluster, Machine
from capi.controllers.infra.family import InfraCluster, InfraMachine


@dataclass(frozen=True, slots=True)
class Member:
    """A control plane machine."""

    infra: InfraMachine
    machine: Machine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """All that one pass looks at."""

    infra: InfraCluster
    cluster: Cluster | None = None
    endpoint: APIEndpoint | None = None
    """Of a simulated cluster: as given, completed with an address and a reserved port."""
    members: Sequence[Member] = ()
    """Control plane machines that are containers, ordered by name."""
    template: str = ""
    """Of the load balancer's configuration, if the cluster brings its own."""
