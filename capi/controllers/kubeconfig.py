"""The Secrets that give access to a workload cluster: its authority and the administrator's kubeconfig.

Made by a hosted control plane, or by a Cluster that has no control plane object.

Upstream: util/secret, util/kubeconfig.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from capi.api.builtin import Secret
from capi.api.core import labels, secrets
from capi.api.core.v1beta2 import APIEndpoint
from capi.client import pki
from capi.client.pki import KeyPair
from capi.controllers import owners
from capi.kube import yaml
from capi.kube.errors import CapiError
from capi.kube.objects import Resource, to_wire
from capi.kube.types import Object
from capi.runtime.plan import Create, Target

USER = "kubernetes-admin"
GROUPS = ("system:masters",)


class BadSecret(CapiError):
    """A Secret of the cluster does not hold what it should; correct or delete it."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a kubeconfig gives: whom it trusts, and its client certificate."""

    server: str
    ca: bytes
    client: KeyPair


def authority_of(secret: Secret) -> KeyPair:
    """The authority in Secret `<cluster>-ca`. Raises BadSecret."""
    pair = KeyPair(secret.data.get(secrets.CERTIFICATE_KEY, b""), secret.data.get(secrets.PRIVATE_KEY_KEY, b""))
    try:
        pki.not_after(pair)
    except ValueError as error:
        raise BadSecret(f"Secret {secret.name}: {secrets.CERTIFICATE_KEY} is not a PEM certificate") from error
    if not pair.key:
        raise BadSecret(f"Secret {secret.name}: {secrets.PRIVATE_KEY_KEY} is missing")
    return pair


def new_authority(owner: Resource, cluster: str, now: datetime) -> Create:
    """Secret `<cluster>-ca` with a new authority; an existing one is never overwritten."""
    pair = pki.new_ca(f"{cluster}-ca", now)
    data = {secrets.CERTIFICATE_KEY: pair.certificate, secrets.PRIVATE_KEY_KEY: pair.key}
    return Create(_target(owner, secrets.ca(cluster)), _body(owner, cluster, data))


def new_kubeconfig(owner: Resource, cluster: str, endpoint: APIEndpoint, authority: KeyPair, now: datetime) -> Create:
    """Secret `<cluster>-kubeconfig` for the cluster's administrator."""
    client = pki.issue_client(authority, USER, GROUPS, now)
    server = f"https://{endpoint}"
    document = pki.client_kubeconfig(
        server=server, ca=authority.certificate, client=client, cluster=cluster, user=f"{cluster}-admin"
    )
    data = {secrets.KUBECONFIG_KEY: yaml.dump(document).encode()}
    return Create(_target(owner, secrets.kubeconfig(cluster)), _body(owner, cluster, data))


def access_of(secret: Secret) -> Access | None:
    """What Secret `<cluster>-kubeconfig` gives; None if it is not a kubeconfig of the kind written here."""
    try:
        document = yaml.load(secret.data.get(secrets.KUBECONFIG_KEY, b""))
        cluster: Any = document["clusters"][0]["cluster"]
        user: Any = document["users"][0]["user"]
        client = KeyPair(_decoded(user["client-certificate-data"]), _decoded(user["client-key-data"]))
        return Access(cluster["server"], _decoded(cluster["certificate-authority-data"]), client)
    except (CapiError, KeyError, IndexError, TypeError, ValueError, binascii.Error):
        return None


def needed(owner: Resource, secret: Secret | None, access: Access | None, authority: KeyPair, now: datetime) -> bool:
    """Whether the kubeconfig must be written: there is none, or ours trusts another authority, or soon ends.

    A Secret that somebody else made, and an edited server address, are left alone.
    """
    if secret is None:
        return True
    if not is_owned(secret, owner):
        return False
    return access is None or access.ca != authority.certificate or not pki.usable(access.client, now, ca=authority)


def renewal(access: Access, now: datetime) -> timedelta:
    """How long until the client certificate is to be renewed."""
    return max(timedelta(), pki.not_after(access.client) - pki.RENEW_BEFORE - now)


def is_owned(secret: Secret, owner: Resource) -> bool:
    """Made here, for this owner."""
    return any(ref.uid == owner.metadata.uid for ref in secret.metadata.owner_references)


def _target(owner: Resource, name: str) -> Target:
    return Target(Secret.resource, owner.namespace, name)


def _body(owner: Resource, cluster: str, data: dict[str, bytes]) -> Object:
    reference = to_wire(owners.reference(owner, controller=True))
    return {
        "metadata": {"labels": {labels.CLUSTER_NAME: cluster}, "ownerReferences": [reference]},
        "type": secrets.TYPE,
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def _decoded(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
