"""Loading kubeconfig files, with the rules of kubectl: several files are merged, the first to say something wins.

Search order: the path given; $KUBECONFIG (a list of files); ~/.kube/config; the service account of the pod.
Relative paths in a file are relative to that file. Messages name the file and the field.
Source: client-go tools/clientcmd; kubernetes.io, "Organizing Cluster Access Using kubeconfig Files".
"""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capi.client.config import ClusterConfig, ExecPlugin
from capi.kube import yaml
from capi.kube.errors import BadRequest, CapiError
from capi.kube.types import Object

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class KubeconfigError(CapiError):
    """The kubeconfig cannot be used; mend the field that the message names."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A mapping in a kubeconfig file, with its address."""

    file: Path
    path: str
    fields: Object

    def fail(self, name: str, problem: str) -> KubeconfigError:
        where = ".".join(part for part in (self.path, name) if part)
        return KubeconfigError(f"{self.file}: {where}: {problem}" if where else f"{self.file}: {problem}")

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.fail(name, f"must be a string, found {type(value).__name__}; put it in quotes")
        return value

    def flag(self, name: str) -> bool:
        value = self.fields.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.fail(name, "must be true or false")
        return bool(value)

    def part(self, name: str) -> "_Part | None":
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.fail(name, "must be a mapping")
        return _Part(self.file, f"{self.path}.{name}" if self.path else name, value)

    def items(self, name: str) -> Sequence[Any]:
        value = self.fields.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.fail(name, "must be a list")
        return value

    def resolve(self, text: str) -> Path:
        """A path in this file."""
        return (self.file.parent / Path(text).expanduser()).absolute()

    def data(self, name: str) -> bytes | None:
        """Bytes given inline as base64 in `<name>-data`, or in the file that `<name>` names."""
        inline = self.text(f"{name}-data")
        if inline:
            try:
                return base64.b64decode(inline, validate=True)
            except binascii.Error as error:
                raise self.fail(f"{name}-data", f"is not base64: {error}") from error
        named = self.text(name)
        if not named:
            return None
        try:
            return self.resolve(named).read_bytes()
        except OSError as error:
            raise self.fail(name, f"{self.resolve(named)}: {error.strerror}") from error


def load(path: Path | None = None, context: str | None = None) -> ClusterConfig:
    """The configuration of a context (None: the current one). Raises KubeconfigError."""
    if path is not None:
        return _resolve([_read(path)], context)
    listed = [Path(item).expanduser() for item in os.environ.get("KUBECONFIG", "").split(os.pathsep) if item]
    files = [item for item in listed if item.exists()]
    if listed and not files:
        raise KubeconfigError(f"no file of $KUBECONFIG exists: {os.environ['KUBECONFIG']}")
    usual = Path.home() / ".kube" / "config"
    if not listed and usual.exists():
        files = [usual]
    if files:
        return _resolve([_read(file) for file in files], context)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    raise KubeconfigError(f"there is no kubeconfig: give one, set $KUBECONFIG, or put one at {usual}")


def parse(
    data: bytes, source: str = "kubeconfig", context: str | None = None, *, trusted: bool = False
) -> ClusterConfig:
    """The configuration in a document, such as a workload cluster's Secret.

    Unless `trusted`, it may neither run programs nor read files of this machine.
    """
    document = _document(Path(source), data)
    if not trusted:
        _refuse_local(document)
    return _resolve([document], context)


def in_cluster(folder: Path = SERVICE_ACCOUNT, env: Mapping[str, str] = os.environ) -> ClusterConfig:
    """The API server of the pod this process runs in, as its service account."""
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise KubeconfigError("not in a pod: $KUBERNETES_SERVICE_HOST is not set")
    try:
        ca = (folder / "ca.crt").read_bytes()
        (folder / "token").read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{error.filename}: {error.strerror}; does the pod mount its service account?") from error
    space = folder / "namespace"
    return ClusterConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca=ca,
        token_file=folder / "token",
        namespace=space.read_text().strip() if space.exists() else "",
        context="in-cluster",
        source=str(folder),
    )


def _read(path: Path) -> _Part:
    path = path.expanduser().absolute()
    try:
        return _document(path, path.read_bytes())
    except OSError as error:
        raise KubeconfigError(f"kubeconfig {path}: {error.strerror}") from error


def _document(path: Path, data: bytes) -> _Part:
    try:
        document = yaml.load(data)
    except BadRequest as error:
        raise KubeconfigError(f"{path}: {error.message}") from error
    if not isinstance(document, dict):
        raise KubeconfigError(f"{path}: is not a kubeconfig: expected a mapping with clusters, users and contexts")
    if document.get("kind", "Config") != "Config":
        raise KubeconfigError(f"{path}: kind: must be Config, found {document['kind']!r}")
    return _Part(path, "", document)


def _resolve(documents: Sequence[_Part], name: str | None) -> ClusterConfig:
    first = documents[0]
    if not name:
        name = next((current for part in documents if (current := part.text("current-context"))), "")
        if not name:
            known = ", ".join(_names(documents, "contexts")) or "none"
            raise first.fail("current-context", f"is not set; choose a context (there are: {known})")
        referrer = "current-context"
    else:
        referrer = "--context"
    context = _entry(documents, "contexts", "context", name, referrer)
    cluster_name, user_name = context.text("cluster"), context.text("user")
    if not cluster_name:
        raise context.fail("cluster", "is not set")
    cluster = _entry(documents, "clusters", "cluster", cluster_name, f"{context.path}.cluster")
    user = _Part(context.file, "users", {})
    if user_name:
        user = _entry(documents, "users", "user", user_name, f"{context.path}.user")
    return _config(name, context, cluster, user)


def _names(documents: Sequence[_Part], section: str) -> list[str]:
    return [str(item.get("name")) for part in documents for item in part.items(section) if isinstance(item, dict)]


def _entry(documents: Sequence[_Part], section: str, member: str, name: str, referrer: str) -> _Part:
    """The first entry of that name in all files."""
    for document in documents:
        for number, item in enumerate(document.items(section)):
            if not isinstance(item, dict):
                raise document.fail(f"{section}[{number}]", "must be a mapping")
            if item.get("name") == name:
                body = item.get(member)
                if not isinstance(body, dict):
                    raise document.fail(f"{section}[{number}].{member}", "must be a mapping")
                return _Part(document.file, f"{section}[{number}].{member}", body)
    known = ", ".join(_names(documents, section)) or "none"
    raise documents[0].fail(referrer, f"there is no entry {name!r} in {section} (there are: {known})")


def _config(name: str, context: _Part, cluster: _Part, user: _Part) -> ClusterConfig:
    server = cluster.text("server").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise cluster.fail("server", f"must be an http or https URL, found {server!r}")
    if cluster.text("proxy-url"):
        raise cluster.fail("proxy-url", "proxies are not supported yet")
    if user.fields.get("auth-provider"):
        raise user.fail("auth-provider", "was removed from Kubernetes; use exec")
    insecure, ca = cluster.flag("insecure-skip-tls-verify"), cluster.data("certificate-authority")
    if insecure and ca:
        raise cluster.fail("insecure-skip-tls-verify", "makes no sense together with a certificate authority")
    certificate, key = user.data("client-certificate"), user.data("client-key")
    if (certificate is None) != (key is None):
        missing = "client-certificate" if certificate is None else "client-key"
        raise user.fail(missing, "is missing: a client certificate needs its key, and the other way round")
    token_file = user.text("tokenFile")
    return ClusterConfig(
        server=server,
        ca=ca,
        tls_server_name=cluster.text("tls-server-name"),
        insecure=insecure,
        certificate=certificate,
        key=key,
        token=user.text("token"),
        token_file=user.resolve(token_file) if token_file else None,
        username=user.text("username"),
        password=user.text("password"),
        plugin=_plugin(user),
        impersonate=user.text("as"),
        impersonate_groups=tuple(str(group) for group in user.items("as-groups")),
        namespace=context.text("namespace"),
        context=name,
        source=str(cluster.file),
    )


def _plugin(user: _Part) -> ExecPlugin | None:
    part = user.part("exec")
    if part is None:
        return None
    version = part.text("apiVersion")
    if version not in EXEC_VERSIONS:
        raise part.fail("apiVersion", f"must be one of {', '.join(EXEC_VERSIONS)}, found {version!r}")
    command = part.text("command")
    if not command:
        raise part.fail("command", "is not set")
    if part.text("interactiveMode") == "Always":
        raise part.fail("interactiveMode", "Always needs a terminal, which a controller does not have")
    env = {}
    for number, item in enumerate(part.items("env")):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise part.fail(f"env[{number}].name", "must be a string")
        env[item["name"]] = str(item.get("value", ""))
    return ExecPlugin(
        command=str(part.resolve(command)) if os.sep in command else command,
        args=tuple(str(argument) for argument in part.items("args")),
        env=env,
        api_version=version,
        install_hint=part.text("installHint"),
        provide_cluster_info=part.flag("provideClusterInfo"),
        where=f"{part.file}: {part.path}",
    )


def _refuse_local(document: _Part) -> None:
    """Refuse what would reach out to this machine's programs and files."""
    for section, member, names in (
        ("users", "user", ("exec", "tokenFile", "client-certificate", "client-key")),
        ("clusters", "cluster", ("certificate-authority",)),
    ):
        for number, item in enumerate(document.items(section)):
            body = item.get(member) if isinstance(item, dict) else None
            for name in names:
                if isinstance(body, dict) and body.get(name):
                    raise document.fail(
                        f"{section}[{number}].{member}.{name}",
                        "is not allowed here: the kubeconfig must hold its credentials itself",
                    )
