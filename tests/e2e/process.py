"""`capi` as a process of its own, and kubectl beside it."""

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CAPI = [sys.executable, "-m", "capi.cli.main"]
ENV = {key: value for key, value in os.environ.items() if key not in ("KUBECONFIG", "CAPI_DATA_DIR")} | {
    "NO_COLOR": "1"
}


def capi(*args: str | Path, timeout: float = 60, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
    """Run one `capi` command to its end."""
    return subprocess.run(
        [*CAPI, *map(str, args)], capture_output=True, text=True, timeout=timeout, env=ENV, input=stdin, check=False
    )


@dataclass
class Kubectl:
    """kubectl bound to one kubeconfig."""

    path: str
    kubeconfig: Path

    def run(self, *args: str, stdin: str | None = None, timeout: float = 60, check: bool = True) -> str:
        """Standard output; a failure raises with both outputs."""
        done = subprocess.run(
            [self.path, f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.kubeconfig.parent / 'kubectl-cache'}", *args],
            capture_output=True, text=True, timeout=timeout, env=ENV, input=stdin, check=False,
        )  # fmt: skip
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(args)} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout if check else done.stdout + done.stderr

    def json(self, *args: str) -> Any:
        return json.loads(self.run(*args, "-o", "json"))

    def names(self, *args: str) -> set[str]:
        return {item["metadata"]["name"] for item in self.json("get", *args)["items"]}

    def wait(self, target: str, *conditions: str, timeout: str = "60s") -> None:
        for condition in conditions:
            self.run("wait", *target.split(), f"--for={condition}", f"--timeout={timeout}", timeout=90)


class CapiProcess:
    """A running `capi up` or `capi manager`."""

    def __init__(self, args: list[str], log: Path, env: Mapping[str, str] | None = None) -> None:
        """`env`: what is added to the environment."""
        self.log = log
        self.started = time.monotonic()
        self._out = log.open("ab")
        self.process = subprocess.Popen(
            [*CAPI, *args], stdout=self._out, stderr=subprocess.STDOUT, env={**ENV, **(env or {})}
        )

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for(self, text: str, timeout: float = 20) -> None:
        """Until the process has said that."""
        deadline = time.monotonic() + timeout
        while text not in self.output():
            assert self.process.poll() is None and time.monotonic() < deadline, f"no {text!r} in:\n{self.output()}"
            time.sleep(0.02)  # another process's output: there is nothing to wait on

    def kill(self) -> None:
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self, timeout: float = 15) -> int:
        """SIGTERM and wait; the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(timeout)
        finally:
            if self.process.poll() is None:
                self.kill()
            self._out.close()


def read_kubeconfig(path: Path) -> tuple[str, ssl.SSLContext]:
    """Server URL and a client context for an embedded-data kubeconfig."""
    import base64

    import yaml

    document = yaml.safe_load(path.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    pem = path.parent / f"{path.name}.client.pem"
    pem.touch(mode=0o600)
    pem.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
    context.load_cert_chain(pem)
    return cluster["server"], context


def get(kubeconfig: Path, path: str) -> str:
    """Body of one GET with the admin's certificate."""
    server, context = read_kubeconfig(kubeconfig)
    with urllib.request.urlopen(server + path, context=context, timeout=5) as answer:
        return str(answer.read().decode())


def wait_ready(up: CapiProcess, kubeconfig: Path, timeout: float = 20) -> float:
    """Seconds from the process's start until /readyz answered 200."""
    deadline = up.started + timeout
    while time.monotonic() < deadline:
        if up.process.poll() is not None:
            break
        if kubeconfig.exists():
            with contextlib.suppress(urllib.error.URLError, ConnectionError, ssl.SSLError, TimeoutError, ValueError):
                get(kubeconfig, "/readyz")
                return time.monotonic() - up.started
        time.sleep(0.01)  # polling another process for its port: there is nothing to wait on
    raise AssertionError(f"capi up was not ready within {timeout} s:\n{up.output()[-3000:]}")


@contextlib.contextmanager
def running_up(data_dir: Path, *args: str) -> Iterator[CapiProcess]:
    """`capi up` with a data directory, ready and with its files applied; stopped at the end."""
    kubeconfig = data_dir / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    up = CapiProcess(["up", f"--data-dir={data_dir}", "--port=0", *args], data_dir.parent / f"{data_dir.name}.log")
    try:
        wait_ready(up, kubeconfig)
        if any(arg.endswith(".yaml") for arg in args):
            up.wait_for("applied ")
        yield up
    finally:
        up.stop()


@contextlib.contextmanager
def running_manager(kubeconfig: Path, log: Path, *args: str, **environment: str) -> Iterator[CapiProcess]:
    """`capi manager` against a kubeconfig; stopped at the end."""
    manager = CapiProcess(["manager", f"--kubeconfig={kubeconfig}", *args], log, environment)
    try:
        yield manager
    finally:
        manager.stop()


@contextlib.contextmanager
def running_webhook(kubeconfig: Path, log: Path) -> Iterator[CapiProcess]:
    """`capi webhook` on a free port of this machine, registered at the API server of a kubeconfig; stopped at the end."""
    args = ["--webhook-host=127.0.0.1", "--webhook-port=0", "--webhook-url=https://127.0.0.1:0"]
    webhook = CapiProcess(["webhook", f"--kubeconfig={kubeconfig}", *args], log)
    try:
        webhook.wait_for("webhooks are registered")
        yield webhook
    finally:
        webhook.stop()
