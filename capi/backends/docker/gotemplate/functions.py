"""The functions that every template has, as in Go, and what a function is.

A function takes its arguments in order and answers with a value, or raises BadCall with what is wrong. `and` and `or`
are not here: they do not look at all of their arguments (`evaluating`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from capi.backends.docker.gotemplate.values import Struct, Value, is_true, kind, written

Function: TypeAlias = Callable[[Sequence[Value]], Value]
LENGTH = 1 << 20
"""Characters that a template may write, and the longest text it may make on the way: what a ConfigMap can hold."""
_VERB = re.compile(r"%([-+# 0-9.]*.?)", re.DOTALL)


class BadCall(ValueError):
    """A function cannot work with these arguments."""


def _equal(arguments: Sequence[Value]) -> Value:
    """Whether the first is equal to any of the others."""
    if len(arguments) < 2:
        raise BadCall("needs two values to compare")
    first, *others = arguments
    return any(_same(first, other) for other in others)


def _same(one: Value, other: Value) -> bool:
    if kind(one) != kind(other):
        raise BadCall(f"cannot compare {kind(one)} with {kind(other)}")
    if isinstance(one, Mapping | Struct):
        raise BadCall("cannot compare maps and objects")
    return one == other


def _not_equal(arguments: Sequence[Value]) -> Value:
    one, other = exactly(2, arguments)
    return not _same(one, other)


def _not(arguments: Sequence[Value]) -> Value:
    (value,) = exactly(1, arguments)
    return not is_true(value)


def _len(arguments: Sequence[Value]) -> Value:
    """Entries of a map; bytes of a text in UTF-8."""
    (value,) = exactly(1, arguments)
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Mapping):
        return len(value)
    raise BadCall(f"{kind(value)} has no length")


def _index(arguments: Sequence[Value]) -> Value:
    """The entry of a map, of an entry of a map, and so on."""
    if not arguments:
        raise BadCall("needs a map")
    value, *keys = arguments
    for key in keys:
        if not isinstance(value, Mapping):
            raise BadCall(f"{kind(value)} has no entries")
        if not isinstance(key, str) or key not in value:
            raise BadCall(f"there is no entry {written(key)!r}")
        value = value[key]
    return value


def _printf(arguments: Sequence[Value]) -> Value:
    """A text with %s (a text), %d (a number), %v (any value) and %%."""
    if not arguments or not isinstance(arguments[0], str):
        raise BadCall("needs a text first")
    values, made, at, length = iter(arguments[1:]), list[str](), 0, 0
    for verb in _VERB.finditer(arguments[0]):
        made += [arguments[0][at : verb.start()], _formatted(verb[1], values)]
        at = verb.end()
        length += len(made[-2]) + len(made[-1])
        if length > LENGTH:
            raise BadCall(f"makes a text of more than {LENGTH} characters")
    if extra := sum(1 for _ in values):
        raise BadCall(f"has {extra} more values than verbs")
    return "".join(made) + arguments[0][at:]


def _formatted(verb: str, values: Iterator[Value]) -> str:
    if verb == "%":
        return "%"
    if verb not in ("s", "d", "v"):
        raise BadCall(f"does not understand %{verb}; %s, %d, %v and %% are")
    value = next(values, None)
    if value is None:
        raise BadCall(f"has no value for %{verb}")
    wanted = {"s": "a text", "d": "a number"}.get(verb, kind(value))
    if kind(value) != wanted:
        raise BadCall(f"has {kind(value)} for %{verb}, which is for {wanted}")
    return written(value)


def exactly(count: int, arguments: Sequence[Value]) -> Sequence[Value]:
    """The arguments, when there are as many as that."""
    if len(arguments) != count:
        raise BadCall(f"takes {count} arguments, not {len(arguments)}")
    return arguments


BUILTIN: Mapping[str, Function] = {
    "eq": _equal,
    "ne": _not_equal,
    "not": _not,
    "len": _len,
    "index": _index,
    "printf": _printf,
}
