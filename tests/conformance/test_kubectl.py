"""The kubectl of this machine against the embedded server: what people type, and what they read."""

import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
import yaml

from capi.client import pki
from tests.conformance.conftest import Embedded
from tests.conformance.site import COLUMNS, INTEGER, STRING, a_version, obj

pytestmark = pytest.mark.kubectl

Run = Callable[..., str]
SCALE = {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
CONDITIONS = {"type": "array", "items": obj(type=STRING, status=STRING)}
SPEC = {
    **obj(size={"type": "integer", "minimum": 0, "description": "How many."}, replicas=INTEGER, note=STRING),
    "required": ["size"],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A folder with a kubeconfig for a server of this module; kubectl caches discovery there."""
    folder = tmp_path_factory.mktemp("kubectl")
    with Embedded().running() as server:
        url = f"https://127.0.0.1:{server.port}"
        config = pki.client_kubeconfig(
            server=url, ca=server.ca.certificate, client=server.admin, cluster="embedded", user="admin"
        )
        pki.write_private(folder / "config", yaml.safe_dump(config).encode())
        yield str(folder)


@pytest.fixture
def run(kubectl: str, home: str) -> Run:
    """Runs kubectl; its output, or AssertionError. `fails` returns what it printed on stderr instead."""

    def execute(*arguments: str, stdin: object = None, fails: bool = False) -> str:
        text = stdin if isinstance(stdin, str) or stdin is None else yaml.safe_dump(stdin)
        environment = {**os.environ, "KUBECONFIG": f"{home}/config", "HOME": home}
        done = subprocess.run(
            [kubectl, *arguments], input=text, capture_output=True, text=True, env=environment, timeout=60
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return (done.stderr if fails else done.stdout).strip()

    return execute


@pytest.fixture
def gadgets(run: Run) -> Run:
    """`run`, with a CRD installed."""
    schema = {
        **obj(spec=SPEC, status=obj(phase=STRING, replicas=INTEGER, conditions=CONDITIONS)),
        "description": "A gadget.",
    }
    version = a_version(schema=schema, subresources=SCALE, additionalPrinterColumns=COLUMNS)
    names = {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"], "categories": ["all", "tools"]}
    spec = {"group": "k.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    meta = {"name": "gadgets.k.example.com"}
    run(
        "apply",
        "-f",
        "-",
        stdin={
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": meta,
            "spec": spec,
        },
    )
    run("wait", "crd/gadgets.k.example.com", "--for=condition=Established", "--timeout=10s")
    return run


def a_gadget(name: str, **spec: object) -> dict[str, object]:
    return {"apiVersion": "k.example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": {"size": 2, **spec}}


def test_discovery_is_readable(gadgets):
    listed = gadgets("api-resources", "-o", "wide")
    assert "gadgets" in listed and "tools" in listed and "certificates" not in listed
    assert "k.example.com/v1" in gadgets("api-versions").splitlines()
    assert "Server Version: v1.35" in gadgets("version")


def test_client_side_apply(gadgets):
    assert gadgets("apply", "-f", "-", stdin=a_gadget("a", note="x")) == "gadget.k.example.com/a created"
    assert gadgets("apply", "-f", "-", stdin=a_gadget("a", note="x")) == "gadget.k.example.com/a unchanged"
    assert gadgets("apply", "-f", "-", stdin=a_gadget("a", size=3)) == "gadget.k.example.com/a configured"
    assert gadgets("get", "gadget", "a", "-o", "jsonpath={.spec}") == '{"size":3}'


def test_server_side_apply_takes_over_from_client_side_apply(gadgets):
    gadgets("apply", "-f", "-", stdin=a_gadget("b"))
    assert (
        gadgets("apply", "--server-side", "-f", "-", stdin=a_gadget("b", size=4))
        == "gadget.k.example.com/b serverside-applied"
    )
    other = gadgets(
        "apply", "--server-side", "--field-manager=other", "-f", "-", stdin=a_gadget("b", size=5), fails=True
    )
    assert 'conflict with "kubectl": .spec.size' in other
    gadgets(
        "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=a_gadget("b", size=5)
    )
    assert gadgets("get", "gd", "b", "-o", "jsonpath={.spec.size}") == "5"


def test_dry_run_and_diff_change_nothing(gadgets, tmp_path):
    gadgets("apply", "-f", "-", stdin=a_gadget("c"))
    changed = tmp_path / "c.yaml"
    changed.write_text(yaml.safe_dump(a_gadget("c", size=7)))
    assert "(server dry run)" in gadgets("apply", "--dry-run=server", "-f", str(changed))
    gadgets("diff", "-f", str(changed), fails=True)  # exit 1 says that there is a difference
    assert gadgets("get", "gd", "c", "-o", "jsonpath={.spec.size}") == "2"


def test_builtin_kinds_merge_strategically(run):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    run("apply", "-f", "-", stdin=pod)
    pod["spec"]["containers"][0]["image"] = "j"
    assert run("apply", "-f", "-", stdin=pod) == "pod/p configured"
    assert run("get", "pod", "p", "-o", "jsonpath={.spec.containers[*].image}") == "j"
    assert run("delete", "pod", "p") == 'pod "p" deleted'


def test_scale_label_annotate_patch_wait(gadgets):
    gadgets("apply", "-f", "-", stdin=a_gadget("d", replicas=1))
    assert gadgets("scale", "gd/d", "--replicas=3") == "gadget.k.example.com/d scaled"
    assert "Expected replicas to be 1, was 3" in gadgets(
        "scale", "gd/d", "--replicas=4", "--current-replicas=1", fails=True
    )
    gadgets("scale", "gd/d", "--replicas=4", "--current-replicas=3")
    gadgets("label", "gd", "d", "a=b")
    gadgets("annotate", "gd", "d", "cluster.x-k8s.io/delete-machine=")
    gadgets(
        "patch",
        "gd",
        "d",
        "--type=merge",
        "--subresource=status",
        "-p",
        '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}',
    )
    assert "condition met" in gadgets("wait", "gd/d", "--for=condition=Ready", "--timeout=5s")
    assert "condition met" in gadgets("wait", "gd/d", "--for=jsonpath={.spec.replicas}=4", "--timeout=5s")
    assert gadgets("get", "gd", "-l", "a=b", "-o", "name") == "gadget.k.example.com/d"
    assert gadgets("get", "gd", "d", "--subresource=scale").splitlines()[0].split() == [
        "NAME",
        "DESIRED",
        "AVAILABLE",
        "AGE",
    ]


def test_get_wide_and_by_category(gadgets):
    gadgets("apply", "-f", "-", stdin=a_gadget("e"))
    assert gadgets("get", "gd", "e", "-o", "wide").splitlines()[0].split() == ["NAME", "SIZE", "MADE", "PHASE"]
    assert "PHASE" not in gadgets("get", "tools", "-A", "--show-kind", "--sort-by=.metadata.name").splitlines()[0]


def test_describe_and_explain(gadgets):
    gadgets("apply", "-f", "-", stdin=a_gadget("f"))
    described = gadgets("describe", "gd", "f")
    assert "Kind:         Gadget" in described and "Events:  <none>" in described
    explained = gadgets("explain", "gadget.spec")
    assert "size\t<integer> -required-" in explained and "How many." in explained


def test_mistakes_are_explained(gadgets):
    assert 'strict decoding error: unknown field "spec.bogus"' in gadgets(
        "apply", "-f", "-", stdin=a_gadget("g", bogus=1), fails=True
    )
    negative = gadgets("apply", "-f", "-", stdin=a_gadget("g", size=-1), fails=True)
    assert (
        negative
        == 'The Gadget "g" is invalid: spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0'
    )
    assert gadgets("get", "gd", "g", fails=True) == 'Error from server (NotFound): gadgets.k.example.com "g" not found'


def test_typed_generators_send_protobuf(run):
    assert run("create", "namespace", "made") == "namespace/made created"
    assert run("create", "configmap", "cm", "--from-literal=a=b", "-n", "made") == "configmap/cm created"
    assert run("create", "secret", "generic", "s", "--from-literal=a=b", "-n", "made") == "secret/s created"
    assert run("get", "secret", "s", "-n", "made", "-o", "jsonpath={.data.a}") == "Yg=="
    assert "unsupported" not in run("delete", "namespace", "made")


def test_auth(run):
    assert run("auth", "can-i", "list", "pods") == "yes"
    assert run("auth", "can-i", "list", "pods", "--as=somebody", fails=True) == ""
    assert 'User "somebody" cannot list resource "pods"' in run("get", "pods", "--as=somebody", fails=True)
    assert "admin" in run("auth", "whoami")


def test_watch_prints_one_line_per_change(kubectl, home, gadgets):
    gadgets("apply", "-f", "-", stdin=a_gadget("w", note="0"))
    environment = {**os.environ, "KUBECONFIG": f"{home}/config", "HOME": home}
    command = [kubectl, "get", "gd", "w", "-w", "-o", "custom-columns=S:.spec.size", "--no-headers"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as watcher:
        assert watcher.stdout is not None and watcher.stdout.readline().strip() == "2"
        gadgets("patch", "gd", "w", "--type=merge", "-p", '{"spec":{"size":8}}')
        assert watcher.stdout.readline().strip() == "8"
        watcher.terminate()


def test_delete_waits_for_finalizers(gadgets):
    gadgets("apply", "-f", "-", stdin={**a_gadget("x"), "metadata": {"name": "x", "finalizers": ["x.io/f"]}})
    gadgets("delete", "gd", "x", "--wait=false")
    assert datetime.fromisoformat(
        gadgets("get", "gd", "x", "-o", "jsonpath={.metadata.deletionTimestamp}")
    ) <= datetime.now(UTC)
    gadgets("patch", "gd", "x", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    gadgets("wait", "gd/x", "--for=delete", "--timeout=5s")
