"""The data directory of `capi up`: who may use it, its certificates, its kubeconfig and what it remembers.

DIR/            0700
  capi.db       the store of the management API
  clusters/     one store per in-memory workload cluster
  pki/          ca, serving and admin certificates (0600)
  kubeconfig    for the admin (0600); rewritten at every start
  port          the port of the last start
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from capi.client import pki
from capi.kube import yaml
from capi.kube.errors import CapiError

PROBE = ".write-probe"
"""Written and removed to see whether the directory can be written."""


class DataDirError(CapiError):
    """The data directory cannot be used; choose another with --data-dir."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """The authority of a management API and what it issued."""

    ca: pki.KeyPair
    serving: pki.KeyPair
    admin: pki.KeyPair


@dataclass(frozen=True, slots=True)
class DataDir:
    """Paths below one directory."""

    path: Path

    @property
    def store(self) -> Path:
        return self.path / "capi.db"

    @property
    def clusters(self) -> Path:
        return self.path / "clusters"

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    def prepare(self) -> None:
        """Create it, private to its owner. Raises DataDirError that names the path."""
        with self._explained():
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = self.path / PROBE
            probe.write_bytes(b"")
            probe.unlink()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the file system name the directory, the file in it and the way out."""
        try:
            yield
        except OSError as error:
            at = error.filename2 or error.filename
            name = (
                ""
                if at is None or Path(os.fsdecode(at)) in (self.path, self.path / PROBE)
                else f"{Path(os.fsdecode(at)).name}: "
            )
            raise DataDirError(
                f"data directory {self.path}: {name}{error.strerror};"
                " choose another with --data-dir, or use --ephemeral"
            ) from error

    def certificates(self, hosts: Sequence[str], now: datetime) -> Certificates:
        """Those of the last start, renewed where they would not do."""
        with self._explained():
            return self._certificates(hosts, now)

    def _certificates(self, hosts: Sequence[str], now: datetime) -> Certificates:
        folder = self.path / "pki"
        folder.mkdir(mode=0o700, exist_ok=True)
        ca = _kept(folder, "ca")
        if ca is None or not pki.usable(ca, now):
            ca = pki.new_ca("capi-ca", now)
            pki.write_pair(ca, folder / "ca.crt", folder / "ca.key")
        serving = _kept(folder, "serving")
        if serving is None or not pki.usable(serving, now, ca=ca, hosts=hosts):
            serving = pki.issue_serving(ca, hosts, now)
            pki.write_pair(serving, folder / "serving.crt", folder / "serving.key")
        admin = _kept(folder, "admin")
        if admin is None or not pki.usable(admin, now, ca=ca):
            admin = pki.issue_client(ca, "capi-admin", ("system:masters",), now)
            pki.write_pair(admin, folder / "admin.crt", folder / "admin.key")
        return Certificates(ca, serving, admin)

    def write_kubeconfig(self, server: str, certificates: Certificates) -> Path:
        """The admin's kubeconfig, mode 0600; left alone if it says the same already, so that a full disk stops no start."""
        document = pki.client_kubeconfig(
            server=server,
            ca=certificates.ca.certificate,
            client=certificates.admin,
            cluster="capi",
            user="capi-admin",
            namespace="default",
        )
        text = yaml.dump(document).encode()
        with self._explained():
            if not self.kubeconfig.is_file() or self.kubeconfig.read_bytes() != text:
                pki.write_private(self.kubeconfig, text)
        return self.kubeconfig

    def remembered_port(self) -> int | None:
        """That of the last start; None if there is no file, or one that holds no port."""
        with contextlib.suppress(OSError, ValueError):
            found = orjson.loads((self.path / "port").read_bytes())
            return found if type(found) is int and 0 < found < 2**16 else None
        return None

    def remember_port(self, port: int) -> None:
        if port != self.remembered_port():
            with self._explained():
                (self.path / "port").write_bytes(orjson.dumps(port))


def _kept(folder: Path, name: str) -> pki.KeyPair | None:
    return pki.read_pair(folder / f"{name}.crt", folder / f"{name}.key")
