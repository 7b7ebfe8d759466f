"""RBAC kinds and webhook configurations.

Source: pkg/apis/rbac/{v1/defaults.go,validation}, pkg/apis/admissionregistration/{v1/defaults.go,validation} of Kubernetes.
"""

from collections.abc import Callable, Iterator

from capi.kube import validation
from capi.kube.errors import Cause
from capi.kube.types import Object
from capi.server.registry.builtin.fields import at, elements, section, thawed
from capi.server.registry.schema import causes

_GROUP = "rbac.authorization.k8s.io"


def role_default(obj: Object) -> Object:
    return obj if "rules" in obj else {**obj, "rules": None}


def role_validate(obj: Object, old: Object | None) -> list[Cause]:
    return [cause for index, rule in enumerate(elements(obj, "rules")) for cause in _rule(rule, f"rules[{index}]", obj)]


def _rule(rule: Object, path: str, obj: Object) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield causes.required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if obj.get("kind") == "Role":
            text = "namespaced rules cannot apply to non-resource URLs"
            yield causes.invalid(f"{path}.nonResourceURLs", urls, text)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            yield causes.invalid(f"{path}.nonResourceURLs", urls, text)
        return
    if not rule.get("apiGroups"):
        yield causes.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield causes.required(f"{path}.resources", "resource rules must supply at least one resource")


def binding_default(obj: Object) -> Object:
    copy = thawed(obj)
    ref = copy.setdefault("roleRef", {})
    ref["apiGroup"] = ref.get("apiGroup") or _GROUP
    for subject in elements(copy, "subjects"):
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = _GROUP
    return copy


def binding_validate(obj: Object, old: Object | None) -> list[Cause]:
    ref, found = section(obj, "roleRef"), list[Cause]()
    kinds = ("ClusterRole",) if obj.get("kind") == "ClusterRoleBinding" else ("ClusterRole", "Role")
    if ref.get("apiGroup") != _GROUP:
        found.append(causes.not_supported("roleRef.apiGroup", ref.get("apiGroup"), (_GROUP,)))
    if ref.get("kind") not in kinds:
        found.append(causes.not_supported("roleRef.kind", ref.get("kind") or "", kinds))
    if not ref.get("name"):
        found.append(causes.required("roleRef.name"))
    for index, subject in enumerate(elements(obj, "subjects")):
        path = f"subjects[{index}]"
        if not subject.get("name"):
            found.append(causes.required(f"{path}.name"))
        if subject.get("kind") not in ("User", "Group", "ServiceAccount"):
            supported = ("ServiceAccount", "User", "Group")
            found.append(causes.not_supported(f"{path}.kind", subject.get("kind") or "", supported))
        if subject.get("kind") == "ServiceAccount" and not (
            subject.get("namespace") or obj.get("kind") == "RoleBinding"
        ):
            found.append(causes.required(f"{path}.namespace"))
    if old is not None:
        found += causes.immutable("roleRef", ref, section(old, "roleRef"), "cannot change roleRef")
    return found


def webhooks_default(mutating: bool) -> Callable[[Object], Object]:
    """The defaulting function of a webhook configuration."""

    def fill(obj: Object) -> Object:
        copy = thawed(obj)
        for hook in elements(copy, "webhooks"):
            defaults: Object = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}
            defaults |= {"namespaceSelector": {}, "objectSelector": {}}
            defaults |= {"reinvocationPolicy": "Never"} if mutating else {}
            for name, value in defaults.items():
                if hook.get(name) is None:
                    hook[name] = value
            for rule in elements(hook, "rules"):
                rule["scope"] = rule.get("scope") or "*"
            if isinstance(service := at(hook, "clientConfig", "service"), dict):
                service.setdefault("port", 443)
        return copy

    return fill


def webhooks_validate(obj: Object, old: Object | None) -> list[Cause]:
    return [c for index, hook in enumerate(elements(obj, "webhooks")) for c in _hook(hook, f"webhooks[{index}]")]


def _hook(hook: Object, path: str) -> Iterator[Cause]:
    name = str(hook.get("name") or "")
    if not name:
        yield causes.required(f"{path}.name")
    elif validation.dns_subdomain(name) or name.count(".") < 2:
        yield causes.invalid(f"{path}.name", name, "should be a domain with at least three segments separated by dots")
    effects = ("None", "NoneOnDryRun")
    if not hook.get("sideEffects"):
        yield causes.required(f"{path}.sideEffects", f"must specify one of {', '.join(effects)}")
    elif hook["sideEffects"] not in effects:
        yield causes.not_supported(f"{path}.sideEffects", hook["sideEffects"], effects)
    versions = hook.get("admissionReviewVersions") or []
    if not versions:
        yield causes.required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1")
    elif not {"v1", "v1beta1"} & set(versions):
        yield causes.invalid(f"{path}.admissionReviewVersions", versions, "must include at least one of v1, v1beta1")
    client = section(hook, "clientConfig")
    if bool(client.get("url")) == bool(client.get("service")):
        yield causes.required(f"{path}.clientConfig", "exactly one of url or service is required")
    elif (url := client.get("url")) and not str(url).startswith("https://"):
        text = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        yield causes.invalid(f"{path}.clientConfig.url", url, text)
    if not 1 <= int(hook.get("timeoutSeconds") or 10) <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        yield causes.invalid(f"{path}.timeoutSeconds", hook["timeoutSeconds"], text)
