"""String formats that custom resource schemas may name; formats that are not listed are not checked.

Source: pkg/apiserver/validation/formats.go of k8s.io/apiextensions-apiserver, k8s.io/kube-openapi/pkg/validation/strfmt.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from urllib.parse import urlsplit

from capi.kube import validation

Check = Callable[[str], bool]


def _matches(pattern: str) -> Check:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _parses(parse: Callable[[str], object]) -> Check:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


_HEX = "[0-9a-fA-F]"


def _uuid(version: str, variant: str) -> Check:
    return _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{version}{_HEX}{{3}}-?{variant}{_HEX}{{3}}-?{_HEX}{{12}}")


_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):?[0-5]\d)"
)


def _date_time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    return found is not None and _date(found.group(1))


def _date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _uri(text: str) -> bool:
    """What net/url.ParseRequestURI takes: absolute, or a path."""
    if not text or any(ord(char) <= 0x20 or ord(char) == 0x7F for char in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/") or text == "*"


def _hostname(text: str) -> bool:
    labels = text.split(".")
    return len(text) <= 255 and all(_HOST_LABEL(label) for label in labels)


_HOST_LABEL = _matches(r"[a-zA-Z0-9\u00a1-\uffff]([a-zA-Z0-9\u00a1-\uffff_-]{0,61}[a-zA-Z0-9\u00a1-\uffff])?")


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(text) % 4 == 0


_GO_DURATION = _matches(r"[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
_SCALA_DURATION = _matches(
    r"\s*\d+\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|"
    r"m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)\s*"
)
_CARD = _matches(
    r"4\d{12}(\d{3})?|5[1-5]\d{14}|6(011|5\d\d)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(2131|1800|35\d{3})\d{11}"
)


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"\d{9}[\dX]", digits):
        return False
    return sum((i + 1) * (10 if char == "X" else int(char)) for i, char in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    return bool(re.fullmatch(r"\d{13}", digits)) and sum(int(d) * (1, 3)[i % 2] for i, d in enumerate(digits)) % 10 == 0


_CHECKS: Mapping[str, Check] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "uri": _uri,
    "email": _matches(r"([^<>]*<[^@\s<>]+@[^@\s<>]+>)|[^@\s<>]+@[^@\s<>]+"),
    "hostname": _hostname,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": lambda text: "/" in text and _parses(lambda t: ipaddress.ip_network(t, strict=False))(text),
    "mac": _matches(f"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}(([:-]{_HEX}{{2}}){{2}})?|({_HEX}{{4}}\\.){{2,3}}{_HEX}{{4}}"),
    "uuid": _uuid(_HEX, _HEX),
    "uuid3": _uuid("3", _HEX),
    "uuid4": _uuid("4", "[89abAB]"),
    "uuid5": _uuid("5", "[89abAB]"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": lambda text: _CARD(re.sub(r"\D", "", text)),
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _matches(
        r"rgb\(\s*(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\s*(,\s*(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\s*){2}\)"
    ),
    "byte": _byte,
    "password": lambda text: True,
    "date": _date,
    "duration": lambda text: _GO_DURATION(text) or _SCALA_DURATION(text),
    "datetime": _date_time,
    "k8sshortname": lambda text: not validation.dns_label(text),
    "k8slongname": lambda text: not validation.dns_subdomain(text),
}


def check(name: str) -> Check | None:
    """The test for a format; None when it is not checked. Dashes in names do not matter."""
    return _CHECKS.get(name.replace("-", ""))
