"""The shape of a reconciler: read with a Reader, decide with a pure plan(), return a Plan."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Protocol, TypeVar

from capi.kube.objects import Resource
from capi.runtime.plan import Plan
from capi.runtime.reader import Reader
from capi.runtime.watches import AnyWatch

R = TypeVar("R", bound=Resource)


class Reconciler(Protocol[R]):
    """One controller's logic. It holds ports, never a writer; `manager` is its field manager and its name in metrics.

    The runtime, before: fetch (gone: nothing to do), finalizer added first, pause (condition written, pass ended), per-key
    ordering, consistency (a key waits until the cache has seen its own last writes). After: execute the Plan, back off on
    errors, requeue.

    Optional: `async def gone(self, key)` is awaited when an object that woke the controller does not exist (any more): forget
    what memory holds of it, release what it left if its finalizer was taken off by force. Idempotent.

    Optional: `async def uphold(obj, reader) -> None`, called in place of `reconcile` while `obj` is paused, for what must go
    on then, such as serving an API that was served before a restart. It writes nothing; what it raises is retried.

    Optional: `def unclaimed(obj, reader) -> bool`: the object is nobody's yet, or somebody else's. While it lacks the finalizer
    nothing is written to it, neither finalizer nor pause, and it is not reconciled; a watch wakes its key when that changes.
    """

    kind: type[R]
    manager: ClassVar[str]
    finalizer: ClassVar[str | None]
    watches: Sequence[AnyWatch]

    def paused(self, obj: R, reader: Reader) -> Sequence[str]:
        """Causes of a pause in words ("Cluster spec.paused is set to true"); empty when not paused."""
        ...

    async def reconcile(self, obj: R, reader: Reader, now: datetime) -> Plan:
        """One pass over one object. Raises for surprises only; waiting is a Plan."""
        ...
