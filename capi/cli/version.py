"""`capi version`."""

import json
import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


def capi_version() -> str:
    """The version of the installed distribution."""
    try:
        return installed("capi")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0.0.0+source"


def text(output: str | None) -> str:
    """The version for people, or as data."""
    data = {
        "version": capi_version(),
        "python": platform.python_version(),
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "contract": "v1beta2",
    }
    if output == "json":
        return json.dumps(data, indent=2)
    if output == "yaml":
        return "\n".join(f"{key}: {json.dumps(value)}" for key, value in data.items())
    return f"capi {data['version']} (Cluster API v1beta2, Python {data['python']})"
