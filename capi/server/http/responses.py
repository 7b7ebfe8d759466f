"""Complete answers: a JSON value, a Status, plain text."""

import time
from email.utils import formatdate

import orjson

from capi.kube.errors import ApiError, MethodNotAllowed, NotFound
from capi.kube.messages import Response
from capi.kube.types import Json

JSON = ("Content-Type", "application/json")
PLAIN = ("Content-Type", "text/plain; charset=utf-8")

_PAGE_NOT_FOUND = b"404 page not found\n"


def json(value: Json, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    return Response(status, orjson.dumps(value), (JSON, *headers))


def text(status: int, body: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    return Response(status, body.encode("utf-8"), (PLAIN, *headers))


def failure(error: ApiError) -> Response:
    """The Status of `error`, with Retry-After when the error asks to come back."""
    retry = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
    status = error.status
    if isinstance(error, NotFound | MethodNotAllowed):
        status.setdefault("details", {})  # kube-apiserver's answers to paths it does not serve have empty details
    return json(status, error.status_code, retry)


def page_not_found() -> Response:
    """What is answered for a path nobody serves (an unknown group, version or custom resource)."""
    return Response(404, _PAGE_NOT_FOUND, (PLAIN, ("X-Content-Type-Options", "nosniff")))


_date: tuple[int, bytes] = (0, b"")


def date() -> bytes:
    """The Date header line of this second."""
    global _date
    now = int(time.time())
    if _date[0] != now:
        _date = (now, f"Date: {formatdate(now, usegmt=True)}\r\n".encode("ascii"))
    return _date[1]
