"""The contents of files, decoded to the last layer.

Upstream: cloudinit/writefiles.go, fixContent, which undoes only base64 of gz+b64.
"""

import base64
import binascii
import zlib
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from capi.backends.docker.bootstrap.model import InvalidBootstrapData

GZIP_MAGIC = b"\x1f\x8b"
MAX_BYTES = 32 * 1024 * 1024
"""Of one file. A Secret holds at most 1 MiB, which gzip can blow up to 1 GiB."""
_GZIP = 31
"""zlib's window bits for gzip: header and checksum are checked."""


def decode(content: bytes, encoding: str, where: str) -> bytes:
    """`content` of cloud-init's `encoding`; "" is plain. Raises InvalidBootstrapData naming `where`."""
    layers = _ENCODINGS.get(encoding.strip().lower())
    if layers is None:
        known = ", ".join(sorted(name for name in _ENCODINGS if name))
        raise InvalidBootstrapData(f'{where}.encoding: "{encoding}" is not known; it is one of {known}')
    for layer in layers:
        content = layer(content, f"{where}.content")
    return content


def unbase64(content: bytes, where: str) -> bytes:
    """Line breaks and blanks are skipped; everything else that is not base64 is refused."""
    try:
        return base64.b64decode(b"".join(content.split()), validate=True)
    except binascii.Error as error:
        raise InvalidBootstrapData(f"{where} is not base64: {error}; encode it, or take the encoding away") from error


def gunzip(content: bytes, where: str) -> bytes:
    """All members of a gzip stream."""
    out = bytearray()
    while content:
        member = zlib.decompressobj(_GZIP)
        try:
            out += member.decompress(content, MAX_BYTES - len(out) + 1)
        except zlib.error as error:
            raise InvalidBootstrapData(
                f"{where} is not gzip: {error}; compress it, or take the encoding away"
            ) from error
        if len(out) > MAX_BYTES:
            raise InvalidBootstrapData(
                f"{where} is larger than {MAX_BYTES >> 20} MiB when unpacked; put it into the image"
            )
        if not member.eof:
            raise InvalidBootstrapData(f"{where} ends in the middle of its gzip stream; compress it again")
        content = member.unused_data.lstrip(b"\0")  # padding, as gzip(1) takes it
    return bytes(out)


def data_url(url: str, where: str) -> bytes:
    """What a data URL holds (RFC 2397). Raises InvalidBootstrapData for other URLs: nothing is fetched."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() != "data":
        raise InvalidBootstrapData(f"{where}: {scheme}: URLs are not fetched; put the content inline, as a data: URL")
    header, comma, payload = rest.partition(",")
    if not comma:
        raise InvalidBootstrapData(f"{where} is no data URL: it has no comma; write data:,TEXT or data:;base64,BASE64")
    content = unquote_to_bytes(payload)
    return unbase64(content, where) if header.lower().endswith(";base64") else content


_Layer = Callable[[bytes, str], bytes]
_ENCODINGS: dict[str, tuple[_Layer, ...]] = {
    **dict.fromkeys(("", "text/plain"), ()),
    **dict.fromkeys(("b64", "base64"), (unbase64,)),
    **dict.fromkeys(("gz", "gzip"), (gunzip,)),
    **{f"{gz}+{b64}": (unbase64, gunzip) for gz in ("gz", "gzip") for b64 in ("b64", "base64")},
}
