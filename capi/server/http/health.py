"""/healthz, /livez, /readyz and /version.

Source: kubernetes.io/docs/reference/using-api/health-checks; apiserver pkg/server/healthz.
"""

import platform
from collections.abc import Callable, Mapping

from capi.kube.messages import Request, Response
from capi.kube.types import Object
from capi.server.http import responses

Check = Callable[[], bool]
PATHS = ("/healthz", "/livez", "/readyz")


def answer(request: Request, checks: Mapping[str, Check]) -> Response:
    """The text of a health path: "ok", or every check with its outcome when one fails or `?verbose` asks."""
    excluded = {value for key, value in request.query if key == "exclude"}
    results = {"ping": True, **{name: _passes(check) for name, check in checks.items() if name not in excluded}}
    name = request.path.strip("/")
    good = all(results.values())
    if good and not any(key == "verbose" for key, _ in request.query):
        return responses.text(200, "ok")
    lines = [f"[+]{check} ok" if fine else f"[-]{check} failed: reason withheld" for check, fine in results.items()]
    return responses.text(
        200 if good else 500, "\n".join([*lines, f"{name} check {'passed' if good else 'failed'}", ""])
    )


def version(git_version: str) -> Object:
    """The document of /version for a Kubernetes version such as v1.35.0."""
    major, minor, *_ = [*git_version.lstrip("v").split("."), "", ""]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"cpython{platform.python_version()}",
        "platform": f"linux/{'arm64' if platform.machine() in ('aarch64', 'arm64') else 'amd64'}",
    }


def _passes(check: Check) -> bool:
    try:
        return check()
    except Exception:  # a check that cannot tell has failed
        return False
