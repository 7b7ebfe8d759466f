"""ConversionReview: what an API server asks of a conversion webhook, and the answer. Pure but for the look-up of apiVersions.

Wire: `apiextensions.k8s.io/v1` ConversionReview with `request.objects` in, with `response.convertedObjects` out, in order.
Source: kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning.
"""

from typing import Any

from capi.admission.convert.kinds import convert
from capi.admission.convert.values import ApiVersions
from capi.kube.errors import ApiError, BadRequest
from capi.kube.types import Object

API_VERSION = "apiextensions.k8s.io/v1"


def convert_review(body: Object, versions: ApiVersions) -> Object:
    """All objects, or a failure that says which cannot be converted. Raises BadRequest for what is no ConversionReview."""
    request = body.get("request")
    if body.get("apiVersion") != API_VERSION or body.get("kind") != "ConversionReview" or not isinstance(request, dict):
        raise BadRequest(f"the body must be a ConversionReview of {API_VERSION} with a request")
    wanted = str(request.get("desiredAPIVersion") or "")
    given = request.get("objects") or []
    if not isinstance(given, list) or not all(isinstance(obj, dict) for obj in given):
        raise BadRequest("request.objects must be a list of objects")
    try:
        objects = [convert(obj, wanted, versions) for obj in given]
    except ApiError as error:
        return _answer(request, result={"status": "Failure", "message": error.message})
    return _answer(request, convertedObjects=objects, result={"status": "Success"})


def _answer(request: Object, **response: Any) -> Object:
    body = {"uid": request.get("uid") or "", **response}
    return {"apiVersion": API_VERSION, "kind": "ConversionReview", "response": body}
