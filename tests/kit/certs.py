"""Certificates for tests, made with openssl: two authorities, one of which nobody trusts."""

import ssl
from pathlib import Path

from kit import proc


class Certs:
    """FOLDER/ca.pem, other-ca.pem; NAME.pem and NAME.key of whatever issue() was asked for."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        for name in ("ca", "other-ca"):
            self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                          "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "30",
                          "-subj", f"/CN={name} of the tests")

    def _openssl(self, *args):
        proc.output(["openssl", *args], cwd=self.folder)

    def issue(self, name, alternative, ca="ca", usage="serverAuth,clientAuth", days=30):
        """alternative: "DNS:engine.test" or "IP:127.0.0.1"; ca: which of the two says so."""
        (self.folder / f"{name}.ext").write_text(
            f"subjectAltName={alternative}\nextendedKeyUsage={usage}\n"
            "basicConstraints=critical,CA:FALSE\nkeyUsage=digitalSignature\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                      f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key",
                      "-CAcreateserial", "-days", str(days), "-extfile", f"{name}.ext", "-out", f"{name}.pem")
        return self

    def server(self, name, demands_client=True):
        """What a server shows; clients must show something from ca.pem."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        if demands_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.folder / "ca.pem")
        return context
