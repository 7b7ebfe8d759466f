"""Equality of JSON values."""

from capi.kube.types import Json


def same(left: Json, right: Json) -> bool:
    """Equality of JSON values: unlike Python's, true is not 1 and false is not 0; 1 equals 1.0."""
    if left is right:
        return True
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(key in right and same(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return bool(left == right)
