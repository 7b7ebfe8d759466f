"""Label and field selectors: parse once, match often.

Sources: k8s.io/apimachinery/pkg/labels and pkg/fields (grammar, matching, texts of errors).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from capi.kube import validation
from capi.kube.errors import BadRequest
from capi.kube.types import Object

Operator = Literal["in", "notin", "exists", "!", "gt", "lt"]
_OPERATORS = "in, notin, =, ==, !=, gt, lt"
_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|$)")
_BINARY: dict[str, Operator] = {
    "in": "in",
    "notin": "notin",
    "=": "in",
    "==": "in",
    "!=": "notin",
    ">": "gt",
    "<": "lt",
}
_WIRE: dict[str, Operator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_INT64 = re.compile(r"[+-]?\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator == "in":
            return value is not None and value in self.values
        if self.operator == "notin":
            return value is None or value not in self.values
        if self.operator == "exists":
            return value is not None
        if self.operator == "!":
            return value is None
        number, bound = _integer(value), int(next(iter(self.values)))
        return number is not None and (number > bound if self.operator == "gt" else number < bound)

    def __str__(self) -> str:
        if self.operator == "exists":
            return self.key
        if self.operator == "!":
            return f"!{self.key}"
        listed = ",".join(sorted(self.values))
        if self.operator in ("gt", "lt"):
            return f"{self.key}{'>' if self.operator == 'gt' else '<'}{listed}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == 'in' else '!='}{listed}"
        return f"{self.key} {self.operator} ({listed})"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; none at all matches everything."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    """Matches no object (a null metav1.LabelSelector)."""
    requires: Mapping[str, str] = field(init=False, compare=False)
    """Labels whose exact value every match has: what an index can look up."""

    def __post_init__(self) -> None:
        exact = {r.key: next(iter(r.values)) for r in self.requirements if r.operator == "in" and len(r.values) == 1}
        object.__setattr__(self, "requires", exact)

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """True if an object with these labels is selected; None is no labels."""
        labels = labels or {}
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def everything(self) -> bool:
        return not self.requirements and not self.nothing

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


def from_labels(labels: Mapping[str, str]) -> LabelSelector:
    """The selector of objects that carry all `labels`."""
    return LabelSelector(tuple(Requirement(k, "in", frozenset((v,))) for k, v in sorted(labels.items())))


def parse_labels(text: str) -> LabelSelector:
    """`a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`. Raises BadRequest with Kubernetes' text."""
    return LabelSelector(tuple(sorted(_Parser(text).requirements(), key=lambda r: r.key)))


def labels_from_wire(selector: Object | None) -> LabelSelector:
    """A metav1.LabelSelector: null matches nothing, `{}` everything. Raises BadRequest."""
    if selector is None:
        return LabelSelector(nothing=True)
    found = [_checked(key, "in", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = str(expression.get("operator") or "")
        if operator not in _WIRE:
            raise BadRequest(f'"{operator}" is not a valid label selector operator')
        found.append(_checked(str(expression.get("key") or ""), _WIRE[operator], expression.get("values") or ()))
    return LabelSelector(tuple(sorted(found, key=lambda r: r.key)))


def _checked(key: str, operator: Operator, values: Sequence[str]) -> Requirement:
    errors = [f'key: Invalid value: "{key}": {"; ".join(texts)}' for texts in (validation.label_key(key),) if texts]
    if operator in ("in", "notin") and not values:
        errors.append("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    if operator in ("exists", "!") and values:
        shown = ",".join(f'"{value}"' for value in values)
        errors.append(f"values: Invalid value: [{shown}]: values set must be empty for exists and does not exist")
    if operator in ("gt", "lt") and _integer(values[0]) is None:
        errors.append(
            f"values[0]: Invalid value: \"{values[0]}\": for 'Gt', 'Lt' operators, the value must be an integer"
        )
    for index, value in enumerate(values):
        if texts := validation.label_value(value):
            errors.append(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(texts)}')
    if errors:
        raise BadRequest(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return Requirement(key, operator, frozenset(values))


def _integer(text: str | None) -> int | None:
    if text is None or not _INT64.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class _Parser:
    """Recursive descent over the tokens; "" is the end."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text.partition("\0")[0])
        self.tokens.append("")
        self.at = 0

    def requirements(self) -> Iterable[Requirement]:
        while True:
            token = self.peek()
            if token == "":
                return
            if token != "!" and not _identifier(token):
                raise BadRequest(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                yield self.requirement()
            except BadRequest as error:
                raise BadRequest(f"unable to parse requirement: {error.message}") from None
            token = self.take()
            if token == "":
                return
            if token != ",":
                raise BadRequest(f"found '{token}', expected: ',' or 'end of string'")
            if not (self.peek() == "!" or _identifier(self.peek())):
                raise BadRequest(f"found '{self.peek()}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        negated = self.peek() == "!"
        if negated:
            self.take()
        key = self.take()
        if not _identifier(key):
            raise BadRequest(f"found '{key}', expected: identifier")
        if texts := validation.label_key(key):
            raise BadRequest(f'<nil>: Invalid value: "{key}": {"; ".join(texts)}')
        if negated or self.peek() in ("", ","):
            return Requirement(key, "!" if negated else "exists")
        operator = self.take()
        if operator not in _BINARY:
            raise BadRequest(f"found '{operator}', expected: {_OPERATORS}")
        values = self.values() if operator in ("in", "notin") else (self.value(),)
        return _checked(key, _BINARY[operator], sorted(set(values)))

    def value(self) -> str:
        if self.peek() in ("", ","):
            return ""
        token = self.take()
        if not _identifier(token):
            raise BadRequest(f"found '{token}', expected: identifier")
        return token

    def values(self) -> list[str]:
        token = self.take()
        if token != "(":
            raise BadRequest(f"found '{token}' expected: '('")
        if self.peek() == ")":
            self.take()
            return [""]
        if self.peek() != "," and not _identifier(self.peek()):
            raise BadRequest(f"found '{self.peek()}', expected: ',', ')' or identifier")
        found: list[str] = []
        while True:
            found.append(self.take() if _identifier(self.peek()) else "")
            token = self.take()
            if token == ")":
                return found
            if token != ",":
                expected = "',' or ')'" if found[-1] else "',', or identifier"
                raise BadRequest(f"found '{token}', expected: {expected}")

    def peek(self) -> str:
        return str(self.tokens[self.at])

    def take(self) -> str:
        token = self.peek()
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token


def _identifier(token: str) -> bool:
    return token != "" and token[0] not in "=!(),<>"


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One comparison of one field."""

    field: str
    value: str
    equal: bool = True


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All terms must hold."""

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, get: Callable[[str], str]) -> bool:
        """True if selected; `get` returns the object's value of a field, "" when absent."""
        return all((get(term.field) == term.value) is term.equal for term in self.terms)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields it looks at, in order, each once."""
        return tuple(dict.fromkeys(term.field for term in self.terms))

    @property
    def requires(self) -> Mapping[str, str]:
        """Fields whose exact value every match has."""
        return {term.field: term.value for term in self.terms if term.equal}

    def __str__(self) -> str:
        return ",".join(f"{t.field}{'=' if t.equal else '!='}{_escape(t.value)}" for t in self.terms)


def parse_fields(text: str) -> FieldSelector:
    """`metadata.name=x,status.phase!=Running`; a backslash escapes `\\`, `,` and `=` in values. Raises BadRequest."""
    terms = [_term(part, text) for part in sorted(re.findall(r"(?:[^\\,]|\\.|\\$)+", text, re.DOTALL))]
    return FieldSelector(tuple(terms))


def _term(part: str, whole: str) -> FieldTerm:
    match = re.match(r"(.*?)(!=|==|=)(.*)", part, re.DOTALL)
    if match is None:
        raise BadRequest(f"invalid selector: '{whole}'; can't understand '{part}'")
    name, operator, value = match.groups()
    return FieldTerm(name, _unescape(value), operator != "!=")


def _unescape(value: str) -> str:
    if "\\" not in value and "=" not in value:
        return value
    for piece in re.findall(r"\\.?|=", value, re.DOTALL):
        if piece == "=":
            raise BadRequest(f"invalid field selector: unescaped character in value: {ord(piece)}")
        if piece not in ("\\\\", "\\,", "\\="):
            raise BadRequest(f"invalid field selector: invalid escape sequence: {piece}")
    return re.sub(r"\\(.)", r"\1", value)


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)
