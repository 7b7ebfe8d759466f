"""Rules for metadata.name, per family of kinds: what is wrong with a name, in Kubernetes' words.

Source: k8s.io/apimachinery/pkg/api/validation/generic.go, path/name.go.
"""

from collections.abc import Sequence

from capi.kube import validation


def subdomain(name: str) -> Sequence[str]:
    """Most kinds: RFC 1123 subdomain."""
    return validation.dns_subdomain(name)


def label(name: str) -> Sequence[str]:
    """Namespace: RFC 1123 label."""
    return validation.dns_label(name)


def label_1035(name: str) -> Sequence[str]:
    """Service: RFC 1035 label."""
    return validation.dns_1035_label(name)


def path_segment(name: str) -> Sequence[str]:
    """RBAC kinds and events: anything that can stand in a URL path."""
    return validation.path_segment(name)
