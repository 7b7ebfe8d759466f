"""The few Jinja expressions that bootstrap data needs: the node's name.

Data of a KubeadmConfig begins with `## template: jinja` and may ask the cloud for the instance's name, e.g. in
`nodeRegistration.name`. There is no template engine here: other expressions stay as they are, with a warning.
Upstream: the docker provider leaves all of them alone.
"""

import re

from capi.backends.docker.bootstrap.model import NodeFacts
from capi.backends.docker.bootstrap.text import one_line

_HEADER = re.compile(r"##[ \t]*template:[ \t]*jinja[ \t]*\r?(?:\n|$)")
_TAG = re.compile(
    r"\{%[-+]?\s*(?P<raw>raw|endraw)\s*[-+]?%\}|\{\{[-+]?(?P<expression>[^{}\n]*?)[-+]?\}\}|\{%[^%{}\n]*%\}"
)
_SUBSCRIPT = re.compile(r"\[\s*(?:'([\w-]+)'|\"([\w-]+)\")\s*\]")
_NAMES = ("instance_id", "local_hostname", "hostname")
_OWN = frozenset(
    prefix + name.replace("_", dash)
    for prefix in ("ds.meta_data.", "ds.meta-data.", "v1.", "")
    for name in _NAMES
    for dash in ("_", "-")
)
_SHOWN = 40


def render(text: str, node: NodeFacts) -> tuple[str, list[str]]:
    """`text` without its Jinja header and with the node's name in its expressions; and warnings.

    Text without the header is no template and stays as it is.
    """
    header = _HEADER.match(text)
    if header is None:
        return text, []
    out: list[str] = []
    left: dict[str, None] = {}
    raw, end = False, header.end()
    for tag in _TAG.finditer(text, end):
        out.append(text[end : tag.start()])
        end = tag.end()
        if tag["raw"] is not None:
            raw = tag["raw"] == "raw"
        elif not raw and tag["expression"] is not None and _plain(tag["expression"]) in _OWN:
            out.append(node.name)
        else:
            out.append(tag[0])
            if not raw:
                left[one_line(tag[0], _SHOWN)] = None
    rendered = "".join([*out, text[end:]])
    known = ", ".join(f"ds.meta_data.{name}" for name in _NAMES)
    return rendered, [f"Jinja: {shown} was left as it is; in a container only {known} are known." for shown in left]


def _plain(expression: str) -> str:
    """`ds.meta_data["local_hostname"]` and the same with dots are one."""
    return _SUBSCRIPT.sub(lambda match: f".{match[1] or match[2]}", expression).strip()
