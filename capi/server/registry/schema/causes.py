"""Field errors in Kubernetes' words, as causes of a Status.

Source: k8s.io/apimachinery/pkg/util/validation/field/errors.go (ErrorBody and its constructors).
"""

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import orjson

from capi.kube.errors import Cause

OMITTED = object()
"""A value that the message does not show."""


def quoted(text: str) -> str:
    """A string as Go's %q prints it."""
    return '"' + "".join(_ESCAPES.get(char) or _printable(char) for char in text) + '"'


_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """A number as Go's %v prints it: integers plainly, floats in the shortest form, with exponents from 1e+06 up."""
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return str(value)
    value = float(value)
    digits = Decimal(repr(value)).normalize()
    if not math.isfinite(value) or -5 < digits.adjusted() < 6 or not value:
        return format(digits, "f") if math.isfinite(value) else repr(value)
    mantissa, _, exponent = format(digits, "e").partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:].zfill(2)}"


def shown(value: Any) -> str:
    """A value as messages show it: strings quoted, numbers plain, the rest as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int | float):
        return number(value)
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _cause(reason: str, word: str, path: str, value: Any, detail: str) -> Cause:
    body = word if value is OMITTED else f"{word}: {shown(value)}"
    return Cause(reason, f"{body}: {detail}" if detail else body, path)


def required(path: str, detail: str = "") -> Cause:
    return _cause("FieldValueRequired", "Required value", path, OMITTED, detail)


def invalid(path: str, value: Any, detail: str) -> Cause:
    return _cause("FieldValueInvalid", "Invalid value", path, value, detail)


def type_invalid(path: str, value: Any, detail: str) -> Cause:
    return _cause("FieldValueTypeInvalid", "Invalid value", path, value, detail)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> Cause:
    values = ", ".join(quoted(item) for item in supported)
    return _cause(
        "FieldValueNotSupported", "Unsupported value", path, value, f"supported values: {values}" if values else ""
    )


def duplicate(path: str, value: Any) -> Cause:
    return _cause("FieldValueDuplicate", "Duplicate value", path, value, "")


def not_found(path: str, value: Any) -> Cause:
    return _cause("FieldValueNotFound", "Not found", path, value, "")


def forbidden(path: str, detail: str) -> Cause:
    return _cause("FieldValueForbidden", "Forbidden", path, OMITTED, detail)


def too_long(path: str, limit: int) -> Cause:
    unit = "byte" if limit == 1 else "bytes"
    return _cause("FieldValueTooLong", "Too long", path, OMITTED, f"may not be more than {limit} {unit}")


def too_many(path: str, actual: int, limit: int) -> Cause:
    unit = "item" if limit == 1 else "items"
    return _cause("FieldValueTooMany", "Too many", path, actual, f"must have at most {limit} {unit}")


def internal(path: str, detail: str) -> Cause:
    return _cause("InternalError", "Internal error", path, OMITTED, detail)


IMMUTABLE = "field is immutable"


def immutable(path: str, new: Any, old: Any, detail: str = IMMUTABLE) -> list[Cause]:
    """One cause when a value that may not change did."""
    return [] if new == old else [invalid(path, new, detail)]
