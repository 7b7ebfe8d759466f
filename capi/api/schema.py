"""What a CRD says about a type that the type itself cannot: constraints, list keys, printer columns.

Constraints are metadata for the generated schema only. Decoding ignores them on purpose: what the API server has stored
must always be readable, even if it was admitted under older rules.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

DNS = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
KIND = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"
CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
CONDITION_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
TAINT_KEY = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)
TAINT_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
API_VERSION = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$"
RANGE = r"^\[[0-9]+-[0-9]+\]$"
VERSION = (
    r"^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$"
)
"""`v` and a strict semantic version."""
DURATION = (
    r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$|^0$"
)
"""A Go duration that is not negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cel:
    """One x-kubernetes-validations entry."""

    rule: str
    message: str
    field_path: str = ""
    reason: Literal["", "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Schema constraints of a field (in Annotated) or of a whole struct (its `openapi` class variable)."""

    min_length: int | None = None
    max_length: int | None = None
    pattern: str = ""
    enum: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    format: str = ""
    list_keys: tuple[str, ...] = ()
    """Keys of a list that merges as a map."""
    atomic: bool = False
    """A list (or struct) that is replaced as a whole."""
    int_or_string: bool = False
    required: bool = False
    """Required on the wire although the type has a default."""
    cel: tuple[Cel, ...] = ()
    shape: type | None = None
    """A subtype that is on the wire: its further fields are stored and shown, and read by nobody here."""


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column; `priority` > 0 shows only with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Crd:
    """How a kind is served: the part of its CRD that is not the schema."""

    singular: str
    short_names: tuple[str, ...] = ()
    status: bool = True
    scale: bool = False
    scale_selector: str = ""
    columns: tuple[Column, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    required: tuple[str, ...] = ("spec",)
    """Required members of the root."""


def condition_column(name: str, type_: str, priority: int = 0) -> Column:
    """A column that shows the status of a condition."""
    return Column(name, f'.status.conditions[?(@.type=="{type_}")].status', "string", priority)


AGE = Column("Age", ".metadata.creationTimestamp", "date")
PAUSED = condition_column("Paused", "Paused", 10)
CLUSTER_LABEL_COLUMN = Column("Cluster", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']")

Name: TypeAlias = Annotated[str, Rule(min_length=1, max_length=253, pattern=DNS)]
Text256: TypeAlias = Annotated[str, Rule(min_length=1, max_length=256)]
ClusterName: TypeAlias = Annotated[
    str,
    Rule(
        min_length=1,
        max_length=63,
        cel=(Cel(rule="self == oldSelf", message="field is immutable", reason="FieldValueForbidden"),),
    ),
]
"""The Cluster an object belongs to; it never changes."""
MemberOf: TypeAlias = Annotated[str, Rule(min_length=1, max_length=63)]
"""The Cluster named in a template; compared with the owner's by the owner's rules."""
ProviderID: TypeAlias = Annotated[str, Rule(min_length=1, max_length=512)]
"""Identity of an instance at its provider, equal to the Node's spec.providerID."""
Version: TypeAlias = Annotated[str, Rule(min_length=1, max_length=256, pattern=VERSION)]
Int32: TypeAlias = Annotated[int, Rule(format="int32")]
Count: TypeAlias = Annotated[int, Rule(format="int32", minimum=0)]
Seconds: TypeAlias = Annotated[int, Rule(format="int32", minimum=0)]
Generation: TypeAlias = Annotated[int, Rule(format="int64", minimum=1)]
ConditionType: TypeAlias = Annotated[str, Rule(min_length=1, max_length=316, pattern=CONDITION_TYPE)]
ConditionStatus: TypeAlias = Annotated[str, Rule(enum=("True", "False", "Unknown"))]
Duration: TypeAlias = Annotated[str, Rule(pattern=DURATION)]
"""A Go duration, like "1m30s"."""
IntOrPercent: TypeAlias = Annotated[int | str, Rule(int_or_string=True)]
