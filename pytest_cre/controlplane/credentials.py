"""Certificates, keys and tokens of one control plane, made for it and gone with it."""

import base64
import ipaddress
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cre.ports import LOOPBACK

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

# Distinct names, so that the audit log tells who asked; all of them administrators, as it is the
# harness that has to live with little. The harness itself is a service account.
ADMIN_USERS = ("administrator", "simulator", "kube-controller-manager", "kube-scheduler")
OPERATOR_USERS = ("jobset", "trainer", "mpi-operator")

# The Trainer makes an authority of its own, and its webhooks fail, unless it finds this name in ours.
TRAINER_AUTHORITY = "kubeflow-trainer-ca"
_LIFETIME = timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate509:
    """A certificate and its key, both as PEM."""

    certificate_pem: bytes
    key_pem: bytes


class Authority:
    """What all servers of one control plane are verified with; strict verifiers accept it."""

    def __init__(self) -> None:
        # Importing this library takes long, so it waits until a control plane is started.
        from cryptography.hazmat.primitives.asymmetric import rsa

        # The Trainer reads no other kind of key.
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._certificate = self._sign("pytest-cre control plane", self._key, names=None)
        self.pem = _certificate_pem(self._certificate)
        self.key_pem = _key_pem(self._key)

    def issue(self, *names: str) -> Certificate509:
        """Return a certificate for a server on this machine that also answers to these names."""
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        every = ("localhost", *names)
        return Certificate509(
            certificate_pem=_certificate_pem(self._sign(every[-1], key, names=every)),
            key_pem=_key_pem(key),
        )

    def _sign(
        self, common_name: str, key: "PrivateKeyTypes", *, names: Sequence[str] | None
    ) -> "Certificate":
        """Sign a key: an authority's own without names, else a server's."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        is_authority = names is None
        now = datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        own = self._key.public_key()
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if is_authority else self._certificate.subject)
            .public_key(key.public_key())  # type: ignore[arg-type]
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    key_cert_sign=is_authority,
                    crl_sign=is_authority,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own), critical=False)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()),  # type: ignore[arg-type]
                critical=False,
            )
        )
        if names is not None:
            address = x509.IPAddress(ipaddress.ip_address(LOOPBACK))
            alternatives = [*(x509.DNSName(name) for name in names), address]
            builder = builder.add_extension(
                x509.SubjectAlternativeName(alternatives), critical=False
            ).add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
            )
        else:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([x509.DNSName(TRAINER_AUTHORITY)]), critical=False
            )
        return builder.sign(self._key, hashes.SHA256())


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The files of one control plane, all in its own private folder."""

    authority: Authority
    authority_file: Path
    tokens: dict[str, str]  # by user
    token_file: Path  # for kube-apiserver
    service_account_key: Path
    service_account_public_key: Path


def make_credentials(folder: Path) -> Credentials:
    """Make the authority, the API server's certificate, tokens and the service account key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    authority = Authority()
    private_file(folder / "authority.crt", authority.pem)
    write_certificate(folder, "apiserver", authority.issue("kubernetes.default.svc"))
    tokens = {user: secrets.token_urlsafe(32) for user in (*ADMIN_USERS, *OPERATOR_USERS)}
    lines = [f'{token},{user},{user},"system:masters"\n' for user, token in tokens.items()]
    private_file(folder / "tokens.csv", "".join(lines).encode())
    key = ec.generate_private_key(ec.SECP256R1())
    private_file(folder / "service-account.key", _key_pem(key))
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    private_file(folder / "service-account.pub", public)
    return Credentials(
        authority=authority,
        authority_file=folder / "authority.crt",
        tokens=tokens,
        token_file=folder / "tokens.csv",
        service_account_key=folder / "service-account.key",
        service_account_public_key=folder / "service-account.pub",
    )


def write_certificate(folder: Path, name: str, issued: Certificate509) -> None:
    """Write `NAME.crt` and `NAME.key`."""
    private_file(folder / f"{name}.crt", issued.certificate_pem)
    private_file(folder / f"{name}.key", issued.key_pem)


def write_kubeconfig(
    path: Path, *, server: str, token: str, authority_pem: bytes, namespace: str
) -> None:
    """Write a kubeconfig in one step: whoever sees the file sees all of it."""
    name = "pytest-cre-controlplane"
    cluster = {
        "server": server,
        "certificate-authority-data": base64.b64encode(authority_pem).decode(),
    }
    context = {"cluster": name, "user": name, "namespace": namespace}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
    part = path.with_name(f".{path.name}.part")
    private_file(part, json.dumps(config, indent=1).encode())
    part.replace(path)


def private_file(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _certificate_pem(certificate: "Certificate") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: "PrivateKeyTypes") -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        # What Go programs expect of an elliptic key, and cryptography reads as well.
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
