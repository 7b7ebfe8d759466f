"""Query options and option bodies → the registry's option values. Raises BadRequest and Invalid with Kubernetes' texts.

Source: apimachinery pkg/apis/meta/v1/validation, apiserver pkg/endpoints/handlers.
"""

import re
from typing import Literal, cast

from capi.kube.errors import BadRequest, Cause, Invalid
from capi.kube.messages import Request, UserInfo
from capi.kube.types import Object
from capi.server.http.targets import truthy
from capi.server.registry.interface import DeleteOptions, ListOptions, WriteOptions

FieldValidation = Literal["Ignore", "Warn", "Strict"]
Propagation = Literal["", "Background", "Foreground", "Orphan"]

APPLY = "application/apply-patch+yaml"
_MANAGER_LENGTH = 128
_DIGITS = re.compile(r"[+-]?[0-9]+")
_INTEGER_LENGTH = 40
"""Digits that are certainly too many; Python itself refuses to read thousands."""
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\u00a1-\U0010ffff]")


def invalid(kind: str, *causes: Cause) -> Invalid:
    """422 of an options kind, e.g. `PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: …`."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Invalid(f'{kind}.meta.k8s.io "" is invalid: {text}', group="meta.k8s.io", kind=kind, causes=causes)


def write_options(request: Request, user: UserInfo, kind: str, patch_type: str = "") -> WriteOptions:
    """Options of create, update (`kind` CreateOptions, UpdateOptions) and patch (PatchOptions)."""
    manager, validation = request.option("fieldManager"), request.option("fieldValidation")
    causes = [*_manager_causes(manager), *_dry_run_causes(request)]
    if validation not in ("", "Ignore", "Warn", "Strict"):
        causes.append(_unsupported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    force = request.option("force")
    if patch_type == APPLY:
        if not manager:
            causes.append(Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager"))
    elif patch_type and force:
        causes.append(Cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force"))
    if causes:
        raise invalid(kind, *causes)
    return WriteOptions(
        field_manager=manager or manager_of(request.headers.get("user-agent", "")),
        field_validation=cast(FieldValidation, validation or "Warn"),
        dry_run=bool(request.option("dryRun")),
        force=truthy(force),
        user=user,
    )


def manager_of(user_agent: str) -> str:
    """The field manager of a client that names none: its User-Agent up to the first slash."""
    return _UNPRINTABLE.sub("", user_agent.partition("/")[0])[:_MANAGER_LENGTH] or "unknown"


def list_options(request: Request, name: str = "") -> ListOptions:
    """Options of list, watch and deletecollection; `name` narrows to one object (legacy watch paths)."""
    field_selector = request.option("fieldSelector")
    if name:
        field_selector = f"metadata.name={name}" + (f",{field_selector}" if field_selector else "")
    initial = request.option("sendInitialEvents")
    return ListOptions(
        label_selector=request.option("labelSelector"),
        field_selector=field_selector,
        limit=_integer(request, "limit") or 0,
        continue_=request.option("continue"),
        resource_version=request.option("resourceVersion"),
        resource_version_match=request.option("resourceVersionMatch"),
        timeout_seconds=_integer(request, "timeoutSeconds"),
        allow_bookmarks=truthy(request.option("allowWatchBookmarks")),
        send_initial_events=truthy(initial) if initial else None,
    )


def delete_options(request: Request, body: Object | None, user: UserInfo) -> tuple[DeleteOptions, bool]:
    """Options from the body if there is one, else from the query; and whether orphanDependents=false was asked for.

    A delete with orphanDependents=false answers 202 when the object stays for a while.
    """
    given = _delete_query(request) if body is None else body
    causes, propagation = _propagation(given)
    dry_run = given.get("dryRun") or [value for key, value in request.query if key == "dryRun"]
    causes += [_unsupported("dryRun", str(value), ("All",)) for value in dry_run if value != "All"]
    grace = given.get("gracePeriodSeconds")
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise BadRequest(f"gracePeriodSeconds must be an integer, not {grace!r}")
    if causes:
        raise invalid("DeleteOptions", *causes)
    conditions = given.get("preconditions") or {}
    options = DeleteOptions(
        propagation=propagation,
        grace_period_seconds=grace,
        uid=str(conditions.get("uid") or ""),
        resource_version=str(conditions.get("resourceVersion") or ""),
        dry_run=bool(dry_run),
        user=user,
    )
    return options, given.get("orphanDependents") is False


def _delete_query(request: Request) -> Object:
    given: Object = {}
    if policy := request.option("propagationPolicy"):
        given["propagationPolicy"] = policy
    if orphan := request.option("orphanDependents"):
        given["orphanDependents"] = truthy(orphan)
    if (grace := _integer(request, "gracePeriodSeconds")) is not None:
        given["gracePeriodSeconds"] = grace
    return given


def _propagation(given: Object) -> tuple[list[Cause], Propagation]:
    policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    if policy is not None and orphan is not None:
        text = "Invalid value: true: orphanDependents and deletionPropagation cannot be both set"
        return [Cause("FieldValueInvalid", text.replace("true", str(orphan).lower(), 1), "propagationPolicy")], ""
    if policy is not None and policy not in ("Background", "Foreground", "Orphan"):
        return [_unsupported("propagationPolicy", str(policy), ("Foreground", "Background", "Orphan", "nil"))], ""
    if orphan is not None:
        return [], "Orphan" if orphan else "Background"
    return [], cast(Propagation, policy or "")


def _manager_causes(manager: str) -> list[Cause]:
    if len(manager) > _MANAGER_LENGTH:
        return [Cause("FieldValueTooLong", f"Too long: may not be more than {_MANAGER_LENGTH} bytes", "fieldManager")]
    if _UNPRINTABLE.search(manager):
        return [
            Cause(
                "FieldValueInvalid",
                f'Invalid value: "{manager}": should only contain printable characters',
                "fieldManager",
            )
        ]
    return []


def _dry_run_causes(request: Request) -> list[Cause]:
    return [
        _unsupported("dryRun", value, ("All",)) for key, value in request.query if key == "dryRun" and value != "All"
    ]


def _unsupported(field: str, value: str, supported: tuple[str, ...]) -> Cause:
    names = ", ".join(f'"{name}"' for name in supported)
    return Cause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {names}', field)


def _integer(request: Request, name: str) -> int | None:
    text = request.option(name)
    if not text:
        return None
    if not _DIGITS.fullmatch(text):
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > _INTEGER_LENGTH or not -(2**63) <= int(text) < 2**63:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)
