"""The value of a bootstrap Secret, by its format.

Upstream: test/infrastructure/docker/internal/provisioning.
Ours: data that is compressed as a whole; what is no cloud-config at all (scripts, MIME archives) is refused by name.
"""

from dataclasses import replace

import capi.backends.docker.bootstrap.cloudinit as cloudinit
import capi.backends.docker.bootstrap.ignition as ignition
from capi.backends.docker.bootstrap.encodings import GZIP_MAGIC, gunzip
from capi.backends.docker.bootstrap.model import Bootstrap, InvalidBootstrapData, NodeFacts
from capi.backends.docker.bootstrap.text import one_line

CLOUD_CONFIG = "cloud-config"
IGNITION = "ignition"
MAX_WARNINGS = 20
WARNING_LENGTH = 300


def parse(data: bytes, format_: str, node: NodeFacts) -> Bootstrap:
    """The steps that `data` asks for on `node`. `format_` is cloud-config ("" means the same) or ignition.

    Raises InvalidBootstrapData, which says what is wrong, where, and what would be right.
    """
    if format_ not in ("", CLOUD_CONFIG, IGNITION):
        raise InvalidBootstrapData(
            f'the bootstrap format "{format_}" is not supported by containers; set format to {CLOUD_CONFIG} or {IGNITION}'
        )
    text = _text(data)
    if not text.strip():
        raise InvalidBootstrapData("the bootstrap data is empty; the key `value` of the bootstrap Secret must hold it")
    bootstrap = ignition.parse(text, node) if format_ == IGNITION else cloudinit.parse(text, node)
    return replace(bootstrap, warnings=_few(bootstrap.warnings))


def _few(warnings: tuple[str, ...]) -> tuple[str, ...]:
    shown = tuple(one_line(warning, WARNING_LENGTH) for warning in warnings[:MAX_WARNINGS])
    more = len(warnings) - len(shown)
    return (*shown, f"There are {more} more parts of the bootstrap data that were left out.") if more else shown


def _text(data: bytes) -> str:
    if data.startswith(GZIP_MAGIC):
        data = gunzip(data, "the bootstrap data")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidBootstrapData(
            f"the bootstrap data is not UTF-8 at byte {error.start}; binary files go into it as base64"
        ) from error
