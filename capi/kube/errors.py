"""The error tree and its one mapping to Kubernetes Status objects.

    CapiError                      the docstring is the default message; every class says who should act
    ├─ ApiError(status)            an API server's refusal; subclasses by `reason`
    ├─ TransportError              no answer: connection level; client and informer retry
    ├─ ContractError               a provider object breaks the contract; retried when it changes
    │  └─ UnknownKind              no CRD serves the kind of a reference
    ├─ BackendError                infrastructure refused; its reason goes into a condition
    └─ TerminalError               needs a new spec: no retry until the generation changes

In-process and over the wire the same classes are raised (`from_status`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from capi.kube.types import Object


class CapiError(Exception):
    """Something failed; the message says what to do."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())

    @property
    def message(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of Status.details.causes. `field` is a path like `spec.replicas`; `message` does not repeat it."""

    reason: str
    message: str
    field: str = ""

    def wire(self) -> Object:
        return {k: v for k, v in (("reason", self.reason), ("message", self.message), ("field", self.field)) if v}


class ApiError(CapiError):
    """The API server refused the request."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = ""

    def __init__(  # noqa: PLR0913 - the members of Status.details
        self,
        message: str = "",
        *,
        name: str = "",
        group: str = "",
        kind: str = "",
        uid: str = "",
        causes: Sequence[Cause] = (),
        retry_after: int = 0,
        code: int | None = None,
        reason: str | None = None,
        list_continue: str = "",
    ) -> None:
        super().__init__(message)
        self.name, self.group, self.kind, self.uid = name, group, kind, uid
        self.causes = tuple(causes)
        self.retry_after = retry_after
        """Seconds; 0 = not said."""
        self.status_code = self.code if code is None else code
        self.status_reason = self.reason if reason is None else reason
        self.list_continue = list_continue
        """`metadata.continue` of a 410 that lets a list go on inconsistently."""

    @property
    def status(self) -> Object:
        """The wire Status; empty members are left out."""
        details: dict[str, Any] = {
            "name": self.name,
            "group": self.group,
            "kind": self.kind,
            "uid": self.uid,
            "causes": [cause.wire() for cause in self.causes],
            "retryAfterSeconds": self.retry_after,
        }
        status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.list_continue} if self.list_continue else {},
            "status": "Failure",
            "message": self.message,
            "reason": self.status_reason,
            "details": {k: v for k, v in details.items() if v},
            "code": self.status_code,
        }
        if not status["reason"]:
            del status["reason"]
        if not status["details"]:
            del status["details"]
        return status


class BadRequest(ApiError):
    """The request cannot be understood."""

    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """Unauthorized"""

    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    """This user may not do that."""

    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    """The object does not exist."""

    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    """the server does not allow this method on the requested resource"""

    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    """The server cannot answer in the requested media type."""

    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    """An object of that name exists."""

    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    """The object changed meanwhile; read it again."""

    code, reason = 409, "Conflict"


class Expired(ApiError):
    """The requested revision is no longer kept; list again."""

    code, reason = 410, "Expired"


class RequestEntityTooLarge(ApiError):
    """The body is too large."""

    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """The body's media type is not supported."""

    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """The object breaks its kind's rules; `causes` name the fields."""

    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    """The server asks to come back later."""

    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    """Internal error occurred"""

    code, reason = 500, "InternalError"


class ServiceUnavailable(ApiError):
    """The server is not ready."""

    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    """The server gave up waiting."""

    code, reason = 504, "Timeout"


_BY_REASON: dict[str, type[ApiError]] = {
    cls.reason: cls
    for cls in (
        BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, AlreadyExists, Conflict,
        Expired, RequestEntityTooLarge, UnsupportedMediaType, Invalid, TooManyRequests, InternalError,
        ServiceUnavailable, Timeout,
    )
}  # fmt: skip
_BY_CODE: dict[int, type[ApiError]] = {cls.code: cls for cls in reversed(list(_BY_REASON.values()))}


def from_status(status: Object, code: int = 0) -> ApiError:
    """The exception for a wire Status; `code` is the HTTP status when the body does not say. Unknown reasons map by code."""
    code = int(status.get("code") or code or 500)
    reason = str(status.get("reason") or "")
    details: Object = status.get("details") or {}
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code) or ApiError
    return cls(
        str(status.get("message") or f"the server answered {code}"),
        name=str(details.get("name") or ""),
        group=str(details.get("group") or ""),
        kind=str(details.get("kind") or ""),
        uid=str(details.get("uid") or ""),
        causes=[
            Cause(str(c.get("reason") or ""), str(c.get("message") or ""), str(c.get("field") or ""))
            for c in details.get("causes") or ()
        ],
        retry_after=int(details.get("retryAfterSeconds") or 0),
        code=code,
        reason=reason,
        list_continue=str((status.get("metadata") or {}).get("continue") or ""),
    )


class TransportError(CapiError):
    """The API server did not answer; check that it runs and that the kubeconfig points at it."""


class ContractError(CapiError):
    """A provider object does not follow the Cluster API contract; its provider must be mended."""


class UnknownKind(ContractError):
    """No CustomResourceDefinition serves the referenced kind, so no object of it exists; install its provider."""


class BackendError(CapiError):
    """The infrastructure refused."""

    def __init__(self, message: str = "", *, reason: str = "InternalError") -> None:
        super().__init__(message)
        self.reason = reason
        """CamelCase; becomes the reason of a condition."""


class TerminalError(CapiError):
    """The object's spec cannot work; change it."""
