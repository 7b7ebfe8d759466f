"""The facts that the contracts let core read, one function each."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias, cast

import msgspec

from capi.api.core.v1beta2 import APIEndpoint, FailureDomain, MachineAddress, StatusVersion
from capi.contract.paths import find, first, read
from capi.contract.sorts import Sort, WrongSort, wrong_sort
from capi.kube import times
from capi.kube.conditions import Condition
from capi.kube.objects import Unstructured
from capi.kube.types import GroupKind

FAILURE = 8192
"""Characters that are kept of a failure message; it becomes a part of one of ours, which may have 10240."""
REASON = 256
"""Characters that are kept of a reason."""
ADDRESS_TYPES = frozenset(("Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"))
TEXT = 256
"""Characters of an address or a name, and how many addresses a Machine may have."""
_NO_REASON = re.compile(r"[^A-Za-z0-9_,:]")
# What of a provider's words becomes a field of ours must fit into it: a longer one is a broken contract that is told by its
# path, not a write that the API server refuses for ever.
_PROVIDER_ID: type[str] = cast(type[str], Annotated[str, msgspec.Meta(max_length=512)])
_PROVIDER_IDS = tuple[Annotated[str, msgspec.Meta(max_length=512)], ...]
_NAME: type[str] = cast(type[str], Annotated[str, msgspec.Meta(max_length=TEXT)])
Fact: TypeAlias = Callable[[Unstructured], object]
"""One of the functions below."""


def check(obj: Unstructured, facts: Iterable[Fact]) -> None:
    """Raises ContractError, which names object and path, if one of `facts` cannot be read."""
    for fact in facts:
        fact(obj)


def provisioned(obj: Unstructured) -> bool:
    """The infrastructure is there. v1beta1, and InfraMachinePools of any contract: status.ready."""
    return bool(first(obj, ("status.initialization.provisioned", "status.ready"), bool))


def data_secret_created(obj: Unstructured) -> bool:
    """The bootstrap data is there."""
    return bool(first(obj, ("status.initialization.dataSecretCreated", "status.ready"), bool))


def control_plane_initialized(obj: Unstructured) -> bool:
    """The control plane's API answers."""
    return bool(first(obj, ("status.initialization.controlPlaneInitialized", "status.initialized"), bool))


def external_managed_control_plane(obj: Unstructured) -> bool:
    """The control plane has no Machines in this cluster."""
    return bool(read(obj, "status.externalManagedControlPlane", bool))


def interruptible(obj: Unstructured) -> bool:
    """The provider may take the instance away."""
    return bool(read(obj, "status.interruptible", bool))


def provider_id(obj: Unstructured) -> str:
    """The instance's identity, equal to its Node's."""
    return read(obj, "spec.providerID", _PROVIDER_ID) or ""


def provider_id_list(obj: Unstructured) -> tuple[str, ...]:
    """The instances of a pool."""
    return read(obj, "spec.providerIDList", _PROVIDER_IDS) or ()


def infrastructure_machine_kind(obj: Unstructured) -> str:
    """Kind of the objects for single instances of a pool; "" if it has none."""
    return read(obj, "status.infrastructureMachineKind", str) or ""


def failure_domain(obj: Unstructured) -> str:
    """Where the instance is; older providers say it in spec."""
    return first(obj, ("status.failureDomain", "spec.failureDomain"), _NAME) or ""


def chosen_failure_domain(obj: Unstructured) -> str:
    """Where an older provider has put the instance, for the Machine's spec to say so."""
    return read(obj, "spec.failureDomain", str) or ""


def version(obj: Unstructured) -> str:
    """The Kubernetes version wanted of a control plane."""
    return read(obj, "spec.version", str) or ""


def versions(obj: Unstructured) -> tuple[StatusVersion, ...]:
    """The versions a control plane runs, oldest first."""
    if found := read(obj, "status.versions", tuple[StatusVersion, ...]):
        return found
    single = read(obj, "status.version", str)
    return (StatusVersion(version=single),) if single else ()


def data_secret_name(obj: Unstructured) -> str | None:
    """The Secret with the bootstrap data."""
    return read(obj, "status.dataSecretName", str)


def desired_replicas(obj: Unstructured) -> int | None:
    return read(obj, "spec.replicas", int)


def replicas(obj: Unstructured) -> int | None:
    return read(obj, "status.replicas", int)


def ready_replicas(obj: Unstructured) -> int | None:
    return read(obj, "status.readyReplicas", int)


def available_replicas(obj: Unstructured) -> int | None:
    """v1beta1 control planes (without status.initialization) count the unavailable ones instead, and leave a zero out."""
    found = read(obj, "status.availableReplicas", int)
    if found is not None or find(obj, "status.initialization") is not None:
        return found
    total = replicas(obj)
    return total - (read(obj, "status.unavailableReplicas", int) or 0) if total is not None else None


def up_to_date_replicas(obj: Unstructured) -> int | None:
    """v1beta1: updatedReplicas."""
    return first(obj, ("status.upToDateReplicas", "status.updatedReplicas"), int)


def addresses(obj: Unstructured) -> tuple[MachineAddress, ...]:
    """Those that a Machine can have: some providers report empty ones, and types of their own."""
    found = read(obj, "status.addresses", tuple[MachineAddress, ...]) or ()
    return tuple(each for each in found if each.type in ADDRESS_TYPES and 0 < len(each.address) <= TEXT)[:TEXT]


def failure_domains(obj: Unstructured) -> tuple[FailureDomain, ...]:
    """Sorted by name, suitability for the control plane always said. v1beta1 has a map by name."""
    if isinstance(find(obj, "status.failureDomains"), dict):
        by_name = read(obj, "status.failureDomains", dict[str, dict[str, Any]]) or {}
        found = tuple(
            FailureDomain(name=name, control_plane=d.get("controlPlane"), attributes=d.get("attributes") or {})
            for name, d in by_name.items()
        )
    else:
        found = read(obj, "status.failureDomains", tuple[FailureDomain, ...]) or ()
    said = (FailureDomain(name=d.name, control_plane=bool(d.control_plane), attributes=d.attributes) for d in found)
    return tuple(sorted((domain for domain in said if 0 < len(domain.name) <= TEXT), key=lambda domain: domain.name))


def control_plane_endpoint(obj: Unstructured) -> APIEndpoint | None:
    """None until host and port are both there."""
    endpoint = read(obj, "spec.controlPlaneEndpoint", APIEndpoint)
    return endpoint if endpoint is not None and endpoint.valid else None


def failure(obj: Unstructured) -> tuple[str, str]:
    """failureReason and failureMessage; "" for absent ones. A long message is cut."""
    reason, message = read(obj, "status.failureReason", str) or "", read(obj, "status.failureMessage", str) or ""
    return reason, message[:FAILURE]


def conditions(obj: Unstructured) -> tuple[Condition, ...]:
    """status.v1beta2.conditions if there are any, else status.conditions; best effort for the older shape."""
    found = find(obj, "status.v1beta2.conditions") or find(obj, "status.conditions")
    if not isinstance(found, list):
        return ()
    return tuple(c for entry in found if isinstance(entry, dict) and (c := _condition(entry)) is not None)


def _condition(entry: dict[str, Any]) -> Condition | None:
    type_, status = entry.get("type"), entry.get("status")
    if not (isinstance(type_, str) and isinstance(status, str)):
        return None
    changed = entry.get("lastTransitionTime")
    generation = entry.get("observedGeneration")
    try:
        moment = times.parse(changed) if isinstance(changed, str) else None
    except ValueError:
        moment = None  # a time nobody can read is no reason to lose the condition
    return Condition(
        type=type_,
        status=status,
        reason=_reason(entry.get("reason")),
        message=str(entry.get("message") or ""),
        last_transition_time=moment,
        observed_generation=generation if isinstance(generation, int) else None,
    )


def _reason(told: object) -> str:
    """A reason that a condition may have: v1beta1 let providers write any."""
    word = _NO_REASON.sub("", str(told or "")).lstrip("0123456789_,:").rstrip(",:")
    return word[:REASON] or "NoReasonReported"


@dataclass(frozen=True, slots=True)
class Contract:
    """What core reads of one sort of provider object. Iterates over the facts."""

    facts: tuple[Fact, ...]
    sorts: tuple[Sort, ...]
    """What a reference may name; first what it should."""

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts)

    def trouble(self, kind: GroupKind) -> WrongSort | None:
        """Why a reference to this sort cannot name `kind`."""
        return wrong_sort(kind, self.sorts)


INFRA_MACHINE: Final = Contract(
    (provisioned, provider_id, failure_domain, chosen_failure_domain, addresses, interruptible, failure),
    (Sort.INFRA_MACHINE,),
)
"""An infrastructure object for one Machine."""
INFRA_POOL: Final = Contract(
    (provisioned, provider_id_list, infrastructure_machine_kind, replicas, failure), (Sort.INFRA_POOL,)
)
"""The infrastructure of a pool."""
INFRA_CLUSTER: Final = Contract(
    (provisioned, control_plane_endpoint, failure_domains, failure), (Sort.INFRA_CLUSTER, Sort.CONTROL_PLANE)
)
"""The infrastructure of a Cluster; managed control planes used to be that too."""
BOOTSTRAP: Final = Contract((data_secret_created, data_secret_name, failure), (Sort.BOOTSTRAP,))
"""A bootstrap config."""
CONTROL_PLANE: Final = Contract(
    (
        control_plane_initialized, external_managed_control_plane, control_plane_endpoint, desired_replicas, replicas,
        ready_replicas, available_replicas, up_to_date_replicas, version, versions, failure,
    ),
    (Sort.CONTROL_PLANE,),
)  # fmt: skip
"""A control plane."""
