"""JSON from senders nobody knows: what the parser takes is also what every later step can walk and write again.

Go's decoder stops at 10,000 levels; here the bound is lower, because orjson writes at most 254 and objects grow a few
levels on their way (managedFields, lists, tables).
"""

import orjson

from capi.kube.types import Json

MAX_DEPTH = 128
"""Objects and lists inside one another; the deepest CustomResourceDefinitions in use have about 60."""
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


def load(body: bytes) -> Json:
    """The value in `body`. Raises ValueError for what is no JSON, for numbers beyond float64 and for deeper nesting."""
    value: Json = orjson.loads(body)
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        check_depth(value)
    return value


def check_depth(value: Json) -> None:
    """Raises ValueError if `value` is nested more than MAX_DEPTH levels deep."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return
    if level:
        raise ValueError(TOO_DEEP)
