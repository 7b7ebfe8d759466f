"""Processes that outlive the command which started them. They are known by pid files and ended by their pids."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.engine.shell import Failed

POLL = 0.05  # seconds


def spawn(argv: Sequence[str | Path], log: Path) -> "subprocess.Popen[bytes]":
    """Start a process in a session of its own, so that no terminal or job takes it along."""
    with log.open("ab") as out:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, cwd="/"
        )


def pid_of(pidfile: Path, mark: str) -> int | None:
    """The pid in that file if such a process runs and has `mark` in its command line: pids are used again."""
    try:
        pid = int(pidfile.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if mark.encode() in command else None


def end(pidfile: Path, mark: str, seconds: float) -> None:
    """Have the process of that file end; kill it when it does not within that time. Removes the file."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        pid = pid_of(pidfile, mark)
        if pid is None:
            break
        os.kill(pid, signum)
        wait(lambda: pid_of(pidfile, mark) is None, seconds)
    pidfile.unlink(missing_ok=True)


def wait(ready: Callable[[], bool], seconds: float) -> bool:
    """Poll until `ready`; whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True


def wait_started(process: "subprocess.Popen[bytes]", ready: Callable[[], bool], seconds: float, log: Path) -> None:
    """Until a process just started is ready; raises Failed with the end of its log if it ends or is late."""
    if wait(lambda: process.poll() is not None or ready(), seconds) and process.poll() is None:
        return
    process.terminate()
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    raise Failed(f"{process.args!r} did not start (exit code {process.poll()}):\n{tail}\n(all of it: {log})")
