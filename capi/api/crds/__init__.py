"""The generated CustomResourceDefinitions of all kinds, as data of this package.

Generated from the types by tools/generate_crds.py (`make manifests`), which also writes them as YAML into config/crd.
"""

from importlib.resources import files
from typing import cast

import msgspec

from capi.kube.types import Object

FILE = "crds.json"


def all() -> list[Object]:
    """Every CRD, ordered by name; fresh copies, a few milliseconds."""
    return cast(list[Object], msgspec.json.decode(files("capi.api.crds").joinpath(FILE).read_bytes()))
