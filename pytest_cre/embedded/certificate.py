"""A certificate for one run of the server.

kubectl sends a token over TLS only, so the server cannot do without.
"""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

_LIFETIME = timedelta(days=365)
_ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingIdentity:
    """What the server shows, and the authority by which clients know it."""

    context: ssl.SSLContext
    authority_pem: bytes


def new_identity() -> ServingIdentity:
    """Make an authority and a server certificate that the strictest verification accepts."""
    # Importing this library costs more than all of the rest, so it waits until it is needed.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def named(common_name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])

    def usage(*, is_authority: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=is_authority,
            crl_sign=is_authority,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        public_key = key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority_name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
                critical=False,
            )
        )

    now = datetime.now(UTC)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = named("pytest-cre embedded cluster")
    authority = (
        builder(authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(is_authority=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    server_key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(_ADDRESS))]
    server = (
        builder(named("localhost"), server_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key_pem = server_key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return ServingIdentity(
        context=_context(server.public_bytes(pem), key_pem),
        authority_pem=authority.public_bytes(pem),
    )


def _context(certificate_pem: bytes, key_pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # OpenSSL reads from files only; the folder is private, and gone before anyone connects.
    with TemporaryDirectory(prefix="pytest-cre-") as folder:
        path = Path(folder, "server.pem")
        path.touch(mode=0o600)
        path.write_bytes(certificate_pem + key_pem)
        context.load_cert_chain(path)
    return context
