"""Certificates: what they say, when they need renewal, how they reach the disk."""

import base64
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from capi.client import pki

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def ca():
    return pki.new_ca("test-ca", NOW)


def subject(pair, oid):
    return [a.value for a in x509.load_pem_x509_certificate(pair.certificate).subject.get_attributes_for_oid(oid)]


def test_a_client_certificate_names_user_and_groups(ca):
    pair = pki.issue_client(ca, "alice", ["dev", "ops"], NOW)
    assert (subject(pair, NameOID.COMMON_NAME), subject(pair, NameOID.ORGANIZATION_NAME)) == (["alice"], ["dev", "ops"])


def test_certificates_are_backdated_for_clock_skew(ca):
    certificate = x509.load_pem_x509_certificate(pki.issue_client(ca, "a", [], NOW).certificate)
    assert certificate.not_valid_before_utc == NOW - timedelta(hours=1)


def test_an_authority_with_an_rsa_key_signs_too():
    """As kubeadm makes them."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    certificate = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + timedelta(days=3650))
    certificate = certificate.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = certificate.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    encoding = serialization.PrivateFormat.TraditionalOpenSSL
    pem = key.private_bytes(serialization.Encoding.PEM, encoding, serialization.NoEncryption())
    authority = pki.KeyPair(signed, pem)
    assert pki.usable(pki.issue_client(authority, "alice", [], NOW), NOW, ca=authority)


def test_a_certificate_never_outlives_its_authority():
    short = pki.new_ca("short", NOW, life=timedelta(days=2))
    assert pki.not_after(pki.issue_client(short, "a", [], NOW)) == NOW + timedelta(days=2)


@pytest.mark.parametrize(
    ("when", "hosts", "wanted"),
    [
        pytest.param(timedelta(), ["localhost", "127.0.0.1", "::1"], True, id="fresh and for these hosts"),
        pytest.param(timedelta(days=340), [], False, id="about to end"),
        pytest.param(timedelta(days=-1), [], False, id="not yet valid"),
        pytest.param(timedelta(), ["10.0.0.1"], False, id="not for this address"),
    ],
)
def test_renewal_is_due_by_time_and_by_hosts(ca, when, hosts, wanted):
    pair = pki.issue_serving(ca, ["localhost", "127.0.0.1", "::1"], NOW)
    assert pki.usable(pair, NOW + when, ca=ca, hosts=hosts) is wanted


def test_a_pair_of_another_authority_or_another_key_is_not_usable(ca):
    pair, other = pki.issue_client(ca, "a", [], NOW), pki.new_ca("test-ca", NOW)
    assert not pki.usable(pair, NOW, ca=other)
    assert not pki.usable(pki.KeyPair(pair.certificate, other.key), NOW, ca=ca)


def test_files_are_private_and_replaced_whole(ca, tmp_path):
    cert, key = tmp_path / "a.crt", tmp_path / "a.key"
    key.write_text("old")
    key.chmod(0o644)
    pki.write_pair(ca, cert, key)
    assert {stat.S_IMODE(p.stat().st_mode) for p in (cert, key)} == {0o600}
    assert pki.read_pair(cert, key) == ca
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.crt", "a.key"]


def test_a_missing_file_is_no_pair_and_rubbish_is_an_error(tmp_path):
    cert, key = tmp_path / "a.crt", tmp_path / "a.key"
    assert pki.read_pair(cert, key) is None
    cert.write_text("x")
    key.write_text("x")
    with pytest.raises(pki.BadCertificate, match=r"a\.crt"):
        pki.read_pair(cert, key)


def test_a_kubeconfig_carries_everything_inline(ca):
    client = pki.issue_client(ca, "admin", ["system:masters"], NOW)
    document = pki.client_kubeconfig(
        server="https://h:1", ca=ca.certificate, client=client, cluster="c1", user="admin", namespace="n"
    )
    assert document["current-context"] == "admin@c1"
    assert base64.b64decode(document["clusters"][0]["cluster"]["certificate-authority-data"]) == ca.certificate
    assert base64.b64decode(document["users"][0]["user"]["client-key-data"]) == client.key
    assert document["contexts"][0]["context"] == {"cluster": "c1", "user": "admin", "namespace": "n"}
