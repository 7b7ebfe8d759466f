"""Member types of the small objects that no schema describes: options, and bodies of subresources and reviews.

Upstream a Go decoder refuses other types; here everything behind `check` may rely on them. Null stands for absent.
"""

from typing import Annotated, Any, TypeAlias

import msgspec

from capi.kube.errors import BadRequest
from capi.kube.types import Object

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Form(msgspec.Struct, rename="camel", kw_only=True):
    """Members may be missing, null or of the given type; others may be there."""


class Meta(Form):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Preconditions(Form):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Form):
    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None


class Eviction(Form):
    metadata: Meta | None = None
    delete_options: DeleteOptions | None = None


class _Goal(Form):
    kind: str | None = None
    name: str | None = None


class Binding(Form):
    metadata: Meta | None = None
    target: _Goal | None = None


class _ScaleSpec(Form):
    replicas: Int32 | None = None


class Scale(Form):
    metadata: Meta | None = None
    spec: _ScaleSpec | None = None


class _Resource(Form):
    verb: str | None = None
    group: str | None = None
    version: str | None = None
    resource: str | None = None
    subresource: str | None = None
    namespace: str | None = None
    name: str | None = None


class _Path(Form):
    verb: str | None = None
    path: str | None = None


class _ReviewSpec(Form):
    user: str | None = None
    uid: str | None = None
    groups: list[str] | None = None
    token: str | None = None
    namespace: str | None = None
    extra: dict[str, list[str]] | None = None
    resource_attributes: _Resource | None = None
    non_resource_attributes: _Path | None = None


class Review(Form):
    metadata: dict[str, Any] | None = None
    spec: _ReviewSpec | None = None


def check(form: type[Form], obj: Object, version: str, kind: str = "") -> None:
    """Raises BadRequest that names the member of `obj` that is not of its type; `kind` defaults to the form's name."""
    try:
        msgspec.convert(obj, form)
    except msgspec.ValidationError as error:
        shown = kind or form.__name__
        what = str(error).replace("$.", "")
        raise BadRequest(f'{shown} in version "{version}" cannot be handled as a {shown}: json: {what}') from None
