"""Contract labels of provider CRDs: which versions of a kind follow which contract. Pure.

`cluster.x-k8s.io/v1beta2: v1alpha1_v1beta1` on a CRD lists its versions for a contract; the newest contract and version win.
Upstream: internal/contract/version.go; docs book, "Version migration" and provider contracts.
"""

import re
from collections.abc import Mapping
from typing import Final

CONTRACTS: Final = ("v1beta2", "v1beta1")
"""Contract versions core understands, best first; also the names of the CRD labels after `cluster.x-k8s.io/`."""
_VERSION = re.compile(r"^v(\d+)(?:(alpha|beta)(\d+))?$")


def plural(kind: str) -> str:
    """The plural that provider CRDs have by contract: the English one of the lower-case kind."""
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Order of Kubernetes versions: v2 > v1 > v2beta1 > v1beta2 > v1alpha1 > anything else."""
    match = _VERSION.match(version)
    if match is None:
        return 0, 0, 0, version
    stability = {None: 3, "beta": 2, "alpha": 1}[match[2]]
    return stability, int(match[1]), int(match[3] or 0), version


def contract_version(labels: Mapping[str, str]) -> str:
    """The version of a kind to use, by the contract labels of its CRD; "" if it has none."""
    for contract in CONTRACTS:
        versions = labels.get(f"cluster.x-k8s.io/{contract}", "")
        if versions:
            return max(versions.split("_"), key=version_rank)
    return ""
