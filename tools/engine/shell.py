"""Commands, and the two ways in which they fail: something is missing here, or something is broken."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

TAIL = 15  # lines of a failed command's output that are shown


class Missing(Exception):
    """This machine cannot do it. The message says what is missing and how to get it; exit code 3."""


class Failed(Exception):
    """A command failed that should not have; exit code 1."""


def say(text: str) -> None:
    """A line for people. Standard output is for `eval`."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Says what is done and how long it took."""
    started = time.monotonic()
    say(f"{what} ...")
    yield
    say(f"{what}: {time.monotonic() - started:.1f} s")


def run(
    *argv: str | Path, log: Path | None = None, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> None:
    """Run a command to its end; its output goes to `log`, or is shown when it fails."""
    output = _output(argv, log, env, cwd)
    if output is not None:
        raise Failed(f"{' '.join(map(str, argv))}\n{output}" + (f"\n(all of it: {log})" if log else ""))


def works(*argv: str | Path) -> bool:
    """Whether a command exists and exits with 0."""
    try:
        return _output(argv, None, None, None) is None
    except Missing:
        return False


def read(*argv: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Standard output of a command."""
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=_environment(env), cwd=cwd, check=False
    )
    if done.returncode:
        raise Failed(f"{' '.join(map(str, argv))}\n{_tail(done.stderr)}")
    return done.stdout.rstrip()


def _output(
    argv: Sequence[str | Path], log: Path | None, env: Mapping[str, str] | None, cwd: Path | None
) -> str | None:
    """The end of its output if it failed, else None."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env=_environment(env), cwd=cwd, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise Missing(f"there is no command {argv[0]}") from None
    if log is not None:
        with log.open("a") as file:
            file.write(f"+ {' '.join(map(str, argv))}\n{done.stdout}")
    return _tail(done.stdout) or f"exit code {done.returncode}" if done.returncode else None


def _environment(env: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if env is None else {**os.environ, **env}


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-TAIL:])
