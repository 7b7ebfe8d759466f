"""Defaults and rules that the schemas of the CRDs cannot express. Pure functions over parsed JSON, and the plug-in that
lets the embedded server call them."""

from capi.admission.plugin import ClusterApiAdmission

__all__ = ["ClusterApiAdmission"]
