r"""Kubernetes' JSONPath over parsed objects: printer columns, `kubectl wait`, selectable fields.

    compile(".spec.clusterName")(obj)                                  -> ["c1"]
    compile('.status.conditions[?(@.type=="Ready")].status')(obj)      -> ["True"]

Supported: `.name`, `['name']`, `\.` in names, `[0]`, `[-1]`, `[1:3]`, `[*]`, `.*`, `..name`, unions `[0,2]`, filters with
one comparison, the optional braces and `$`. What is missing, or cannot be ordered or sliced so, yields nothing; only
syntax is an error.

Source: k8s.io/client-go/util/jsonpath.
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[Iterable[Any]], Iterator[Any]]
Path: TypeAlias = Callable[[Any], list[Any]]

_NAME = re.compile(r"(?:[^\s.\[\]\\(){}'\"]|\\.)+")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_SLICE = re.compile(r"(-?\d*)(?::(-?\d*))?(?::(-?\d*))?")
_COMPARISON = re.compile(r"^(.*?)\s*(==|!=|<=|>=|<|>)\s*(.*)$", re.DOTALL)
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@lru_cache(maxsize=1024)
def compile(path: str) -> Path:
    """A function from an object to the values at `path`. Raises ValueError for bad syntax."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    steps = _parse(text.removeprefix("$").removeprefix("@"), path)

    def evaluate(obj: Any) -> list[Any]:
        values: Iterable[Any] = (obj,)
        for step in steps:
            values = step(values)
        return list(values)

    return evaluate


def _parse(text: str, whole: str) -> list[Step]:
    steps: list[Step] = []
    at = 0
    while at < len(text):
        if text.startswith("..", at):
            steps.append(_descend)
            at += 1 if text.startswith("..[", at) else 2
            at += 1 if text.startswith("[", at + 1) and text[at] == "." else 0
            if at < len(text) and text[at] != "[":
                at = _name(text, at, whole, steps)
        elif text[at] == "[":
            end = _closing(text, at, whole)
            steps.append(_bracket(text[at + 1 : end].strip(), whole))
            at = end + 1
        elif text[at] == "." or at == 0:
            at = _name(text, at + (text[at] == "."), whole, steps)
        else:
            raise ValueError(f"unexpected character {text[at]!r} in JSONPath {whole!r}")
    return steps


def _name(text: str, at: int, whole: str, steps: list[Step]) -> int:
    if at == len(text) or text[at] == "[":
        return at  # a lone "." and ".[0]" stand for what is there
    found = _NAME.match(text, at)
    if not found:
        raise ValueError(f"unexpected character {text[at]!r} in JSONPath {whole!r}")
    name = re.sub(r"\\(.)", r"\1", found.group())
    steps.append(_each if name == "*" else _member(name))
    return found.end()


def _closing(text: str, start: int, whole: str) -> int:
    depth, at = 0, start
    while at < len(text):
        if quoted := _QUOTED.match(text, at):
            at = quoted.end()
            continue
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        if depth == 0:
            return at
        at += 1
    raise ValueError(f"unterminated bracket in JSONPath {whole!r}")


def _bracket(inner: str, whole: str) -> Step:
    if inner == "*":
        return _each
    if inner.startswith("?(") and inner.endswith(")"):
        return _filter(inner[2:-1].strip(), whole)
    parts = [part.strip() for part in _split(inner)]
    steps = [_selector(part, whole) for part in parts]
    if len(steps) == 1:
        return steps[0]
    return lambda values: (found for value in values for step in steps for found in step((value,)))


def _split(inner: str) -> list[str]:
    """Comma-separated parts, commas in quotes apart."""
    parts, at, start = [], 0, 0
    while at < len(inner):
        if quoted := _QUOTED.match(inner, at):
            at = quoted.end()
            continue
        if inner[at] == ",":
            parts.append(inner[start:at])
            start = at + 1
        at += 1
    return [*parts, inner[start:]]


def _selector(part: str, whole: str) -> Step:
    if quoted := _QUOTED.fullmatch(part):
        return _member(_unquoted(quoted))
    found = _SLICE.fullmatch(part)
    if not part or not found:
        raise ValueError(f"invalid array index {part!r} in JSONPath {whole!r}")
    if ":" not in part:
        return _index(int(part))
    bounds = [int(bound) if bound else None for bound in found.groups()]
    if (step := bounds[2]) is not None and step <= 0:
        return lambda values: iter(())
    return lambda values: (item for value in values if isinstance(value, list) for item in value[slice(*bounds)])


def _unquoted(found: re.Match[str]) -> str:
    text = found.group(1) if found.group(1) is not None else found.group(2)
    return re.sub(r"\\(.)", r"\1", text)


def _member(name: str) -> Step:
    return lambda values: (value[name] for value in values if isinstance(value, dict) and name in value)


def _index(index: int) -> Step:
    return lambda values: (v[index] for v in values if isinstance(v, list) and -len(v) <= index < len(v))


def _each(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value


def _descend(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        yield value
        yield from _descend(_each((value,)))


def _filter(condition: str, whole: str) -> Step:
    comparison = _COMPARISON.match(condition)
    if comparison is None:
        exists = _operand(condition, whole)
        return lambda values: (item for item in _each(values) if exists(item))
    left, right = _operand(comparison.group(1), whole), _operand(comparison.group(3), whole)
    sign = comparison.group(2)
    holds, ordering = _OPERATORS[sign], sign not in ("==", "!=")

    def select(values: Iterable[Any]) -> Iterator[Any]:
        for item in _each(values):
            mine, theirs = left(item), right(item)
            if len(mine) != 1 or len(theirs) != 1 or type(mine[0]) is not type(theirs[0]):
                continue
            if (not ordering or isinstance(mine[0], str | int | float)) and holds(mine[0], theirs[0]):
                yield item

    return select


def _operand(text: str, whole: str) -> Path:
    text = text.strip()
    if text.startswith(("@", "$")):
        return compile(text)
    if quoted := _QUOTED.fullmatch(text):
        constant: Any = _unquoted(quoted)
    elif text in ("true", "false"):
        constant = text == "true"
    else:
        try:
            constant = float(text) if "." in text else int(text)
        except ValueError:
            raise ValueError(f"unrecognized operand {text!r} in JSONPath {whole!r}") from None
    return lambda item: [constant]
