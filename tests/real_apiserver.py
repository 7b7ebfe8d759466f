"""A real etcd and kube-apiserver for the tests marked `real`, from KUBEBUILDER_ASSETS or `make envtest`.

No controllers run beside them: nothing collects garbage, nothing empties namespaces.
"""

import base64
import contextlib
import json
import os
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import trustme

ROOT = Path(__file__).parent.parent
START_TIMEOUT = 60.0  # seconds; kube-apiserver needs 4-8 on two busy cores


def assets() -> Path | None:
    """Folder with `etcd` and `kube-apiserver`, or None."""
    for folder in (os.environ.get("KUBEBUILDER_ASSETS"), str(ROOT / ".envtest")):
        if folder and all(os.access(Path(folder) / name, os.X_OK) for name in ("etcd", "kube-apiserver")):
            return Path(folder)
    return None


def free_ports(count: int) -> list[int]:
    """Ports the kernel picked a moment ago; held together so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


@contextlib.contextmanager
def running(folder: Path, work: Path, extra: Sequence[str] = ()) -> Iterator[Path]:
    """Both servers up, kube-apiserver with `extra` flags; yields the path of an admin kubeconfig. Ends them by their pids."""
    work.mkdir(parents=True, exist_ok=True)
    client, peer, secure = free_ports(3)
    _write_certificates(work)
    kubeconfig = _write_kubeconfig(work, secure)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_process(_etcd(folder, work, client, peer), work / "etcd.log"))
        server = stack.enter_context(
            _process([*_apiserver(folder, work, client, secure), *extra], work / "kube-apiserver.log")
        )
        _wait_ready(server, work, secure)
        yield kubeconfig


@contextlib.contextmanager
def _process(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _etcd(folder: Path, work: Path, client: int, peer: int) -> list[str]:
    return [
        str(folder / "etcd"),
        f"--data-dir={work / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
    ]


def _apiserver(folder: Path, work: Path, etcd: int, secure: int) -> list[str]:
    return [
        str(folder / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={secure}",
        f"--cert-dir={work}",
        f"--tls-cert-file={work / 'server.crt'}",
        f"--tls-private-key-file={work / 'server.key'}",
        f"--client-ca-file={work / 'ca.crt'}",
        f"--service-account-key-file={work / 'server.key'}",
        f"--service-account-signing-key-file={work / 'server.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
    ]


def _write_certificates(work: Path) -> None:
    ca = trustme.CA(key_type=trustme.KeyType.RSA)
    server = ca.issue_cert("127.0.0.1", "localhost", key_type=trustme.KeyType.RSA)
    admin = ca.issue_cert("admin.invalid", common_name="admin", organization_name="system:masters")
    ca.cert_pem.write_to_path(str(work / "ca.crt"))
    for name, cert in (("server", server), ("admin", admin)):
        (work / f"{name}.crt").write_bytes(b"".join(blob.bytes() for blob in cert.cert_chain_pems))
        cert.private_key_pem.write_to_path(str(work / f"{name}.key"))


def _write_kubeconfig(work: Path, secure: int) -> Path:
    def data(name: str) -> str:
        return base64.b64encode((work / name).read_bytes()).decode()

    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "real",
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        "clusters": [
            {
                "name": "real",
                "cluster": {"server": f"https://127.0.0.1:{secure}", "certificate-authority-data": data("ca.crt")},
            }
        ],
        "users": [
            {
                "name": "admin",
                "user": {"client-certificate-data": data("admin.crt"), "client-key-data": data("admin.key")},
            }
        ],
    }
    path = work / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(document))
    return path


def _wait_ready(server: "subprocess.Popen[bytes]", work: Path, secure: int) -> None:
    context = ssl.create_default_context(cafile=str(work / "ca.crt"))
    context.load_cert_chain(str(work / "admin.crt"), str(work / "admin.key"))
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        with contextlib.suppress(urllib.error.URLError, ConnectionError, ssl.SSLError, TimeoutError):
            url = f"https://127.0.0.1:{secure}/readyz"
            with urllib.request.urlopen(url, context=context, timeout=5) as answer:
                if answer.status == 200:
                    return
        time.sleep(0.1)  # polling another process for its port: there is nothing to wait on
    tail = (work / "kube-apiserver.log").read_text(errors="replace")[-3000:]
    raise RuntimeError(f"kube-apiserver did not become ready:\n{tail}")
