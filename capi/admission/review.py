"""AdmissionReview: what an API server asks a webhook about one write, and the answer. Pure.

Wire: `admission.k8s.io/v1` AdmissionReview with a `request` in, with a `response` out. Defaults are asked for in the version that
the client wrote, before any schema has looked at the object; rules in v1beta2, after.
Source: kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import orjson

from capi.admission.convert import default_old, is_old
from capi.admission.kinds import KINDS, KindRules
from capi.admission.rules import at
from capi.kube.errors import ApiError, BadRequest, Cause, Invalid
from capi.kube.types import GroupKind, Object

Review: TypeAlias = Callable[[Object], Object]
T = TypeVar("T")
API_VERSION = "admission.k8s.io/v1"


def mutate(body: Object) -> Object:
    """Fills in defaults. Raises BadRequest for a body that is no AdmissionReview."""
    request = _request(body)
    obj, rules = request.get("object"), _rules(request)
    if not isinstance(obj, dict) or rules is None:
        return _answer(request)
    changed = _judged(lambda: _defaulted(rules, obj, request.get("oldObject")))
    operations = list(_changes("", obj, changed))
    if not operations:
        return _answer(request)
    patch = base64.b64encode(orjson.dumps(operations)).decode("ascii")
    return _answer(request, patchType="JSONPatch", patch=patch)


def validate(body: Object) -> Object:
    """Refuses what breaks a rule, with a cause for each. Objects that are being deleted pass, so that their finalizers can
    go. Raises BadRequest for a body that is no AdmissionReview."""
    request = _request(body)
    obj, rules = request.get("object"), _rules(request)
    if not isinstance(obj, dict) or rules is None or at(obj, "metadata", "deletionTimestamp"):
        return _answer(request)
    old, dry_run = request.get("oldObject"), bool(request.get("dryRun"))
    causes = _judged(lambda: rules.causes(obj, old, dry_run=dry_run))
    return _refusal(request, obj, causes) if causes else _answer(request)


def _defaulted(rules: KindRules, obj: Object, old: Object | None) -> Object:
    return default_old(obj, old, rules.default) if is_old(obj) else rules.default(obj, old)


def _judged(judge: Callable[[], T]) -> T:
    """What a rule says. API servers ask about objects that fit their schemas only; rules rely on that."""
    try:
        return judge()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadRequest(f"request.object is no object of its kind: {error}") from error


def _request(body: Object) -> Object:
    request = body.get("request")
    if body.get("apiVersion") != API_VERSION or body.get("kind") != "AdmissionReview" or not isinstance(request, dict):
        raise BadRequest(f"the body must be an AdmissionReview of {API_VERSION} with a request")
    if not isinstance(request.get("kind"), dict):
        raise BadRequest("request.kind must be a GroupVersionKind")
    return request


def _rules(request: Object) -> KindRules | None:
    kind = request["kind"]
    return KINDS.get(GroupKind(str(kind.get("group") or ""), str(kind.get("kind") or "")))


def _answer(request: Object, *, allowed: bool = True, **more: Any) -> Object:
    response = {"uid": request.get("uid") or "", "allowed": allowed, **more}
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def _refusal(request: Object, obj: Object, causes: Sequence[Cause]) -> Object:
    kind = request.get("kind") or {}
    name = request.get("name") or at(obj, "metadata", "name") or ""
    group, word = kind.get("group") or "", kind.get("kind") or ""
    return _answer(request, allowed=False, status=invalid(group, word, name, causes).status)


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 that names every field, as API servers word it."""
    texts = [f"{cause.field or '<nil>'}: {cause.message}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Invalid(f'{kind}.{group} "{name}" is invalid: {listed}', name=name, group=group, kind=kind, causes=causes)


def _changes(path: str, old: Object, new: Object) -> Iterator[Object]:
    """JSON patch operations. Defaults only set members of objects: nothing is removed, no list is edited."""
    for key, value in new.items():
        before = old.get(key)
        where = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if isinstance(value, dict) and isinstance(before, dict):
            yield from _changes(where, before, value)
        elif value != before or key not in old:
            yield {"op": "add", "path": where, "value": value}
