"""Content negotiation: which representation an Accept header asks for, and which media type a body has.

Source: apiserver pkg/endpoints/handlers/negotiation; KEP "server-side get and partial objects".
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from capi.kube.errors import NotAcceptable

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
As = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

_AS: tuple[As, ...] = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_ANY = ("", "*/*", "application/*")
DISCOVERY = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class Format:
    """How to show the answer. `as_` "" is the object itself."""

    media: str = JSON
    as_: As = ""


@dataclass(frozen=True, slots=True)
class _Range:
    media: str
    parameters: dict[str, str]
    quality: float


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Format | None:
    """The first entry of `accept` (by q, then order) that can be served; None if there is none."""
    for wanted in _ranges(accept):
        if (form := _resource_form(wanted)) is not None:
            return form
    return None


def choose(accept: str, verb: str) -> Format:
    """`negotiate`, and whether the form fits a list, a watch or one object. Raises NotAcceptable."""
    form = negotiate(accept)
    watching = verb == "watch"
    if form is None or (watching and form.media != JSON):
        suffix = ";stream=watch" if watching else ""
        types = (JSON,) if watching else (JSON, YAML)
        raise NotAcceptable(f"only the following media types are accepted: {', '.join(t + suffix for t in types)}")
    if verb == "list" and form.as_ == "PartialObjectMetadata":
        raise NotAcceptable("you requested PartialObjectMetadata, but the requested object is a list")
    if verb != "list" and form.as_ == "PartialObjectMetadataList":
        raise NotAcceptable("you requested PartialObjectMetadataList, but the requested object is not a list")
    return form


@lru_cache(maxsize=256)
def wants_aggregated(accept: str) -> bool | None:
    """For /api and /apis: True = aggregated discovery v2, False = the legacy document, None = neither can be served."""
    for wanted in _ranges(accept):
        if wanted.media not in (JSON, *_ANY):
            continue
        as_ = wanted.parameters.get("as", "")
        if not as_:
            return False
        if (
            as_ == "APIGroupDiscoveryList"
            and wanted.parameters.get("v") == "v2"
            and wanted.parameters.get("g") == "apidiscovery.k8s.io"
        ):
            return True
    return None


def accepts_json(accept: str) -> bool:
    """Whether plain JSON will do."""
    return any(wanted.media in (JSON, *_ANY) and "as" not in wanted.parameters for wanted in _ranges(accept))


@lru_cache(maxsize=256)
def media_type(content_type: str) -> str:
    """The bare media type of a body; no Content-Type means JSON."""
    return content_type.partition(";")[0].strip().lower() or JSON


def _resource_form(wanted: _Range) -> Format | None:
    media = JSON if wanted.media in _ANY else {YAML: YAML, "application/x-yaml": YAML, JSON: JSON}.get(wanted.media)
    if media is None:
        return None
    as_ = wanted.parameters.get("as", "")
    if not as_:
        return Format(media)
    if wanted.parameters.get("g") == "meta.k8s.io" and wanted.parameters.get("v") in ("v1", "v1beta1"):
        return next((Format(media, known) for known in _AS if known == as_), None)
    return None


def _ranges(accept: str) -> list[_Range]:
    ranges = [_range(text) for text in accept.split(",") if text.strip()] or [_Range("*/*", {}, 1.0)]
    return sorted((r for r in ranges if r.quality > 0), key=lambda r: -r.quality)


def _range(text: str) -> _Range:
    media, *rest = (part.strip() for part in text.split(";"))
    parameters = {
        key.strip().lower(): value.strip().strip('"') for key, _, value in (part.partition("=") for part in rest)
    }
    try:
        quality = float(parameters.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return _Range(media.lower(), parameters, quality)
