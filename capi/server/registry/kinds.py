"""What the verbs need to know of a kind besides its ResourceInfo: rules that a schema cannot express.

Built-in kinds declare theirs in `registry.builtin`; custom resources all follow `CUSTOM_RESOURCE`.

Upstream: the per-kind strategies in k8s.io/kubernetes/pkg/registry and apiextensions' customresource strategy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.interface import ResourceInfo


def _same(obj: Object) -> Object:
    return obj


def _valid(obj: Object, old: Object | None) -> Sequence[Cause]:
    return ()


@dataclass(frozen=True, slots=True)
class KindRules:
    """How writes of one kind behave. The functions are pure: they never change their arguments."""

    generation: bool = True
    """metadata.generation is 1 at create and grows with every change outside metadata (and status, if a subresource)."""
    unconditional_update: bool = False
    """PUT without metadata.resourceVersion is allowed."""
    create_on_update: bool = False
    """PUT to a missing object creates it (Lease, Event, RBAC kinds)."""
    delete_answers_object: bool = False
    """DELETE answers the object instead of a Status when it is gone at once."""
    keeps_status_at_create: bool = False
    """Status sent with POST is kept although there is a status subresource (Node)."""
    status_metadata: bool = False
    """Writes to /status also change labels, annotations and finalizers (built-in kinds)."""
    qualified_finalizers: bool = True
    """Finalizers must be qualified names (422); for custom resources it is a warning only."""
    validate_name: Callable[[str], list[str]] | None = None
    """Messages for a bad name; None = DNS-1123 subdomain."""
    default: Callable[[Object], Object] = _same
    """Defaulting beyond the schema's defaults, run on every write (Pod status Pending, Secret stringData, …)."""
    prepare_update: Callable[[Object, Object], Object] | None = None
    """(new, old) -> new with fields restored that updates silently keep."""
    validate: Callable[[Object, Object | None], Sequence[Cause]] = _valid
    """(new, old or None at create): rules beyond the schema, immutable parts included."""
    validate_status: Callable[[Object, Object | None], Sequence[Cause]] = _valid
    """The same for writes to /status."""
    fields: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    """Field selectors that are not a plain path into the object (Node spec.unschedulable: "false" when absent)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A served version of a built-in resource with its rules."""

    info: ResourceInfo
    rules: KindRules = KindRules()


CUSTOM_RESOURCE = KindRules(qualified_finalizers=False)
"""Rules of every custom resource."""
