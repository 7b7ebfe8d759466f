"""What a Kubernetes cluster needs to run the controllers: CRDs, namespace, RBAC, policies, webhooks, Deployment.

The policies (ValidatingAdmissionPolicy, Kubernetes 1.30) refuse what the embedded server's admission refuses and a CRD
cannot: kinds that nothing acts on yet.
"""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from capi.admission.kinds import KINDS
from capi.admission.webhooks import Endpoint, configurations
from capi.api import crds
from capi.api.core import labels
from capi.kube import yaml
from capi.kube.types import GroupKind, Object

NAME = "capi-manager"
HEALTH_PORT = 9440
WEBHOOK_PORT = 9443
_LABELS: Object = {labels.PROVIDER: labels.PROVIDER_CORE, "app.kubernetes.io/name": "capi"}
_ALL = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_READ = ["get", "list", "watch"]

# What each rule is for: provider objects and our own kinds; their CRDs' contract labels, and our own CRDs' conversion;
# whom to call for admission; kubeconfigs and certificates; events about what happens; the namespace of the lease; and a place for what other providers' roles add.
RULES: Sequence[Object] = (
    {
        "apiGroups": [
            "cluster.x-k8s.io",
            "bootstrap.cluster.x-k8s.io",
            "controlplane.cluster.x-k8s.io",
            "infrastructure.cluster.x-k8s.io",
        ],
        "resources": ["*"],
        "verbs": _ALL,
    },
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": [*_READ, "patch"]},
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "verbs": [*_READ, "create", "patch"],
    },
    {"apiGroups": [""], "resources": ["secrets"], "verbs": _ALL},
    {"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": _READ},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
)


def render(only: str = "all", *, namespace: str = "capi-system", image: str | None = None) -> str:
    """The manifests as one YAML stream; `only` is all, crds or rbac."""
    definitions = crds.all() if only != "rbac" else []
    access = rbac(namespace) if only != "crds" else []
    hooks = [service(namespace), *configurations(Endpoint(namespace=namespace), _LABELS)]
    rest = [*policies(), *hooks, deployment(namespace, image)] if only == "all" else []
    chosen = [*definitions, *access, *rest]
    return "---\n".join(yaml.dump(document) for document in chosen)


def rbac(namespace: str) -> list[Object]:
    """Namespace, service account and what it may do."""
    metadata: Object = {"name": NAME, "labels": _LABELS}
    here: Object = {**metadata, "namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    aggregate: Object = {**metadata, "name": f"{NAME}-aggregated"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": _LABELS}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": list(RULES)},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": aggregate,
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {labels.AGGREGATE_TO_MANAGER: "true"}}]},
            "rules": [],
        },
        *(
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": role, "labels": _LABELS},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [subject],
            }
            for role in (NAME, aggregate["name"])
        ),
        {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": {**here, "name": f"{NAME}-lease"},
            "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": _ALL}],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {**here, "name": f"{NAME}-lease"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": f"{NAME}-lease"},
            "subjects": [subject],
        },
    ]


def policies() -> list[Object]:
    """Refusals with a sentence, for API servers without this project's admission."""
    out: list[Object] = []
    for crd in crds.all():
        names, group = crd["spec"]["names"], crd["spec"]["group"]
        rules = KINDS.get(GroupKind(group, names["kind"]))
        if rules is not None and rules.refused:
            out += _policy(f"capi-no-{names['plural']}", group, [names["plural"]], ["CREATE"], "false", rules.refused)
    return out


def _policy(
    name: str, group: str, resources: list[str], operations: list[str], expression: str, message: str
) -> list[Object]:
    """A policy that refuses what does not fulfil the expression, and its binding."""
    version = "admissionregistration.k8s.io/v1"
    metadata = {"name": name, "labels": _LABELS}
    rule = {"apiGroups": [group], "apiVersions": ["*"], "resources": resources, "operations": operations}
    validation = {"expression": expression, "message": message, "reason": "Forbidden"}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [validation],
    }
    return [
        {"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec},
        {
            "apiVersion": version,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]


def deployment(namespace: str, image: str | None = None) -> Object:
    """One replica of `capi manager`, unprivileged; a second one would wait for the lease."""
    select = {"app.kubernetes.io/name": "capi"}
    container = {
        "name": "manager",
        "image": image or default_image(),
        "args": [
            "manager",
            f"--lease-namespace={namespace}",
            "--health-host=0.0.0.0",
            f"--health-port={HEALTH_PORT}",
            "--workload-host=$(POD_IP)",
            f"--webhook-port={WEBHOOK_PORT}",
            f"--webhook-namespace={namespace}",
        ],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [
            {"name": "health", "containerPort": HEALTH_PORT},
            {"name": "webhook", "containerPort": WEBHOOK_PORT},
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    pod = {
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": 10,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "labels": _LABELS},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": select},
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        },
    }


def service(namespace: str) -> Object:
    """Where API servers find the webhooks."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": Endpoint().service, "namespace": namespace, "labels": _LABELS},
        "spec": {
            "selector": {"app.kubernetes.io/name": "capi"},
            "ports": [{"name": "webhook", "port": 443, "targetPort": "webhook"}],
        },
    }


def default_image() -> str:
    """`capi:VERSION`."""
    try:
        return f"capi:{version('capi')}"
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "capi:latest"
