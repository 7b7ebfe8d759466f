"""dockerd in its own network namespace, and the DNS responder beside it."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.engine import host, processes
from tools.engine.place import Place
from tools.engine.shell import Failed, Missing, read, run, say, step, works

DEFAULT_HOST = "unix:///var/run/docker.sock"
NETWORK = "kind"
"""The network on which the provider puts containers unless DOCKER_NETWORK names another."""
DNS_ADDRESS = "192.0.2.53"
"""On the namespace's loopback; an address that documentation may use, hence nobody's."""
START_TIMEOUT = 60.0  # seconds; dockerd needs about 1.5
STOP_TIMEOUT = 30.0  # seconds; dockerd gives containers 15
FILES = Path(__file__).resolve().parent / "files"


def answers(docker_host: str) -> bool:
    """Whether an engine is there."""
    return works("docker", "--host", docker_host, "version")


def find(place: Place) -> str | None:
    """DOCKER_HOST of an engine that answers: the one the environment names, the machine's own, or ours."""
    if shutil.which("docker") is None:
        return None
    named = os.environ.get("DOCKER_HOST")
    for candidate in dict.fromkeys(filter(None, (named, DEFAULT_HOST, place.host))):
        if answers(candidate):
            return candidate
        if candidate == named != place.host:
            say(f"note: DOCKER_HOST={named} does not answer")
    return None


def start(place: Place) -> str:
    """DOCKER_HOST of an engine that answers, started if there is none. Raises Missing where that cannot be."""
    found = find(place)
    if found is None:
        host.require_root()
        host.install("dockerd", "ip", "iptables", "nsenter")
        host.install("docker")
        found = find(place)  # the package may have started one
    if found is None:
        with step(f"starting an engine in {place.folder}"):
            _start(place)
        found = place.host
    if not works("docker", "--host", found, "network", "inspect", NETWORK):
        run("docker", "--host", found, "network", "create", NETWORK)
    return found


def exports(place: Place, docker_host: str) -> Iterator[str]:
    """Lines for `eval` of a shell."""
    yield f"export DOCKER_HOST={docker_host}"
    if docker_host == place.host:
        yield f"export CAPI_TEST_NETNS={place.name}"


def stop(place: Place) -> None:
    """End our engine, its containers and its namespace. Images and volumes stay."""
    _end_daemon(place)
    processes.end(place.run / "dns.pid", "dns.py", 5)
    host.unmount_below(place.run, place.folder / "data")
    host.remove_namespace(place)
    shutil.rmtree(place.run, ignore_errors=True)


def _start(place: Place) -> None:
    host.mount_cgroups()
    host.raise_inotify()
    host.add_namespace(place)
    place.run.mkdir(mode=0o700, exist_ok=True)
    _start_dns(place)
    _end_daemon(place)  # one that does not answer; also, dockerd believes a pid file whose pid is another's now
    configuration = place.run / "daemon.json"
    configuration.write_text(json.dumps(_configuration(place), indent=2))
    log = place.log("dockerd")
    daemon = processes.spawn([*_inside(place), "dockerd", "--config-file", configuration], log)
    try:
        processes.wait_started(daemon, lambda: answers(place.host), START_TIMEOUT, log)
    except Failed as error:
        last = log.read_text(errors="replace").splitlines()[-1:]
        raise Missing(f"dockerd does not start on this machine: {' '.join(last)}\n{error}") from None


def _end_daemon(place: Place) -> None:
    """dockerd, the containerd it started, and what they leave when they are killed."""
    mark = str(place.run)
    processes.end(place.run / "docker.pid", mark, STOP_TIMEOUT)
    processes.end(place.run / "exec/containerd/containerd.pid", mark, STOP_TIMEOUT)
    processes.kill_containers(mark)


def _configuration(place: Place) -> dict[str, object]:
    """dockerd's configuration file."""
    settings: dict[str, object] = {
        "hosts": [place.host],
        "data-root": str(place.folder / "data"),
        "exec-root": str(place.run / "exec"),
        "pidfile": str(place.run / "docker.pid"),
        "dns": [DNS_ADDRESS],
    }
    if not host.may_raise_limits():
        if shutil.which("runc") is None:
            raise Missing("runc is not on PATH; it comes with package docker.io")
        settings |= {"runtimes": {"without-limits": {"path": str(FILES / "runc")}}, "default-runtime": "without-limits"}
    return settings


def _start_dns(place: Place) -> None:
    pidfile, log = place.run / "dns.pid", place.log("dns")
    if processes.pid_of(pidfile, "dns.py") is not None:
        return
    if DNS_ADDRESS not in read("ip", "-n", place.name, "address", "show", "dev", "lo"):
        run("ip", "-n", place.name, "address", "add", f"{DNS_ADDRESS}/32", "dev", "lo")
    log.write_text("")
    responder = Path(__file__).resolve().parent / "dns.py"
    process = processes.spawn([*_inside(place), sys.executable, "-I", responder, DNS_ADDRESS], log)
    processes.wait_started(process, lambda: "ready" in log.read_text(), 10, log)
    pidfile.write_text(str(process.pid))  # nsenter becomes the responder: same pid


def _inside(place: Place) -> list[str | Path]:
    return ["nsenter", f"--net={place.netns}"]
