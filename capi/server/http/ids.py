"""Audit ids: unique per request, cheap to make."""

import itertools
import uuid

from capi.kube.messages import Request


class AuditIds:
    """A client's own Audit-ID, else a random UUID of this server with its last group counted up."""

    def __init__(self) -> None:
        self._prefix = str(uuid.uuid4())[:24]
        self._count = itertools.count(1)

    def next(self, request: Request) -> str:
        given = request.headers.get("audit-id", "")[:64]
        return given or f"{self._prefix}{next(self._count):012x}"
