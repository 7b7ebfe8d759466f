"""Kubernetes resource quantities: `500m`, `1Gi`, `2e3`.

Source: k8s.io/apimachinery/pkg/api/resource (Quantity).
"""

import re
from decimal import ROUND_UP, Context, Decimal, InvalidOperation

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO = Decimal("1e-9")
_MAX_BINARY = Decimal(2**63 - 1)
_CONTEXT = Context(prec=60)
_WRONG = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    "unable to parse quantity's suffix",
)


def parse(text: str) -> Decimal:
    """The exact value; what is finer than a billionth is rounded away from zero. Raises ValueError with Kubernetes' text.

    Values of more than 50 digits before the point are refused, too.
    """
    return _split(text)[0]


def canonical(text: str) -> str:
    """The spelling an API server returns: no fraction, the largest suffix that keeps the value exact.

    `0.5` → `500m`, `1024Mi` → `1Gi`, `1000k` → `1M`. Raises ValueError like `parse`.
    """
    value, style = _split(text)
    if style == "binary" and (abs(value) >= 1024 or value == 0) and value == value.to_integral_value():
        return _binary(int(value))
    if style == "exponent":
        exponent = _exponent(value)
        return _digits(value, exponent) + (f"e{exponent}" if exponent else "")
    exponent = _exponent(value)
    return _digits(value, exponent) + next(s for s, e in _DECIMAL.items() if e == exponent)


def _split(text: str) -> tuple[Decimal, str]:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        plain = re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)[eEinumkKMGTP]*[-+]?\d*", text)
        raise ValueError(_WRONG[1] if plain else _WRONG[0])
    try:
        return _value(Decimal(match[1]), match[2] or "")
    except InvalidOperation:
        raise ValueError(_WRONG[1]) from None


def _value(number: Decimal, suffix: str) -> tuple[Decimal, str]:
    if suffix in _BINARY:
        value, style = _CONTEXT.multiply(number, Decimal(2 ** _BINARY[suffix])), "binary"
        value = max(min(value, _MAX_BINARY), -_MAX_BINARY)
    elif suffix in _DECIMAL:
        value, style = number.scaleb(_DECIMAL[suffix], _CONTEXT), "decimal"
    else:
        value, style = number.scaleb(int(suffix[1:]), _CONTEXT), "exponent"
    if value != value.quantize(_NANO, ROUND_UP, _CONTEXT):
        value = value.quantize(_NANO, ROUND_UP, _CONTEXT)
    return value, style


def _exponent(value: Decimal) -> int:
    if value == 0:
        return 0
    exponent = 18
    while exponent > -9 and value.scaleb(-exponent, _CONTEXT) % 1 != 0:
        exponent -= 3
    return exponent


def _digits(value: Decimal, exponent: int) -> str:
    return f"{int(value.scaleb(-exponent, _CONTEXT))}"


def _binary(value: int) -> str:
    suffixes = list(_BINARY)
    step = 0
    while value and value % 1024 == 0 and step < len(suffixes):
        value //= 1024
        step += 1
    return f"{value}{suffixes[step - 1] if step else ''}"
