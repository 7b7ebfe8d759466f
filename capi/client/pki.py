"""Certificates for API servers and their clients: one EC P-256 authority, and what it issues.

Everything here is a function of its arguments and the clock reading `now`; only `write_private` touches a disk.
Certificates are valid from one hour before `now`, because clocks of clients and servers differ. A client certificate
names the user in CN and its groups in O, as Kubernetes' x509 authenticator reads them.

Source: kubernetes.io/docs/reference/access-authn-authz/authentication (X509 client certificates).
"""

import base64
import ipaddress
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from capi.kube.errors import CapiError
from capi.kube.types import Object

SKEW = timedelta(hours=1)
"""How far not-before lies in the past."""
CA_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=365)
_LONGEST_NAME = 64
RENEW_BEFORE = timedelta(days=30)
"""A certificate with less than this left is issued anew at the next start."""


class BadCertificate(CapiError):
    """A certificate or key file cannot be read; remove it and start again to have a new one made."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM. `certificate` may carry a chain, own certificate first."""

    certificate: bytes
    key: bytes = field(repr=False)


def _common_name(text: str) -> "x509.NameAttribute[str]":
    """X.520 allows 64 characters; of a longer name (a cluster's may have 63, before its suffix) the beginning counts."""
    return x509.NameAttribute(NameOID.COMMON_NAME, text[:_LONGEST_NAME])


def new_ca(common_name: str, now: datetime, *, life: timedelta = CA_LIFE) -> KeyPair:
    """A self-signed authority that may sign leaf certificates only."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([_common_name(common_name)])
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = (
        _builder(name, name, key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue_serving(
    ca: KeyPair, hosts: Sequence[str], now: datetime, *, common_name: str = "capi", life: timedelta = LEAF_LIFE
) -> KeyPair:
    """A serving certificate for `hosts`: DNS names and IP addresses (v4, v6, without brackets)."""
    return _issue(ca, common_name, (), now, life, hosts=hosts, usage=ExtendedKeyUsageOID.SERVER_AUTH)


def issue_client(
    ca: KeyPair, user: str, groups: Iterable[str], now: datetime, *, life: timedelta = LEAF_LIFE
) -> KeyPair:
    """A client certificate: CN = `user`, one O per group."""
    return _issue(ca, user, tuple(groups), now, life, usage=ExtendedKeyUsageOID.CLIENT_AUTH)


def usable(
    pair: KeyPair,
    now: datetime,
    *,
    ca: KeyPair | None = None,
    hosts: Sequence[str] = (),
    margin: timedelta = RENEW_BEFORE,
) -> bool:
    """Whether `pair` need not be renewed: valid for `margin` more, signed by `ca`, and good for all `hosts`."""
    certificate = _load(pair.certificate)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc - margin:
        return False
    if not _matches(certificate, pair.key):
        return False
    if ca is not None and not _signed_by(certificate, _load(ca.certificate)):
        return False
    return set(map(_alternative, hosts)) <= set(_alternatives(certificate))


def hosts_of(pair: KeyPair) -> list[str]:
    """The names and addresses that a serving certificate is good for."""
    return [str(name.value) for name in _alternatives(_load(pair.certificate))]


def not_after(pair: KeyPair) -> datetime:
    """When the certificate ends."""
    return _load(pair.certificate).not_valid_after_utc


def client_kubeconfig(
    *, server: str, ca: bytes, client: KeyPair, cluster: str, user: str, namespace: str = ""
) -> Object:
    """A kubeconfig document with one context `user@cluster`; all data inline."""
    context = {"cluster": cluster, "user": user, **({"namespace": namespace} if namespace else {})}
    name = f"{user}@{cluster}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": _b64(ca)}}],
        "users": [
            {
                "name": user,
                "user": {"client-certificate-data": _b64(client.certificate), "client-key-data": _b64(client.key)},
            }
        ],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
        "preferences": {},
    }


def write_private(path: Path, data: bytes) -> None:
    """Put `data` at `path`, mode 0600, all or nothing: a reader sees the old file or the new one, never a part."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp creates with 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_pair(certificate: Path, key: Path) -> KeyPair | None:
    """The pair in two PEM files; None if either is missing. Raises BadCertificate for anything that is not PEM."""
    try:
        pair = KeyPair(certificate.read_bytes(), key.read_bytes())
    except FileNotFoundError:
        return None
    try:
        _load(pair.certificate)
        serialization.load_pem_private_key(pair.key, None)
    except (ValueError, TypeError) as error:
        raise BadCertificate(
            f"{certificate} and {key} are not a PEM certificate and key: {error}; remove them to have new ones made"
        ) from error
    return pair


def write_pair(pair: KeyPair, certificate: Path, key: Path) -> None:
    """Store both files with mode 0600. The key goes first, so that a certificate on disk always has its key."""
    write_private(key, pair.key)
    write_private(certificate, pair.certificate)


def _issue(  # noqa: PLR0913 - what a certificate says
    ca: KeyPair,
    common_name: str,
    organizations: Sequence[str],
    now: datetime,
    life: timedelta,
    *,
    usage: x509.ObjectIdentifier,
    hosts: Sequence[str] = (),
) -> KeyPair:
    authority, authority_key = _load(ca.certificate), _load_key(ca.key)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations),
            _common_name(common_name),
        ]
    )
    life = min(life, authority.not_valid_after_utc - now)
    builder = (
        _builder(subject, authority.subject, key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
    )
    if hosts:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False
        )
    return _pair(builder.sign(authority_key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + life)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def _load(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    """An authority's key: ours are elliptic-curve keys, those of kubeadm RSA."""
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise BadCertificate(
            "the authority's key is neither an elliptic-curve nor an RSA key; put another one in its place"
        )
    return key


def _matches(certificate: x509.Certificate, key: bytes) -> bool:
    """A key that nobody can read is no certificate's."""
    try:
        return certificate.public_key() == serialization.load_pem_private_key(key, None).public_key()
    except (UnsupportedAlgorithm, ValueError, TypeError):
        return False


def _signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _alternatives(certificate: x509.Certificate) -> Iterable[x509.GeneralName]:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
