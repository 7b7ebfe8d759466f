"""The configuration of the load balancer in front of a cluster's API servers: pure.

HAProxy forwards TCP from the port of the cluster's endpoint to port 6443 of every control plane container whose /healthz
answers. Who has another idea of it gives a template of his own, in the language of `gotemplate`.

Upstream: test/infrastructure/docker/internal/loadbalancer. Differs: 4096 connections instead of 100000; messages go to
the log of the container, not to a /dev/log that it does not have; no name resolution, since a server's address is an IP
address or is refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from capi.backends.docker.gotemplate.evaluating import render as render_template
from capi.backends.docker.gotemplate.functions import BadCall, exactly
from capi.backends.docker.gotemplate.values import Struct, TemplateError, Value, kind
from capi.backends.port import Balanced
from capi.kube.errors import BackendError

BACKEND_PORT = "6443"
"""Where the API server of every control plane container listens."""
STATS_PORT = 8404
MAX_WEIGHT = 256
"""HAProxy's own limit; 0 sends no new connection to a server."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,253}")

# A connection takes two descriptors, one to the client and one to the server, and HAProxy neither starts nor reloads when
# its maxconn needs more than the process may open. On some hosts that is 20000; 4096 connections need 8224.
DEFAULT_TEMPLATE = """\
global
  log stdout format raw local0 notice
  maxconn 4096

defaults
  log global
  mode tcp
  option dontlognull
  timeout connect 5s
  timeout client 50s
  timeout server 50s
{{- /* The statistics give way to an endpoint on their port. */}}
{{- if ne .FrontendControlPlanePort "8404"}}

frontend stats
  mode http
  bind *:8404
  {{- if .IPv6}}
  bind :::8404 v6only
  {{- end}}
  stats enable
  stats uri /stats
  stats refresh 1s
  stats admin if TRUE
{{- end}}

frontend control-plane
  bind *:{{.FrontendControlPlanePort}}
  {{- if .IPv6}}
  bind :::{{.FrontendControlPlanePort}} v6only
  {{- end}}
  default_backend kube-apiservers

backend kube-apiservers
  option httpchk GET /healthz
  {{- range $name, $server := .BackendServers}}
  server {{$name}} {{JoinHostPort $server.Address $.BackendControlPlanePort}} weight {{$server.Weight}} check check-ssl verify none
  {{- end}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontend:
    """What the load balancer of a cluster is to do."""

    port: int
    """Of the cluster's endpoint; the servers listen on 6443 whatever it is."""
    ipv6: bool = False
    """Listen on IPv6 too."""
    servers: tuple[Balanced, ...] = ()


class BadTemplate(BackendError):
    """The template of the load balancer cannot be used; mend the ConfigMap, or take away its reference."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="InvalidLoadBalancerTemplate")


class BadServer(BackendError):
    """The load balancer cannot have such a server or port; this is not the template's fault."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, reason="InvalidLoadBalancerServer")


def render(frontend: Frontend, template: str = "") -> str:
    """The configuration file; `template` is a custom one, "" the default one.

    Equal for equal arguments, in whatever order the servers come. Raises BadTemplate, which names the line and what is
    not understood in it, and BadServer.
    """
    variables = template_variables(frontend)
    try:
        text = render_template(template or DEFAULT_TEMPLATE, variables, {"JoinHostPort": join_host_port})
    except TemplateError as error:
        raise BadTemplate(f"load balancer template: {error}") from error
    if not text.strip():
        raise BadTemplate("load balancer template: it makes an empty configuration, with which HAProxy does not start")
    # HAProxy takes a last line without an end for a file that was cut off.
    return text if text.endswith("\n") else text + "\n"


def template_variables(frontend: Frontend) -> Struct:
    """What a template can ask for, with upstream's names. Raises BadServer."""
    _check(1 <= frontend.port <= 65535, f"port {frontend.port} of the endpoint is not between 1 and 65535")
    return Struct(
        {
            "FrontendControlPlanePort": str(frontend.port),
            "BackendControlPlanePort": BACKEND_PORT,
            "BackendServers": _servers(frontend.servers),
            "IPv6": frontend.ipv6,
        }
    )


def join_host_port(arguments: Sequence[Value]) -> Value:
    """`host:port`, with brackets around an IPv6 address. Raises BadCall."""
    for argument in exactly(2, arguments):
        if not isinstance(argument, str):
            raise BadCall(f'takes texts, not {kind(argument)}; (printf "%d" …) makes a text of a number')
    host, port = arguments
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def _servers(servers: Sequence[Balanced]) -> dict[str, Value]:
    """By name; a template goes through them in the order of the names."""
    found: dict[str, Value] = {}
    for server in servers:
        where = f"server {server.name!r} of the load balancer"
        _check(_NAME.fullmatch(server.name) is not None, f"{where}: this is not the name of a container")
        _check(server.name not in found, f"{where} is there twice")
        _check(
            _is_address(server.address), f"{where}: its address {server.address!r} is not an IP address; is it running?"
        )
        _check(
            0 <= server.weight <= MAX_WEIGHT, f"{where}: its weight {server.weight} is not between 0 and {MAX_WEIGHT}"
        )
        found[server.name] = Struct({"Address": server.address, "Weight": server.weight})
    return found


def _is_address(text: str) -> bool:
    """Whether it is an IP address that means the same everywhere: one with a zone does not."""
    try:
        return "%" not in text and bool(ip_address(text))
    except ValueError:
        return False


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise BadServer(message)
