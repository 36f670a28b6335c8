"""Authorities and certificates for tests: good ones, and one of every bad kind."""

import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)
USES = {"client": ExtendedKeyUsageOID.CLIENT_AUTH, "server": ExtendedKeyUsageOID.SERVER_AUTH}


def now():
    return datetime.datetime.now(datetime.timezone.utc)


class Authority:
    def __init__(self, folder, name):
        self.folder, self.name = Path(folder), name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} authority")])
        self.cert = (x509.CertificateBuilder().subject_name(self.subject).issuer_name(self.subject)
                     .public_key(self.key.public_key()).serial_number(x509.random_serial_number())
                     .not_valid_before(now() - DAY).not_valid_after(now() + 365 * DAY)
                     .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
                     .sign(self.key, hashes.SHA256()))
        write(self.folder / f"{name}.pem", self.cert)

    def issue(self, name, common=(), alternative=(), use="client", begins=-1, ends=90, key=None,
              bits=None, itself=False):
        """NAME.pem and NAME.key.  alternative: 'dns:a', 'uri:b', 'email:c', 'ip:d'."""
        key = key or (rsa.generate_private_key(65537, bits) if bits
                      else ec.generate_private_key(ec.SECP256R1()))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one) for one in common])
        builder = (x509.CertificateBuilder().subject_name(subject)
                   .issuer_name(subject if itself else self.subject)
                   .public_key(key.public_key()).serial_number(x509.random_serial_number())
                   .not_valid_before(now() + begins * DAY).not_valid_after(now() + ends * DAY)
                   .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True))
        if use:
            builder = builder.add_extension(x509.ExtendedKeyUsage([USES[use]]), critical=False)
        if alternative:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([general_name(one) for one in alternative]), critical=False)
        cert = builder.sign(key if itself else self.key, hashes.SHA256())
        write(self.folder / f"{name}.pem", cert)
        write_key(self.folder / f"{name}.key", key)
        return cert

    def revoke(self, name, *certs, ends=30):
        """NAME.crl of this authority"""
        builder = (x509.CertificateRevocationListBuilder().issuer_name(self.subject)
                   .last_update(now() - 2 * DAY).next_update(now() + ends * DAY))
        for cert in certs:
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder().serial_number(cert.serial_number)
                .revocation_date(now() - DAY).build())
        crl = builder.sign(self.key, hashes.SHA256())
        (self.folder / f"{name}.crl").write_bytes(crl.public_bytes(serialization.Encoding.PEM))


def general_name(text):
    kind, _, value = text.partition(":")
    if kind == "ip":
        return x509.IPAddress(ipaddress.ip_address(value))
    return {"dns": x509.DNSName, "uri": x509.UniformResourceIdentifier,
            "email": x509.RFC822Name}[kind](value)


def write(path, cert):
    path.write_bytes(cert.public_bytes(serialization.Encoding.PEM))


def write_key(path, key):
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                       serialization.NoEncryption()))
    path.chmod(0o600)


def sha256(cert):
    return cert.fingerprint(hashes.SHA256()).hex()


def spki(cert):
    digest = hashes.Hash(hashes.SHA256())
    digest.update(cert.public_key().public_bytes(serialization.Encoding.DER,
                                                 serialization.PublicFormat.SubjectPublicKeyInfo))
    return digest.finalize().hex()


def make(folder, uid=None):
    """What scenes use, in FOLDER; {name: hash} of two certificates, for their identities."""
    folder = Path(folder)
    folder.mkdir()
    ca, other = Authority(folder, "ca"), Authority(folder, "other-ca")
    for name in ("server", "renewed"):
        ca.issue(name, ["gate"], ["dns:localhost", "ip:127.0.0.1"], use="server")
    ca.issue("soon", ["gate"], ["dns:localhost"], use="server", ends=10.5)
    ca.issue("elsewhere", ["gate"], ["dns:elsewhere.example"], use="server")
    ca.issue("alice", ["alice"])
    ca.issue("ci", [], ["dns:CI.example", "uri:spiffe://example/ci", "email:ci@Example.org"])
    ca.issue("unknown", ["mallory"])
    ca.issue("wordy", ["mallory"], [f"uri:https://example.org/{n}/" + "a" * 450 for n in range(20)])
    ca.issue("two", ["alice", "alice"])
    ca.issue("expired", ["alice"], begins=-30, ends=-1)
    ca.issue("early", ["alice"], begins=2)
    ca.issue("wrong-use", ["alice"], use="server")
    ca.issue("weak", ["alice"], bits=1024)
    other.issue("stranger", ["alice"])
    ca.issue("selfsigned", ["alice"], itself=True)
    ca.revoke("revoked", ca.issue("revoked", ["alice"]))
    ca.revoke("stale", ends=-1)
    hashed = ca.issue("hashed", ["hashed"])
    keyed = ca.issue("keyed", ["keyed"])
    if uid is not None:
        for path in [folder, *folder.iterdir()]:
            os.chown(path, uid, uid)
    return {"hashed": sha256(hashed), "keyed": spki(keyed)}
