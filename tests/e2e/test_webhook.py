"""`capi webhook` and a real kube-apiserver: what others do to it, and how it comes back."""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import real_apiserver
from tests.e2e.process import CapiProcess, Kubectl, capi, running_webhook

pytestmark = [pytest.mark.real, pytest.mark.kubectl, pytest.mark.slow, pytest.mark.timeout(240)]
SECRET = ("secret", "capi-webhook-cert", "-n", "capi-system")
MUTATING, POOLS = "capi-mutating-webhook-configuration", "machinepools.cluster.x-k8s.io"
CHECK = """
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineHealthCheck
metadata: {name: h, namespace: default}
spec: {clusterName: c, selector: {matchLabels: {a: b}}, unhealthyConditions: []}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Kubectl]:
    folder = real_apiserver.assets()
    if folder is None:
        pytest.skip("no kube-apiserver; make envtest builds one")
    with real_apiserver.running(folder, tmp_path_factory.mktemp("webhook")) as kubeconfig:
        k = Kubectl(kubectl, kubeconfig)
        k.run("apply", "--server-side", "-f", "-", stdin=capi("manifests", "--only", "crds").stdout)
        k.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield k


@pytest.fixture
def webhook(server: Kubectl, tmp_path: Path) -> Iterator[CapiProcess]:
    with running_webhook(server.kubeconfig, tmp_path / "log") as running:
        yield running


def soon(holds: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def writes_pass(server: Kubectl) -> bool:
    """An old object would be created, with its defaults and in the version that is stored."""
    what = ("--dry-run=server", "-o", "jsonpath=timeout {.spec.nodeStartupTimeout}", "-f", "-")
    return "timeout 10m0s" in server.run("create", *what, stdin=CHECK, check=False)


def test_another_process_takes_over_where_one_ended(server: Kubectl, tmp_path: Path) -> None:
    for turn in range(2):
        with running_webhook(server.kubeconfig, tmp_path / f"log{turn}"):
            soon(lambda: writes_pass(server))
    assert not writes_pass(server), "nobody serves"


@pytest.mark.parametrize("harm", ["secret deleted", "secret spoilt", "configuration replaced", "definition replaced"])
def test_what_others_spoil_is_set_right_within_seconds(server: Kubectl, webhook: CapiProcess, harm: str) -> None:
    soon(lambda: writes_pass(server))
    before = bundle(server)
    if harm == "secret deleted":
        server.run("delete", *SECRET)
        soon(lambda: bundle(server) not in ("", before))
    elif harm == "secret spoilt":
        server.run("patch", *SECRET, "--type=merge", "-p", '{"data":{"ca.key":"bm8=","tls.key":"bm8="}}')
        soon(lambda: bundle(server) not in ("", before))
    elif harm == "configuration replaced":
        found = server.json("get", "mutatingwebhookconfiguration", MUTATING)
        for hook in found["webhooks"]:
            del hook["clientConfig"]["caBundle"]
        server.run("replace", "-f", "-", stdin=json.dumps(found))
    else:
        patch = '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
        server.run("patch", "crd", POOLS, "--type=merge", "-p", patch)
        soon(lambda: bundle(server) == before)
    soon(lambda: writes_pass(server))


def bundle(server: Kubectl) -> str:
    conversion = server.json("get", "crd", POOLS)["spec"]["conversion"]
    found: str = conversion.get("webhook", {}).get("clientConfig", {}).get("caBundle", "")
    return found


REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/convert", b"", 400),
        ("/convert", b"[]", 400),
        ("/convert", b'{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"objects":[7]}}', 400),
        ("/validate-cluster-x-k8s-io-v1beta2-machine", json.dumps({**REVIEW, "request": 5}).encode(), 400),
        ("/validate-cluster-x-k8s-io-v1beta2-machine", json.dumps({**REVIEW, "request": {"kind": 5}}).encode(), 400),
        ("/validate-cluster-x-k8s-io-v1beta2-something", json.dumps(REVIEW).encode(), 404),
        ("/healthz", None, 200),
    ],
)  # fmt: skip
def test_nonsense_is_refused_and_not_logged_as_a_fault(
    server: Kubectl, webhook: CapiProcess, path: str, body: bytes | None, status: int
) -> None:
    [url] = {h["clientConfig"]["url"] for h in server.json("get", "mutatingwebhookconfiguration", MUTATING)["webhooks"]
             if h["name"] == "default.machine.cluster.x-k8s.io"}  # fmt: skip
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    base = "/".join(url.split("/")[:3])
    try:
        with urllib.request.urlopen(urllib.request.Request(base + path, data=body), context=context) as answer:
            found = answer.status
    except urllib.error.HTTPError as error:
        found = error.code
    assert found == status
    assert "Traceback" not in webhook.output()
