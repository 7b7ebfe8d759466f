"""What Go made of random templates (tools/generate_template_golden.py), and how ours is compared with it."""

from pathlib import Path
from typing import Any

from capi.backends.docker.gotemplate.evaluating import render
from capi.backends.docker.gotemplate.values import Struct, TemplateError
from capi.backends.docker.haproxy import join_host_port

TARGET = Path(__file__).parent / "templates.json"
OURS_ALONE = (
    "there is no entry",
    "there is no .",
    "printf has ",
    "cannot compare maps and objects",
    "index a text",
)
"""Refusals of whole templates that Go does not know. It writes `<no value>`, `%!d(string=x)` and the like into the file."""


def difference(case: dict[str, Any]) -> str:
    """In which way ours is not the same; "" if it is. A broken template may be one that only Go knows how to read."""
    servers = {name: Struct(server) for name, server in case["data"]["BackendServers"].items()}
    data = Struct(case["data"] | {"BackendServers": servers})
    try:
        made = render(case["template"], data, {"JoinHostPort": join_host_port})
    except TemplateError as error:
        alone = case["broken"] or any(text in error.what for text in OURS_ALONE)
        return "" if case["error"] or alone else f"only ours refuses it ({error}); Go: {case['text']!r}"
    if case["error"]:
        return f"only Go refuses it ({case['error']}); ours: {made!r}"
    return "" if made == case["text"] else f"Go makes {case['text']!r}, ours {made!r}"
