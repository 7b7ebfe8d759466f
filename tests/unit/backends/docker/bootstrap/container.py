"""A directory that stands for a container: scripts run in it for real, with the sh of this machine."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from capi.backends.docker.bootstrap import Bootstrap, Progress, State, Step, follow, launch, read_line, script

SECONDS = 30
"""In which everything here has ended, even on a slow machine."""


@dataclass(frozen=True)
class Container:
    """Runs bootstrap scripts whose state is in `root/state`."""

    root: Path
    path: str = os.environ["PATH"]

    @property
    def directory(self) -> str:
        return str(self.root / "state")

    def script(self, *steps: Step, timeout: int = SECONDS) -> bytes:
        return script(Bootstrap(steps), self.directory, timeout, retry_delay=0)

    def open(self, argv: Sequence[str]) -> "subprocess.Popen[bytes]":
        """An exec in a session of its own, as a container runtime gives it."""
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": self.path},
            start_new_session=True,
        )

    def execute(self, argv: Sequence[str], stdin: bytes = b"") -> list[Progress]:
        with self.open(argv) as process:
            out, _ = process.communicate(stdin, timeout=SECONDS)
        return [read_line(line) for line in out.decode().splitlines()]

    def launch(self, program: bytes) -> list[Progress]:
        return self.execute(launch(self.directory, len(program)), program)

    def run(self, *steps: Step, timeout: int = SECONDS) -> list[Progress]:
        return self.launch(self.script(*steps, timeout=timeout))

    def follow(self) -> list[Progress]:
        return self.execute(follow(self.directory))

    def start(self, program: bytes) -> "subprocess.Popen[bytes]":
        """Launched, and still followed."""
        process = self.open(launch(self.directory, len(program)))
        assert process.stdin is not None
        process.stdin.write(program)
        process.stdin.flush()
        return process

    def log(self) -> str:
        return (self.root / "state" / "log").read_text()

    def gate(self) -> Path:
        """A FIFO: whoever reads it waits until `release`."""
        gate = self.root / "gate"
        os.mkfifo(gate)
        return gate


def release(gate: Path) -> None:
    """Waits until somebody reads `gate`, and lets it go on."""
    gate.write_bytes(b"go\n")


def states(lines: Sequence[Progress]) -> list[State]:
    """What was said, without the lines of the log; steps that follow one another quickly count once."""
    out: list[State] = []
    for line in lines:
        if line.state is not State.LOG and out[-1:] != [line.state]:
            out.append(line.state)
    return out


def read_until(process: "subprocess.Popen[bytes]", state: State) -> Progress:
    assert process.stdout is not None
    for raw in process.stdout:
        if (line := read_line(raw.decode())).state is state:
            return line
    raise AssertionError(f"ended without {state}")
