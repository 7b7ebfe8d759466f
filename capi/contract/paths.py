"""Reading one path of a provider object, checked for its type."""

from typing import Any, TypeVar

import msgspec

from capi.kube.errors import ContractError
from capi.kube.objects import Unstructured

T = TypeVar("T")


def find(obj: Unstructured, path: str) -> Any:
    """The value at a dotted path; None where anything on the way is absent. Raises ContractError where it is no object."""
    here: Any = obj.raw
    for i, name in enumerate(parts := path.split(".")):
        if here is None:
            return None
        if not isinstance(here, dict):
            raise _broken(obj, ".".join(parts[:i]), f"must be an object, is {type(here).__name__}")
        here = here.get(name)
    return here


def read(obj: Unstructured, path: str, wanted: type[T]) -> T | None:
    """The value at a dotted path as a `wanted`; None if absent. Raises ContractError that names the path."""
    value = find(obj, path)
    if value is None:
        return None
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise _broken(obj, path, str(error)) from error


def first(obj: Unstructured, paths: tuple[str, ...], wanted: type[T]) -> T | None:
    """The first of several places that says anything."""
    for path in paths:
        if (value := read(obj, path, wanted)) is not None:
            return value
    return None


def _broken(obj: Unstructured, path: str, problem: str) -> ContractError:
    return ContractError(f"{obj.resource.kind} {obj.key}: {path}: {problem}")
