"""What long work reports while it goes on. The command line draws it; nothing here prints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PoolProgress:
    """One MachinePool as far as it has come."""

    namespace: str
    name: str
    cluster: str
    desired: int
    machines: int
    running: int
    """Machines in phase Running."""
    phase: str
    waiting_for: str = ""
    """In words, when it is not as desired: the message of the condition that holds it up."""

    @property
    def done(self) -> bool:
        return self.running == self.desired == self.machines and self.phase == "Running"


class Progress(Protocol):
    """A listener of one command's progress. Calls are cheap and may come often; repeated equal states are drawn once."""

    def step(self, text: str) -> None:
        """A step was finished ("API server ready at https://127.0.0.1:6443 in 0.4 s")."""
        ...

    def pools(self, pools: Sequence[PoolProgress]) -> None:
        """Where all watched pools stand now, in one snapshot."""
        ...

    def note(self, text: str) -> None:
        """Something the person should know; text for people, on standard error."""
        ...

    def result(self, text: str) -> None:
        """Data the command was run for (the tree at the end); standard output."""
        ...
