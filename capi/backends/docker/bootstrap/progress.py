"""What `launch` and `follow` print, line by line."""

from dataclasses import dataclass
from enum import StrEnum

from capi.backends.docker.bootstrap.text import masked, one_line

_LINE_LENGTH = 1000


class State(StrEnum):
    """What a line says; the last one before the lines of the log is how it ended."""

    NONE = "none"
    """Nothing was ever started in that directory."""
    STARTED = "started"
    """It was started, at `Progress.started`."""
    STEP = "step"
    """Step `Progress.step` of `Progress.total` runs."""
    DONE = "done"
    """All steps are done."""
    FAILED = "failed"
    """Step `Progress.step` ended with `Progress.code`; it is never run again."""
    TIMEOUT = "timeout"
    """Time was up during step `Progress.step`, and all its processes were killed."""
    LOST = "lost"
    """It was started, and its process is gone without a result: the container was restarted meanwhile."""
    LOG = "log"
    """A line of its output, or a line of something else, e.g. an error of the container runtime."""

    @property
    def ended(self) -> bool:
        """Nothing more will happen."""
        return self in (State.DONE, State.FAILED, State.TIMEOUT, State.LOST)


@dataclass(frozen=True, slots=True)
class Progress:
    """A line, read."""

    state: State
    step: int = 0
    """From 1; 0 before the first."""
    total: int = 0
    """Number of steps; only with STEP."""
    text: str = ""
    """Description of the step, or the line of a log with secrets masked."""
    code: int = 0
    """Exit code; only with FAILED."""
    started: int = 0
    """Seconds since 1970 by the container's clock; only with STARTED."""


def read_line(line: str) -> Progress:
    """`line` with or without its line break. Never raises: what is none of ours is taken for a line of a log."""
    line = line.rstrip("\r\n")
    word, _, rest = line.partition(" ")
    try:
        match word:
            case State.NONE | State.DONE | State.LOST if not rest:
                return Progress(State(word))
            case State.STARTED:
                return Progress(State.STARTED, started=int(rest))
            case State.STEP:
                step, total, text = (*rest.split(" ", 2), "")[:3]
                return Progress(State.STEP, int(step), int(total), text)
            case State.FAILED:
                code, step, text = (*rest.split(" ", 2), "")[:3]
                return Progress(State.FAILED, int(step), text=text, code=int(code))
            case State.TIMEOUT:
                step, text = (*rest.split(" ", 1), "")[:2]
                return Progress(State.TIMEOUT, int(step), text=text)
            case _:
                pass
    except ValueError:
        return Progress(State.LOG, text=_shown(line))
    return Progress(State.LOG, text=_shown(rest if word == State.LOG else line))


def _shown(text: str) -> str:
    return one_line(masked(text), _LINE_LENGTH)
