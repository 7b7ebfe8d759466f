"""How progress is shown: a live table on a terminal, else a line per change. Results go to standard output."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from capi.app.progress import PoolProgress, Progress

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


WIDE = 110
"""Columns of a terminal from which there is room for a long bar."""


class Display(Progress, Protocol):
    """A Progress that must be closed."""

    def close(self) -> None:
        """Leaves the terminal as it was. Idempotent."""
        ...


def display(out: TextIO, err: TextIO) -> Display:
    """The right one for where `err`, standard error, goes."""
    if err.isatty() and os.environ.get("TERM") != "dumb":
        return LiveTable(out, err)
    return Lines(out, err)


class Lines:
    """A line for every change."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out, self._err = out, err
        self._shown: dict[tuple[str, str], str] = {}

    def step(self, text: str) -> None:
        print(f"• {text}", file=self._err, flush=True)

    def pools(self, pools: Sequence[PoolProgress]) -> None:
        for pool in pools:
            line = sentence(pool)
            if self._shown.get((pool.namespace, pool.name)) != line:
                self._shown[(pool.namespace, pool.name)] = line
                print(f"• {line}", file=self._err, flush=True)

    def note(self, text: str) -> None:
        print(text, file=self._err, flush=True)

    def result(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def close(self) -> None:
        """Nothing to leave."""


def sentence(pool: PoolProgress) -> str:
    """How far a pool is, in a line."""
    line = f"MachinePool {pool.namespace}/{pool.name}: {pool.running} of {pool.desired} Machines Running ({pool.phase})"
    if pool.machines > pool.desired:
        line += f", {pool.machines - pool.desired} to go"
    if pool.waiting_for and not pool.done:
        line += f": {reason(pool)}"
    return line


def reason(pool: PoolProgress) -> str:
    """What a pool waits for, in one line: the bullets of a condition's message with commas between them."""
    lines = [" ".join(line.split()).removeprefix("* ") for line in pool.waiting_for.splitlines()]
    return ", ".join(line for line in lines if line)


class LiveTable:
    """Steps with a tick, and one table of pools that is redrawn in place."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        from rich.console import Console

        self._out = out
        self._console = Console(file=err, highlight=False)
        self._live: Live | None = None
        self._last: tuple[PoolProgress, ...] = ()

    def step(self, text: str) -> None:
        self._console.print("[green]✓[/green]", _plain(text))

    def pools(self, pools: Sequence[PoolProgress]) -> None:
        if not pools or tuple(pools) == self._last:
            return
        self._last = tuple(pools)
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self._console, refresh_per_second=8)
            self._live.start()
        self._live.update(_table(pools, self._console.width))

    def note(self, text: str) -> None:
        self.close()
        self._console.print()
        self._console.print(_plain(text), soft_wrap=True)  # what is copied from it must have no line breaks

    def result(self, text: str) -> None:
        self.close()
        self._console.print()
        print(text, file=self._out, flush=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def _plain(text: str) -> object:
    from rich.text import Text

    return Text(text)


def _table(pools: Sequence[PoolProgress], width: int) -> "Table":
    """Not as wide as the terminal: what the terminal echoes for Ctrl-C would break the last line, and the redrawing."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, width=width - 3)
    for heading in ("MACHINEPOOL", "RUNNING", "", "PHASE", "WAITING FOR"):
        table.add_column(heading, no_wrap=True, ratio=1 if heading == "WAITING FOR" else None)
    for pool in pools:
        bar = ProgressBar(
            total=max(pool.desired, 1), completed=pool.running if pool.desired else 1, width=24 if width >= WIDE else 8
        )
        phase = Text(pool.phase, style="green" if pool.done else "yellow")
        waiting = "" if pool.done else reason(pool)
        table.add_row(
            f"{pool.namespace}/{pool.name}",
            f"{pool.running}/{pool.desired}",
            bar,
            phase,
            Text(waiting, overflow="ellipsis", no_wrap=True),
        )
    return table
