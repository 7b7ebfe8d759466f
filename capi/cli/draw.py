"""Draws the tree of a Cluster in the columns that clusterctl's `describe cluster` has."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from capi.app.tree import NEGATIVE, Node
from capi.kube.conditions import Condition

HEADINGS = ("NAME", "REPLICAS", "AVAILABLE", "READY", "UP TO DATE", "STATUS", "REASON", "SINCE", "MESSAGE")
WRAP = 100
"""Lines of a message are shorter than this many bytes."""
_DISPENSABLE = ("UP TO DATE", "AVAILABLE", "REASON", "SINCE")
_ROOM = 24
"""Columns a message should have before more important ones are shown beside it."""
_STATUS = HEADINGS.index("STATUS")
_CONDITION_INDENT = " " * 10
_GREEN, _RED, _YELLOW, _GRAY, _BOLD, _CYAN, _OFF = (f"\x1b[{code}m" for code in (32, 31, 33, 90, 1, 36, 0))


@dataclass(frozen=True, slots=True)
class _Row:
    """One line: the glyphs of the tree, the name, the other cells, and the status that colours it."""

    glyphs: str
    name: str
    cells: tuple[str, ...] = ("",) * (len(HEADINGS) - 1)
    state: str = ""
    """good, bad, unknown or "" ."""
    kind: str = ""
    """What the name is: object, condition, or "" for the rest."""


def colored() -> bool:
    """Standard output is a terminal and nobody objects (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is; None if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def text(tree: Node, now: datetime | None = None, *, color: bool = False, width: int | None = None) -> str:
    """The table, without a final newline. In a narrow terminal columns are left out and messages are cut."""
    rows = list(_rows(tree, "", "", now or datetime.now(UTC)))
    cells = [HEADINGS, *((row.glyphs + row.name, *row.cells) for row in rows)]
    widths = [
        max(len(HEADINGS[i]) + 1, *(len(line[i]) + 2 for line in cells[1:])) if len(cells) > 1 else len(HEADINGS[i]) + 1
        for i in range(len(HEADINGS))
    ]
    shown = _columns(widths, width)
    if width is not None:
        left = sum(widths[i] for i in shown[:-1])
        widths[-1] = max(width - left - 1, len(HEADINGS[-1]))
    lines = ["".join(HEADINGS[i].ljust(widths[i]) for i in shown)]
    lines += [_line(row, widths, shown, color=color) for row in rows]
    return "\n".join(line.rstrip() for line in lines) if color or width is not None else "\n".join(lines)


def _columns(widths: Sequence[int], width: int | None) -> list[int]:
    """Indexes of the columns that are shown: those of `_DISPENSABLE` go, in order, until the message has some room."""
    shown = list(range(len(HEADINGS)))
    for heading in _DISPENSABLE:
        if width is None or sum(widths[i] for i in shown[:-1]) + min(widths[-1], _ROOM) <= width:
            break
        shown.remove(HEADINGS.index(heading))
    return shown


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1] + "…"


def _line(row: _Row, widths: Sequence[int], shown: Sequence[int], *, color: bool) -> str:
    cells = [cell.ljust(width) for cell, width in zip((row.glyphs + row.name, *row.cells), widths, strict=True)]
    cells[-1] = _cut(cells[-1].rstrip(), widths[-1]).ljust(widths[-1])
    if not color:
        return "".join(cells[i] for i in shown)
    cells[0] = _GRAY + row.glyphs + _OFF + _painted(row) + cells[0][len(row.glyphs) + len(row.name) :]
    paint = {"good": _GREEN, "bad": _RED, "unknown": _YELLOW}.get(row.state)
    if paint:
        cells[_STATUS] = paint + cells[_STATUS] + _OFF
    return "".join(cells[i] for i in shown)


def _painted(row: _Row) -> str:
    if row.kind == "condition":
        return _CYAN + row.name + _OFF
    if row.kind != "object":
        return row.name
    name = row.name.replace("!! DELETED !!", f"{_RED}!! DELETED !!{_OFF}")
    head, _, rest = name.rpartition(" ") if "," not in name else name.partition(",")[0].rpartition(" ")
    version = name.partition(",")[2]
    return f"{head} {_BOLD}{rest}{_OFF}" + (f",{version}" if version else "")


def _rows(node: Node, own: str, below: str, now: datetime) -> Iterator[_Row]:
    """Rows of a node and of all below it. `own` are the glyphs of its first line, `below` those of what follows."""
    trunk = below + ("│ " if node.children else "  ")
    shown = node.condition if not node.conditions else None
    counts = node.counters
    counters = ("" if c is None else str(c) for c in (counts.available, counts.ready, counts.up_to_date))
    kind = "object" if node.kind and not node.members else ""
    yield from _condition_rows(_Row(own, node.title, kind=kind), trunk, (counts.replicas, *counters), shown, now)
    for i, condition in enumerate(node.conditions):
        last = i == len(node.conditions) - 1
        start = _Row(trunk + _CONDITION_INDENT + ("└─" if last else "├─"), condition.type, kind="condition")
        rest = trunk + _CONDITION_INDENT + ("  " if last else "│ ")
        yield from _condition_rows(start, rest, ("",) * 4, condition, now)
    for i, child in enumerate(node.children):
        last = i == len(node.children) - 1
        yield from _rows(child, below + ("└─" if last else "├─"), below + ("  " if last else "│ "), now)


def _condition_rows(
    start: _Row, rest: str, counters: tuple[str, ...], condition: Condition | None, now: datetime
) -> Iterator[_Row]:
    """The first line, and one more for every further line of the message."""
    if condition is None:
        yield _Row(start.glyphs, start.name, (*counters, "", "", "", ""), kind=start.kind)
        return
    lines = wrapped(condition.message)
    changed = condition.last_transition_time
    since = age(now - changed) if changed is not None else ""
    cells = (*counters, condition.status, condition.reason, since, lines[0])
    yield _Row(start.glyphs, start.name, cells, _state(condition), start.kind)
    for line in lines[1:]:
        yield _Row(rest, "", (*("",) * (len(HEADINGS) - 2), line))


def _state(condition: Condition) -> str:
    if condition.status not in ("True", "False"):
        return "unknown"
    return "good" if (condition.status == "True") != (condition.type in NEGATIVE) else "bad"


def wrapped(message: str) -> list[str]:
    """Lines of a message; what is broken off a bullet is indented below its text. At least one line."""
    out: list[str] = []
    for line in message.split("\n"):
        words = line.strip().split(" ")
        indent = line[: len(line) - len(line.lstrip())]
        rest = indent + ("  " if words[0] == "*" else "")
        current = indent + words[0]
        for word in words[1:]:
            if len((current + " " + word).encode()) >= WRAP:
                out.append(current)
                current = rest + word
            else:
                current += " " + word
        out.append(current)
    return out


def age(lasting: timedelta) -> str:
    """How long, as Kubernetes shows it: 67s, 6m46s, 83m, 5h3m, 25h, 3d4h, 90d, 2y40d."""
    seconds = max(0, int(lasting.total_seconds()))
    for limit, unit, big, small_unit, small in _AGES:
        if seconds < limit:
            text = f"{seconds // big}{unit}"
            rest = seconds % big // small if small else 0
            return f"{text}{rest}{small_unit}" if rest else text
    return f"{seconds // _YEAR}y"


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_AGES = (
    (2 * _MINUTE, "s", 1, "", 0),
    (10 * _MINUTE, "m", _MINUTE, "s", 1),
    (3 * _HOUR, "m", _MINUTE, "", 0),
    (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
    (48 * _HOUR, "h", _HOUR, "", 0),
    (8 * _DAY, "d", _DAY, "h", _HOUR),
    (2 * _YEAR, "d", _DAY, "", 0),
    (8 * _YEAR, "y", _YEAR, "d", _DAY),
)
"""Below so many seconds: unit and its length, smaller unit and its length (0: none)."""
