"""`capi get kubeconfig`."""

import asyncio
import sys

from capi.api.builtin import Secret
from capi.api.core import secrets
from capi.api.core.v1beta2 import Cluster
from capi.cli.connect import Connected, Where, connected
from capi.kube.errors import NotFound


def kubeconfig(where: Where, name: str) -> int:
    """Prints the kubeconfig; the exit code."""
    sys.stdout.write(asyncio.run(_kubeconfig(where, name)) + "\n")
    return 0


async def _kubeconfig(where: Where, name: str) -> str:
    async with connected(where) as there:
        try:
            secret = await there.client.get(Secret, secrets.kubeconfig(name), there.namespace)
        except NotFound:
            raise await _missing(there, name) from None
        return secret.data.get(secrets.KUBECONFIG_KEY, b"").decode().rstrip("\n")


async def _missing(there: Connected, name: str) -> NotFound:
    try:
        await there.client.get(Cluster, name, there.namespace)
    except NotFound:
        return NotFound(f'Cluster "{name}" not found in namespace "{there.namespace}"; -n names another one')
    secret = secrets.kubeconfig(name)
    return NotFound(
        f'Secret "{secret}" not found in namespace "{there.namespace}": the control plane of Cluster "{name}" is not there'
        f" yet; `capi describe cluster {name}` shows what it waits for"
    )
