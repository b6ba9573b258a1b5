"""Certificates for servers on this machine: valid for "localhost", not for "127.0.0.1"."""

import functools
from pathlib import Path

import trustme


@functools.cache
def _authority() -> trustme.CA:
    return trustme.CA()


def write_certificates(folder: Path) -> None:
    """Writes `ca.pem`, the same each time, for SSL_CERT_FILE, and the server's `cert.pem` and `key.pem`."""
    server = _authority().issue_cert("localhost")
    _authority().cert_pem.write_to_path(str(folder / "ca.pem"))
    server.private_key_pem.write_to_path(str(folder / "key.pem"))
    (folder / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in server.cert_chain_pems))
