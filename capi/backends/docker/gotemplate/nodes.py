"""A template as it was understood."""

from dataclasses import dataclass
from typing import TypeAlias

from capi.backends.docker.gotemplate.lexing import Text
from capi.backends.docker.gotemplate.values import Value


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, number or boolean that stands in the template."""

    value: Value


@dataclass(frozen=True, slots=True)
class Dot:
    """The value that the surrounding `with` or `range` is about."""


@dataclass(frozen=True, slots=True)
class Variable:
    """`$x`; `$` is the data of the whole template."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a function."""

    name: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Members of members: `.A.B`, `$x.A`, `(index .M "k").A`."""

    base: "Operand"
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A value, or a function and its arguments."""

    line: int
    operands: tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands of which each gets the result of the one before as its last argument."""

    line: int
    commands: tuple[Command, ...]
    variables: tuple[str, ...] = ()
    """That take the result; then nothing is written."""
    declares: bool = False
    """The variables are new (`:=`), not those that exist (`=`)."""


@dataclass(frozen=True, slots=True)
class Branch:
    """if, with or range."""

    keyword: str
    line: int
    pipeline: Pipeline
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...] = ()


Operand: TypeAlias = Literal | Dot | Variable | Name | Chain | Pipeline
Node: TypeAlias = Text | Pipeline | Branch
