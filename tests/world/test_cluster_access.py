"""The kubeconfig of a Cluster without a control plane object: made from the authority that its user brings."""

import base64
from datetime import timedelta

import pytest

from capi.api.builtin import Secret
from capi.api.core.v1beta2 import Cluster
from capi.client import pki
from capi.client.pki import KeyPair
from capi.controllers import kubeconfig
from capi.kube.conditions import get
from capi.kube.types import Object
from tests.world import manifests
from tests.world.rig import World, world

pytestmark = pytest.mark.looptime


async def alone(w: World) -> None:
    """A Cluster that brings everything but the kubeconfig. (Nobody listens at its endpoint.)"""
    endpoint = {"host": "127.0.0.1", "port": 1}
    infra = {"apiGroup": manifests.INFRA, "kind": "DevCluster", "name": "brought-by-hand"}
    body: Object = {
        "apiVersion": Cluster.resource.api_version,
        "kind": "Cluster",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {"controlPlaneEndpoint": endpoint, "infrastructureRef": infra},
    }
    await w.apply(body)
    await w.settle()


async def bring(w: World, name: str, data: dict[str, bytes]) -> None:
    """As a user, without any label."""
    meta = {"name": name, "namespace": "default"}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    await w.client.create(Secret.resource, {"metadata": meta, "data": encoded})


def ca_data(pair: KeyPair) -> dict[str, bytes]:
    return {"tls.crt": pair.certificate, "tls.key": pair.key}


async def access(w: World) -> kubeconfig.Access:
    found = kubeconfig.access_of(await w.client.get(Secret, "mine-kubeconfig", "default"))
    assert found is not None
    return found


async def probe(w: World) -> str:
    found = get((await w.client.get(Cluster, "mine", "default")).status.conditions, "RemoteConnectionProbe")
    assert found is not None and found.status == "False"
    return found.message


async def test_it_is_made_when_the_authority_is_there_and_goes_with_the_cluster() -> None:
    async with world() as w:
        await alone(w)
        assert await probe(w) == "Secret mine-ca with the certificate authority does not exist"
        authority = pki.new_ca("mine-ca", w.clock.now())
        await bring(w, "mine-ca", ca_data(authority))
        await w.advance(seconds=31)
        made = await access(w)
        assert (made.server, made.ca) == ("https://127.0.0.1:1", authority.certificate)
        assert pki.usable(made.client, w.clock.now(), ca=authority)
        secret = await w.client.get(Secret.resource, "mine-kubeconfig", "default")
        assert secret["type"] == "cluster.x-k8s.io/secret"
        assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "mine"}
        assert [ref["kind"] for ref in secret["metadata"]["ownerReferences"]] == ["Cluster"]
        await w.client.delete(Cluster, "mine", "default")
        await w.advance(minutes=1)
        assert [found.name for found in await w.client.list(Secret, "default")] == ["mine-ca"]


async def test_one_that_somebody_else_made_is_left_alone() -> None:
    async with world() as w:
        await bring(w, "mine-ca", ca_data(pki.new_ca("mine-ca", w.clock.now())))
        await bring(w, "mine-kubeconfig", {"value": b"theirs"})
        before = await w.client.get(Secret.resource, "mine-kubeconfig", "default")
        await alone(w)
        await w.advance(minutes=5)
        assert await w.client.get(Secret.resource, "mine-kubeconfig", "default") == before


async def test_it_is_renewed_before_it_ends_and_when_the_authority_changes() -> None:
    async with world() as w:
        await bring(w, "mine-ca", ca_data(pki.new_ca("mine-ca", w.clock.now())))
        await alone(w)
        first = await access(w)
        other = pki.new_ca("mine-ca", w.clock.now())
        data = {key: base64.b64encode(value).decode() for key, value in ca_data(other).items()}
        await w.client.patch(Secret.resource, "mine-ca", "default", {"data": data})
        await w.client.patch(Cluster.resource, "mine", "default", {"metadata": {"labels": {"look": "again"}}})
        await w.settle()
        second = await access(w)
        assert second.client != first.client and second.ca == other.certificate
        assert kubeconfig.renewal(second, w.clock.now()) > timedelta(days=300)


async def test_an_authority_that_is_no_use_is_told() -> None:
    async with world() as w:
        await bring(w, "mine-ca", {"tls.crt": b"nonsense", "tls.key": b"nonsense"})
        await alone(w)
        assert "Secret mine-ca is no use: Secret mine-ca: tls.crt is not a PEM certificate" in await probe(w)
        assert w.failures("capi-cluster") == 0


async def test_with_a_control_plane_object_it_is_the_providers() -> None:
    async with world() as w:
        await bring(w, "quickstart-ca-of-nobody", {"tls.crt": b""})
        cluster, infra, _ = manifests.cluster()
        await w.apply(cluster, infra)
        await w.advance(minutes=2)
        assert [found.name for found in await w.client.list(Secret, "default")] == ["quickstart-ca-of-nobody"]
