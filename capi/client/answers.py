"""From answers to values: refusals become the ApiError tree, whichever transport carried them."""

from typing import Any

import msgspec
import orjson

from capi.kube.errors import ApiError, TransportError, from_status
from capi.kube.messages import Response
from capi.kube.types import Object


def header(headers: tuple[tuple[str, str], ...], name: str) -> str:
    """First value of a header, by lower-case name; "" when absent."""
    return next((value for key, value in headers if key.lower() == name), "")


def error_of(response: Response) -> ApiError:
    """The exception for a non-2xx answer; bodies that are not a Status become its message."""
    status: Any = None
    if response.body[:1] == b"{":
        try:
            status = orjson.loads(response.body)
        except orjson.JSONDecodeError:
            status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = response.body[:1000].decode("utf-8", "replace").strip()
        status = {"message": f"the server answered {response.status}" + (f": {text}" if text else "")}
    error = from_status(status, response.status)
    after = header(response.headers, "retry-after")
    if after.isdigit() and not error.retry_after:
        error.retry_after = int(after)
    return error


def check(response: Response) -> bytes:
    """The body of a 2xx answer. Raises the ApiError otherwise."""
    if 200 <= response.status < 300:
        return response.body
    raise error_of(response)


def parse(body: bytes) -> Object:
    """An answer's JSON object. Raises TransportError: a server that sends anything else is not an API server."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise TransportError(f"the server's answer is not JSON: {body[:200]!r}") from error
    if not isinstance(value, dict):
        raise TransportError(f"the server's answer is not a JSON object: {body[:200]!r}")
    return value


class Stamp(msgspec.Struct, rename="camel", gc=False):
    """The part of metadata that tells which write an answer confirms."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None


class Stamped(msgspec.Struct, gc=False):
    """Any answer to a write, cheaply: everything but its stamp is skipped, not built."""

    kind: str = ""
    metadata: Stamp = msgspec.field(default_factory=Stamp)


_STAMPED = msgspec.json.Decoder(Stamped)


def stamp_of(body: bytes) -> Stamped:
    """Kind and stamp of an answer to a write. Raises TransportError when it is not an object."""
    try:
        return _STAMPED.decode(body)
    except msgspec.DecodeError as error:
        raise TransportError(f"the server's answer is not an API object: {body[:200]!r}") from error
