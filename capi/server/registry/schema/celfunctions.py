"""Kubernetes' additions to CEL that cel-cpp lacks: lists and checks of well-known formats.

Regular expression `find` and the functions on URL, IP, CIDR, quantity, semver and named-format *values* are not there: a rule that uses them does
not compile.

Source: pkg/cel/library of k8s.io/apiserver.
"""

import ipaddress
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from cel_expr_python import cel

from capi.kube import quantity


def extension() -> Any:
    """All functions as one extension of an environment."""
    lists = cel.Type.List(cel.Type.DYN)
    text, yes, anything = cel.Type.STRING, cel.Type.BOOL, cel.Type.DYN

    def member(name: str, parameters: list[Any], result: Any, impl: Any) -> Any:
        return cel.FunctionDecl(name, [cel.Overload(f"capi_{name}", result, parameters, True, impl)])

    def function(name: str, parameters: list[Any], result: Any, impl: Any) -> Any:
        return cel.FunctionDecl(name, [cel.Overload(f"capi_{name}", result, parameters, False, impl)])

    return cel.CelExtension(
        "kubernetes",
        [
            member("isSorted", [lists], yes, lambda items: all(a <= b for a, b in pairwise(items))),
            member("sum", [lists], anything, lambda items: sum(items[1:], items[0]) if items else 0),
            member("min", [lists], anything, min),
            member("max", [lists], anything, max),
            function("isURL", [text], yes, _is_url),
            function("isIP", [text], yes, _is_ip),
            function("isCIDR", [text], yes, _is_cidr),
            function("isQuantity", [text], yes, _is_quantity),
        ],
    )


def _is_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc) or value.startswith("/")


def _is_ip(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return "%" not in value


def _is_cidr(value: str) -> bool:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return "/" in value


def _is_quantity(value: str) -> bool:
    try:
        quantity.parse(value)
    except ValueError:
        return False
    return True
