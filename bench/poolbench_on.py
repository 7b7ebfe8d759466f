"""poolbench against `capi manager`, on a server that this starts: the embedded one, or etcd and a real kube-apiserver.

    .venv/bin/python bench/poolbench_on.py real --n 1000        (or: embedded)

The real one is taken from KUBEBUILDER_ASSETS or .envtest (`make envtest`). Prints poolbench's JSON, with the writes of the manager
per Machine under `writes`. Ends with 1 if anything timed out or was left.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import poolbench
from tests import real_apiserver
from tests.e2e.process import CapiProcess, Kubectl, capi, get, running_manager, running_up

AUDIT = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"


@contextmanager
def embedded(folder: Path) -> Iterator[tuple[Path, str, dict[str, int]]]:
    with running_up(folder / "data", "--no-controllers") as up:
        yield folder / "data" / "kubeconfig", "", {"server": up.process.pid}


@contextmanager
def real(folder: Path) -> Iterator[tuple[Path, str, dict[str, int]]]:
    assets = real_apiserver.assets()
    if assets is None:
        raise SystemExit("no kube-apiserver: set KUBEBUILDER_ASSETS, or run make envtest")
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(AUDIT)
    extra = [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
    with real_apiserver.running(assets, folder / "real", extra) as kubeconfig:
        k = Kubectl("kubectl", kubeconfig)
        k.run("apply", "--server-side", "-f", "-", stdin=capi("manifests", "--only", "crds").stdout)
        crds = k.run("get", "crd", "-o", "name").split()
        k.run("wait", *crds, "--for=condition=Established", "--timeout=60s")
        found = subprocess.run(["pgrep", "-f", f"kube-apiserver.*{folder}"], capture_output=True, text=True, check=True)
        yield kubeconfig, str(log), {"server": int(found.stdout.split()[0])}


def writes(kubeconfig: Path) -> Counter[str]:
    """Write requests of the manager so far, by the embedded server's own counters."""
    counted: Counter[str] = Counter()
    for labels, value in re.findall(
        r"^apiserver_request_total\{(.*)\} (\S+)$", get(kubeconfig, "/metrics"), re.MULTILINE
    ):
        found = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if (
            found["verb"] not in ("GET", "LIST", "WATCH")
            and found["user_agent"] == "capi"
            and found["resource"] != "leases"
        ):
            counted[f"{found['verb']} {found['resource']}/{found.get('subresource', '')}"] += int(float(value))
    return counted


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("server", choices=("embedded", "real"))
    arguments.add_argument("--n", type=int, default=1000)
    arguments.add_argument("--timeout", type=float, default=240)
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="poolbench-") as name:
        folder = Path(name)
        server = real if asked.server == "real" else embedded
        with (
            server(folder) as (kubeconfig, audit, pids),
            running_manager(kubeconfig, folder / "manager.log") as manager,
        ):
            _leading(manager)
            result = _run(asked, kubeconfig, audit, {**pids, "core": manager.process.pid})
    print(json.dumps(result, indent=1))
    good = "timeout" not in result and result["nodes_left"] == result["nodes_wanted"] and result["writes"] <= 5
    return 0 if good else 1


def _leading(manager: CapiProcess) -> None:
    manager.wait_for("Leading", 30)
    time.sleep(1)  # caches fill; nothing is measured yet


def _run(asked: argparse.Namespace, kubeconfig: Path, audit: str, pids: dict[str, int]) -> dict[str, Any]:
    args = [f"--kubeconfig={kubeconfig}", f"--n={asked.n}", f"--timeout={asked.timeout}", "--delete"]
    options = poolbench.parser().parse_args([*args, *([f"--audit={audit}"] if audit else [])])
    options.pids, options.writes = pids, None if audit else (lambda: writes(kubeconfig))
    result = poolbench.run(options)
    counted = result["requests"]["capi"] if audit else result["requests_of_core"]
    management = {what: count for what, count in counted.items() if " nodes" not in what}
    return {"server": asked.server, **result, "writes": round(sum(management.values()), 2)}


if __name__ == "__main__":
    sys.exit(main())
