"""Conversion between v1beta2, which is stored, and v1beta1, which is served for older clients."""

from capi.admission.convert.defaults import default_old
from capi.admission.convert.kinds import convert, converts, hub_of, is_old, old_of
from capi.admission.convert.review import convert_review
from capi.admission.convert.values import ApiVersions, by_group

__all__ = [
    "ApiVersions",
    "by_group",
    "convert",
    "convert_review",
    "converts",
    "default_old",
    "hub_of",
    "is_old",
    "old_of",
]
