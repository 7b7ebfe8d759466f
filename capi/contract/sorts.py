"""Which sort of provider object a kind is, told by how its name ends, as the provider contracts name their kinds.

A reference to a kind of another sort (a pool's infrastructureRef that names a DevCluster, or a template) is never followed:
what it leads to would be adopted, and deleted together with the object that refers to it. A name that ends in
none of these ways is taken on trust.
Source: the provider contract pages of the Cluster API book.
Differs: upstream follows every reference.
"""

from enum import StrEnum

from capi.kube.errors import ContractError
from capi.kube.types import GroupKind

CORE = "cluster.x-k8s.io"
"""No kind of this group is a provider's."""


class Sort(StrEnum):
    """How kinds of a sort end."""

    TEMPLATE = "Template"
    CONTROL_PLANE = "ControlPlane"
    INFRA_POOL = "MachinePool"
    INFRA_MACHINE = "Machine"
    INFRA_CLUSTER = "Cluster"
    BOOTSTRAP = "Config"


class WrongSort(ContractError):
    """A reference names a kind of another sort; nothing of that kind is used or deleted."""


def sort_of(kind: str) -> Sort | None:
    """None: the name does not tell."""
    return next((sort for sort in Sort if kind.endswith(sort)), None)


def wrong_sort(kind: GroupKind, allowed: tuple[Sort, ...]) -> WrongSort | None:
    """Why a reference that must lead to the first of `allowed`, and may to the others, cannot name `kind`."""
    found = sort_of(kind.kind)
    if kind.group != CORE and (found is None or found in allowed):
        return None
    return WrongSort(
        f"{kind} cannot be used here: the kind must be a provider's and end in {allowed[0]}; refer to such an object"
    )


def wrong_remediation(template: GroupKind) -> WrongSort | None:
    """Why what is made from templates of this kind cannot be a remediation request, which is deleted once its Machine has recovered.

    A request is named like its Machine and owned by it, and so are the infrastructure and the bootstrap config of a pool's Machine.
    """
    made = template.kind.removesuffix(Sort.TEMPLATE)
    if template.group != CORE and made != template.kind and sort_of(made) is None:
        return None
    return WrongSort(
        f"{template} cannot be used here: the kind must be a remediation provider's, as ExampleRemediationTemplate; "
        "refer to such an object"
    )
