"""Standard output and error in locales without our signs: trees and bars are drawn in ASCII then."""

import codecs
import io
from typing import TextIO

_PLAIN = str.maketrans("├└│─━╸╺•✓…·", "|`|-=--*+.-")


def speak_plainly(*outputs: TextIO) -> None:
    """Writing never fails for a sign that the locale does not have."""
    codecs.register_error("capi-plain", _plain)
    for output in outputs:
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="capi-plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """One sign for each that cannot be written, so that columns stay columns."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return "".join(sign if sign.isascii() else "?" for sign in text), error.end
