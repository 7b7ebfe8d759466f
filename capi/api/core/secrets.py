"""Secrets by convention: names, type and keys. Upstream: util/secret, docs on the cluster certificates."""

from typing import Final

TYPE: Final = "cluster.x-k8s.io/secret"
KUBECONFIG_SUFFIX: Final = "-kubeconfig"
KUBECONFIG_KEY: Final = "value"
CA_SUFFIX: Final = "-ca"
CERTIFICATE_KEY: Final = "tls.crt"
PRIVATE_KEY_KEY: Final = "tls.key"
BOOTSTRAP_KEY: Final = "value"


def kubeconfig(cluster: str) -> str:
    """Name of the Secret with a workload cluster's kubeconfig."""
    return cluster + KUBECONFIG_SUFFIX


def ca(cluster: str) -> str:
    """Name of the Secret with a workload cluster's certificate authority."""
    return cluster + CA_SUFFIX
