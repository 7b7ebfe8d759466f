"""Processes that outlive the command which started them. They are known by pid files and ended by their pids."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
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


def kill_containers(mark: str) -> None:
    """Kill the containers of an engine that did not end them: each has a shim with `mark` in its command line."""
    shims = [pid for pid, command in _commands() if b"containerd-shim" in command and mark.encode() in command]
    containers = [pid for pid in _pids() if _parent(pid) in shims]
    for pid in (*containers, *shims):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _commands() -> Iterator[tuple[int, bytes]]:
    for pid in _pids():
        with contextlib.suppress(OSError):
            yield pid, Path(f"/proc/{pid}/cmdline").read_bytes()


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])


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
