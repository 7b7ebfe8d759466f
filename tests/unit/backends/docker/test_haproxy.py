"""The configuration of the load balancer: cases 52 to 58 of the Docker provider, and what HAProxy itself says of it."""

import asyncio
import functools
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from capi.backends.docker.haproxy import BadServer, BadTemplate, Frontend, render
from capi.backends.port import Balanced

V4 = (Balanced("c1-cp-b", "172.18.0.3"), Balanced("c1-cp-a", "172.18.0.2"), Balanced("c1-cp-c", "172.18.0.4"))
V6 = tuple(Balanced(server.name, f"fc00:f853:ccd:e793::{i}") for i, server in enumerate(V4, 2))
DEADLINE = 30.0
"""Seconds; only to end a test that hangs."""

NAMES = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True)
ADDRESSES = st.ip_addresses().map(str)
SERVERS = st.lists(st.builds(Balanced, NAMES, ADDRESSES, st.integers(0, 256)), max_size=5, unique_by=lambda s: s.name)


def server_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("  server ")]


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


@pytest.fixture(scope="session")
def haproxy() -> str:
    """Path of HAProxy, or skip."""
    path = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if path is None or sys.platform != "linux":
        pytest.skip(
            "haproxy is not installed: its own check of the configuration is left out (apt-get install haproxy)"
        )
    return path


def test_the_first_server_gets_all_the_weight() -> None:
    text = render(Frontend(port=6443, servers=V4[1:2]))
    assert server_lines(text) == ["server c1-cp-a 172.18.0.2:6443 weight 100 check check-ssl verify none"]


def test_a_server_that_is_leaving_gets_no_new_connections() -> None:
    servers = (V4[0], Balanced("c1-cp-a", "172.18.0.2", 0), V4[2])
    assert [line.split()[1:5] for line in server_lines(render(Frontend(port=6443, servers=servers)))] == [
        ["c1-cp-a", "172.18.0.2:6443", "weight", "0"],
        ["c1-cp-b", "172.18.0.3:6443", "weight", "100"],
        ["c1-cp-c", "172.18.0.4:6443", "weight", "100"],
    ]


def test_the_endpoint_may_have_any_port_and_the_servers_keep_theirs() -> None:
    text = render(Frontend(port=7777, servers=V4))
    assert "bind *:7777" in lines_of(text)
    assert all(":6443 " in line for line in server_lines(text))


def test_ipv6_is_bound_too_and_its_addresses_get_brackets() -> None:
    text = render(Frontend(port=6443, ipv6=True, servers=V6))
    assert {"bind *:6443", "bind :::6443 v6only"} <= set(lines_of(text))
    assert server_lines(text)[0].startswith("server c1-cp-a [fc00:f853:ccd:e793::3]:6443 ")
    assert ":::" not in render(Frontend(port=6443, servers=V4))


def test_a_load_balancer_may_have_no_server_yet() -> None:
    text = render(Frontend(port=6443))
    assert server_lines(text) == []
    assert "default_backend kube-apiservers" in lines_of(text)


def test_the_statistics_give_way_to_an_endpoint_on_their_port() -> None:
    assert "stats uri /stats" in lines_of(render(Frontend(port=6443)))
    text = render(Frontend(port=8404))
    assert "stats" not in text
    assert lines_of(text).count("bind *:8404") == 1


def test_nothing_outside_the_container_is_needed() -> None:
    text = render(Frontend(port=6443, servers=V4))
    assert "/dev/log" not in text
    assert "127.0.0.11" not in text


@given(SERVERS, st.randoms())
def test_the_order_in_which_servers_are_found_changes_nothing(servers: list[Balanced], shuffler: random.Random) -> None:
    text = render(Frontend(port=6443, servers=tuple(servers)))
    shuffler.shuffle(servers)
    assert render(Frontend(port=6443, servers=tuple(servers))) == text
    assert [line.split()[1] for line in server_lines(text)] == sorted(server.name for server in servers)


@given(SERVERS, st.integers(1, 65535), st.booleans())
def test_every_line_is_a_line(servers: list[Balanced], port: int, ipv6: bool) -> None:
    text = render(Frontend(port=port, ipv6=ipv6, servers=tuple(servers)))
    assert text.endswith("\n")
    assert "{{" not in text
    assert text == "\n".join(line.rstrip() for line in text.split("\n"))
    assert "\n\n\n" not in text


@pytest.mark.parametrize(
    ("frontend", "message"),
    [
        pytest.param(
            Frontend(port=6443, servers=(Balanced("c1-cp-a", "invalid IP"),)),
            "server 'c1-cp-a' of the load balancer: its address 'invalid IP' is not an IP address",
            id="upstream's text for no address",
        ),
        pytest.param(Frontend(port=6443, servers=(Balanced("a", ""),)), "its address ''", id="no address"),
        pytest.param(Frontend(port=6443, servers=(Balanced("a", "c1-cp-a"),)), "its address 'c1-cp-a'", id="a name"),
        pytest.param(Frontend(port=6443, servers=(Balanced("a", "fe80::1%eth0"),)), "its address", id="a zone"),
        pytest.param(Frontend(port=6443, servers=(Balanced("a", "10.0.0.1\n"),)), "its address", id="a line break"),
        pytest.param(Frontend(port=6443, servers=(Balanced("a b", "10.0.0.1"),)), "server 'a b'", id="a blank"),
        pytest.param(Frontend(port=6443, servers=(Balanced("a\n", "10.0.0.1"),)), "not the name of", id="another line"),
        pytest.param(Frontend(port=6443, servers=(Balanced("", "10.0.0.1"),)), "not the name of", id="no name"),
        pytest.param(
            Frontend(port=6443, servers=(V4[0], V4[0])),
            "server 'c1-cp-b' of the load balancer is there twice",
            id="twice",
        ),
        pytest.param(
            Frontend(port=6443, servers=(Balanced("a", "10.0.0.1", 257),)), "its weight 257", id="too much weight"
        ),
        pytest.param(
            Frontend(port=6443, servers=(Balanced("a", "10.0.0.1", -1),)), "its weight -1", id="too little weight"
        ),
        pytest.param(Frontend(port=0), "port 0 of the endpoint is not between 1 and 65535", id="port 0"),
        pytest.param(Frontend(port=65536), "port 65536", id="port 65536"),
    ],
)
def test_what_cannot_be_a_server_is_refused_by_name(frontend: Frontend, message: str) -> None:
    with pytest.raises(BadServer) as refusal:
        render(frontend)
    assert message in refusal.value.message
    assert refusal.value.reason == "InvalidLoadBalancerServer"


def test_a_custom_template_is_used_with_upstream_s_variables() -> None:
    template = """{{- /* mine */ -}}
    listen api
      bind *:{{ .FrontendControlPlanePort }}
    {{- if $.IPv6 }} v6{{ end }}
      {{ range $server, $backend := .BackendServers }}
      server {{ $server }} {{ JoinHostPort $backend.Address $.BackendControlPlanePort }} weight {{ $backend.Weight }}
      {{- end }}"""
    assert lines_of(render(Frontend(port=7777, ipv6=True, servers=(V6[0], V4[1])), template)) == [
        "listen api",
        "bind *:7777 v6",
        "",
        "server c1-cp-a 172.18.0.2:6443 weight 100",
        "server c1-cp-b [fc00:f853:ccd:e793::2]:6443 weight 100",
    ]


def test_the_last_line_has_an_end_or_haproxy_would_take_it_for_cut_off() -> None:
    assert render(Frontend(port=6443), "global") == "global\n"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        pytest.param("global\n\n  {{ .Nonsense }}", "line 3: there is no .Nonsense; known are .FrontendControlPlanePort, "
                     ".BackendControlPlanePort, .BackendServers, .IPv6", id="a variable"),
        pytest.param("a\n{{ toYaml . }}", "line 2: there is no function toYaml; known are JoinHostPort, and, eq", id="a function"),
        pytest.param("{{ if .IPv6 }}", "line 1: {{if}} has no {{end}}", id="a block"),
        pytest.param("{{ JoinHostPort .IPv6 }}", "line 1: JoinHostPort takes 2 arguments, not 1", id="arguments"),
        pytest.param('{{ JoinHostPort "::" 6443 }}', 'line 1: JoinHostPort takes texts, not a number; (printf "%d" …)', id="a number"),
        pytest.param("{{ .BackendServers.b }}", "line 1: there is no .b; known are none", id="a server that is not there"),
        pytest.param(" \n{{ /* nothing */ }}", "line 2: '/' is not understood", id="a comment after a blank"),
        pytest.param(" \n{{/* nothing */}}", "it makes an empty configuration", id="nothing"),
        pytest.param("\n", "it makes an empty configuration", id="an empty line"),
    ],
)  # fmt: skip
def test_a_template_that_cannot_be_used_says_where_and_what(template: str, message: str) -> None:
    with pytest.raises(BadTemplate) as refusal:
        render(Frontend(port=6443), template)
    assert refusal.value.message.startswith(f"load balancer template: {message}")
    assert refusal.value.reason == "InvalidLoadBalancerTemplate"


@pytest.mark.parametrize("port", [6443, 8404])
@pytest.mark.parametrize("servers", [(), V4[:1], V4, V6[:1], V6], ids=["0", "1", "3", "1 v6", "3 v6"])
@pytest.mark.parametrize("ipv6", [False, True], ids=["v4", "v6"])
def test_haproxy_accepts_it(haproxy: str, tmp_path: Path, ipv6: bool, servers: tuple[Balanced, ...], port: int) -> None:
    file = tmp_path / "haproxy.cfg"
    file.write_text(render(Frontend(port=port, ipv6=ipv6, servers=servers)))
    checked = subprocess.run([haproxy, "-c", "-f", str(file)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "WARNING" not in checked.stderr


class ApiServers:
    """TLS servers at port 6443 of loopback addresses. Each answers with its name and notes who asked for its health."""

    def __init__(self, names: Sequence[str], ca: trustme.CA) -> None:
        first, second = divmod(os.getpid() % 62500, 250)
        self.addresses = {name: f"127.{first + 1}.{second + 1}.{i}" for i, name in enumerate(names, 1)}
        self.checked = {name: asyncio.Event() for name in names}
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("localhost").configure_cert(self.context)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for name, address in self.addresses.items():
                answer = functools.partial(self.answer, name)
                await stack.enter_async_context(await asyncio.start_server(answer, address, 6443, ssl=self.context))
            yield

    async def answer(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readline()).startswith(b"GET /healthz "):
            self.checked[name].set()
        writer.write(f"HTTP/1.0 200 OK\r\n\r\n{name}".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def running(haproxy: str, file: Path) -> AsyncIterator[None]:
    """HAProxy as the container runs it, where a process may open 20000 files; once it says that it has started."""
    command = f"ulimit -n 20000; exec {haproxy} -W -db -f {file}"
    process = await asyncio.create_subprocess_shell(
        command, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
    )
    assert process.stderr is not None
    try:
        said = b""
        while b"Loading success" not in said:
            line = await process.stderr.readline()
            assert line, said.decode()
            said += line
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


async def who(port: int, context: ssl.SSLContext) -> str:
    """The name of the server that answers a new connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    writer.write(b"GET /who HTTP/1.0\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.rpartition(b"\n")[2].decode()


async def test_haproxy_forwards_tls_checks_health_and_spares_who_is_leaving(haproxy: str, tmp_path: Path) -> None:
    ca = trustme.CA()
    context = ssl.create_default_context()
    ca.configure_trust(context)
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        port, stats = one.getsockname()[1], two.getsockname()[1]
    servers = ApiServers(["staying", "leaving"], ca)
    weights = {"staying": 100, "leaving": 0}
    backends = tuple(Balanced(name, address, weights[name]) for name, address in servers.addresses.items())
    file = tmp_path / "haproxy.cfg"
    file.write_text(render(Frontend(port=port, servers=backends)).replace(":8404", f":{stats}"))
    async with asyncio.timeout(DEADLINE), servers.serve(), running(haproxy, file):
        for checked in servers.checked.values():
            await checked.wait()
        assert {await who(port, context) for _ in range(6)} == {"staying"}
