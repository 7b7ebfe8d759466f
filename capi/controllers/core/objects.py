"""Provider objects that a pass has looked up: there, not there, or unreadable."""

from collections.abc import Iterable
from dataclasses import dataclass

from capi import contract
from capi.api.core.v1beta2 import ContractRef
from capi.controllers import owners
from capi.kube.errors import CapiError, ContractError, TransportError, UnknownKind
from capi.kube.objects import Resource, Unstructured
from capi.runtime.reader import Reader


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a reference. At most one of `obj` and `error` is set; neither: the object does not exist."""

    ref: ContractRef | None = None
    obj: Unstructured | None = None
    error: CapiError | None = None
    broken: Unstructured | None = None
    """With an error: the object that breaks the contract. It can be deleted, but nothing can be read of it."""

    @property
    def present(self) -> Unstructured | None:
        """What there is to delete, however broken."""
        return self.obj or self.broken

    @property
    def obscure(self) -> CapiError | None:
        """Why nobody knows whether there is anything; None where there is certainly nothing of ours: the kind does not
        exist or is of another sort, or the object is somebody else's."""
        certain = self.broken is not None or isinstance(self.error, UnknownKind | contract.WrongSort | owners.Foreign)
        return None if certain else self.error

    @property
    def foreign(self) -> bool:
        """The object is somebody else's."""
        return isinstance(self.error, owners.Foreign)

    @property
    def missing(self) -> bool:
        """There is a reference, and certainly nothing behind it."""
        return self.ref is not None and self.obj is None and self.error is None

    @property
    def gone(self) -> bool:
        """Certainly nothing is there: no reference, or nothing behind it."""
        return self.obj is None and self.error is None

    @property
    def usable(self) -> Unstructured | None:
        """The object, unless it is being deleted."""
        return None if self.obj is None or self.obj.deleting else self.obj

    def unless_foreign(self, owner: Resource) -> "Found":
        """The same for `owner`, to whom an object with another controller is an error and nothing else."""
        obj = self.present
        trouble = owners.foreign_trouble(obj, owner) if obj is not None else None
        return self if trouble is None else Found(self.ref, error=trouble)

    def __str__(self) -> str:
        return f"{self.ref.kind} {self.ref.name}" if self.ref else "nothing"


ABSENT = Found()


async def look_up(
    reader: Reader, ref: ContractRef | None, namespace: str, facts: Iterable[contract.Fact] = ()
) -> Found:
    """Follow a reference; a broken contract (no CRD, no label, a malformed one of `facts`), a kind that cannot be watched
    and one of another sort than the Contract given as `facts` are kept as an error, for the condition to say so. The `facts` of
    an object that is found without error can be read."""
    if ref is None or not ref.name:
        return ABSENT
    trouble = facts.trouble(ref.group_kind) if isinstance(facts, contract.Contract) else None
    if trouble is not None:
        return Found(ref, error=trouble)
    try:
        obj = await reader.external(ref.group_kind, ref.name, namespace)
    except (ContractError, TransportError) as error:
        return Found(ref, error=error)
    try:
        if obj is not None:
            contract.check(obj, facts)
    except ContractError as error:
        return Found(ref, error=error, broken=obj)
    return Found(ref, obj)


def ref_value(namespace: str, group: str, kind: str, name: str) -> str:
    """How references are filed in the indexes by reference."""
    return f"{kind}.{group}/{namespace}/{name}"


def ref_values(namespace: str, *refs: ContractRef | None) -> list[str]:
    return [ref_value(namespace, ref.api_group, ref.kind, ref.name) for ref in refs if ref is not None]


def value_of(obj: Unstructured) -> str:
    """Under which value the referrers of `obj` are filed."""
    return ref_value(obj.namespace, obj.resource.group, obj.resource.kind, obj.name)
