"""What templates compute with, and how Go writes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

SHOWN = 40
"""Characters of a bad text that a message repeats."""
MESSAGE = 400
"""Characters of a message; names in a template may have any length."""


class TemplateError(ValueError):
    """A template cannot be understood, or not be carried out with these values."""

    def __init__(self, line: int, what: str) -> None:
        what = what if len(what) <= MESSAGE else f"{what[:MESSAGE]}…"
        super().__init__(f"line {line}: {what}")
        self.line, self.what = line, what


@dataclass(frozen=True, slots=True)
class Struct:
    """A value with named members, of which there are no others. Always true; written `{a b}`."""

    members: Mapping[str, "Value"]


Value: TypeAlias = bool | int | str | Struct | Mapping[str, "Value"]


def kind(value: Value) -> str:
    """What a value is, in words for messages; values of one kind can be compared."""
    match value:
        case bool():
            return "a boolean"
        case int():
            return "a number"
        case str():
            return "a text"
        case Struct():
            return "an object"
    return "a map"


def is_true(value: Value) -> bool:
    """Everything but false, 0 and what is empty."""
    return isinstance(value, Struct) or bool(value)


def written(value: Value) -> str:
    """A value as Go's `%v` writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
        case Struct(members):
            return "{" + " ".join(written(member) for member in members.values()) + "}"
    return "map[" + " ".join(f"{key}:{written(value[key])}" for key in sorted(value)) + "]"


def shown(text: str) -> str:
    """A piece of a template as a message repeats it."""
    return repr(text[:SHOWN]) + ("…" if len(text) > SHOWN else "")
