"""Kubernetes' texts for refusing a request.

Upstream: k8s.io/apimachinery/pkg/api/errors, pkg/util/validation/field.
"""

from collections.abc import Iterable

from capi.kube.errors import AlreadyExists, ApiError, Cause, Conflict, Expired, Forbidden, Invalid, NotFound, Timeout
from capi.kube.types import ResourceType
from capi.server.registry.schema.causes import quoted as _quoted


def not_found(kind: ResourceType, name: str) -> NotFound:
    return NotFound(f'{kind.qualified_plural} "{name}" not found', name=name, group=kind.group, kind=kind.plural)


def already_exists(kind: ResourceType, name: str, *, deleting: bool = False) -> AlreadyExists:
    prefix = "object is being deleted: " if deleting else ""
    return AlreadyExists(
        f'{prefix}{kind.qualified_plural} "{name}" already exists', name=name, group=kind.group, kind=kind.plural
    )


def no_unique_name(kind: ResourceType, name: str) -> AlreadyExists:
    return AlreadyExists(
        f'{kind.qualified_plural} "{name}" already exists, the server was not able to generate a unique name for the object',
        name=name, group=kind.group, kind=kind.plural, retry_after=1,
    )  # fmt: skip


def conflict(kind: ResourceType, name: str, text: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {kind.qualified_plural} "{name}": {text}',
        name=name,
        group=kind.group,
        kind=kind.plural,
    )


def modified(kind: ResourceType, name: str) -> Conflict:
    return conflict(
        kind, name, "the object has been modified; please apply your changes to the latest version and try again"
    )


def forbidden(kind: ResourceType, name: str, text: str, causes: Iterable[Cause] = ()) -> Forbidden:
    return Forbidden(
        f'{kind.qualified_plural} "{name}" is forbidden: {text}',
        name=name,
        group=kind.group,
        kind=kind.plural,
        causes=tuple(causes),
    )


def invalid(kind: ResourceType, name: str, causes: Iterable[Cause]) -> Invalid:
    """422 naming every field; fields without a path are shown as `<nil>`."""
    return _invalid(str(kind.group_kind), kind, kind.kind, name, causes)


def invalid_resource(kind: ResourceType, name: str, causes: Iterable[Cause]) -> Invalid:
    """The same for failed preconditions, where Kubernetes names the resource instead of the kind."""
    return _invalid(kind.qualified_plural, kind, kind.plural, name, causes)


def _invalid(shown: str, kind: ResourceType, detail: str, name: str, causes: Iterable[Cause]) -> Invalid:
    causes = tuple(causes)
    texts = [f"{cause.field or '<nil>'}: {cause.message}" for cause in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Invalid(f'{shown} "{name}" is invalid: {text}', name=name, group=kind.group, kind=detail, causes=causes)


def invalid_options(kind: str, field: str, message: str, reason: str = "FieldValueInvalid") -> Invalid:
    """422 for options of a request, e.g. `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: …`."""
    return Invalid(
        f'{kind}.meta.k8s.io "" is invalid: {field}: {message}',
        group="meta.k8s.io",
        kind=kind,
        causes=[Cause(reason, message, field)],
    )


def plain(text: str) -> ApiError:
    """500 without a reason: what upstream makes of an ordinary Go error."""
    return ApiError(text, code=500, reason="")


def too_large_version(asked: int, current: int) -> Timeout:
    return Timeout(
        f"Timeout: Too large resource version: {asked}, current: {current}",
        causes=[Cause("ResourceVersionTooLarge", "Too large resource version")],
        retry_after=1,
    )


def too_old_version(asked: int, oldest: int) -> Expired:
    return Expired(f"too old resource version: {asked} ({oldest})")


def bad_patch(patch: str, text: str) -> Invalid:
    """422 for a patch whose result is not an object of the kind."""
    shown = f"Invalid value: {_quoted(patch)}: {text}"
    return Invalid(f' "" is invalid: patch: {shown}', causes=[Cause("FieldValueInvalid", shown, "patch")])
