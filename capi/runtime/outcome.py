"""What came of a Plan, and what the caches must show before the key's next pass."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from capi.kube.errors import CapiError
from capi.kube.types import Key
from capi.runtime.informer import Informer
from capi.runtime.plan import Event, Target


@dataclass(frozen=True, slots=True)
class Expectation:
    """A write that a cache must show: `revision` reached, or (0) the object with `uid` gone."""

    informer: Informer
    key: Key
    revision: int
    uid: str

    def met(self) -> bool:
        if self.revision:
            return self.informer.revision >= self.revision
        found = self.informer.store.get(self.key)
        return found is None or found.metadata.uid != self.uid

    def when_met(self, callback: Callable[[], None]) -> None:
        if self.revision:
            self.informer.when_reached(self.revision, callback)
        else:
            self.informer.when_gone(self.key, callback)


def newest(expectations: Iterable[Expectation]) -> list[Expectation]:
    """The same demand with one revision per cache: a cache that shows the newest write shows the others."""
    gone: list[Expectation] = []
    latest: dict[int, Expectation] = {}
    for expected in expectations:
        known = latest.get(id(expected.informer))
        if not expected.revision:
            gone.append(expected)
        elif known is None or known.revision < expected.revision:
            latest[id(expected.informer)] = expected
    return [*latest.values(), *gone]


@dataclass(slots=True)
class Outcome:
    """What came of a Plan."""

    errors: list[Exception] = field(default_factory=list)
    conflicts: int = 0
    """Writes refused because someone else was faster: read again, and do not call it an error."""
    expectations: list[Expectation] = field(default_factory=list)
    failures: dict[Target, CapiError] = field(default_factory=dict)
    """What failed of the Plan's writes, refused evictions included; what is no bug is among the errors too."""
    events: Sequence[Event] = ()
    """The Plan's, or what it says in hindsight."""

    @property
    def clean(self) -> bool:
        return not self.errors and not self.conflicts
