"""HAProxy's configuration. Stand-in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    address: str
    weight: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontend:
    port: int
    ipv6: bool = False
    servers: tuple[Server, ...] = ()


def render(frontend: Frontend, template: str = "") -> str:
    servers = "\n".join(
        f"  server {s.name} {s.address}:6443 weight {s.weight} check check-ssl verify none" for s in frontend.servers
    )
    return f"""global
  maxconn 4096
defaults
  mode tcp
  timeout connect 5s
  timeout client 50s
  timeout server 50s
  default-server init-addr none
frontend stats
  mode http
  bind *:8404
  stats enable
  stats uri /stats
frontend control-plane
  bind *:{frontend.port}
  default_backend kube-apiservers
backend kube-apiservers
  option httpchk GET /healthz
{servers}
"""
