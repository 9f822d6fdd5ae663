"""Who issues tokens: an HTTPS server of this process that signs what Kafka's brokers and clients ask it for."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

AUDIENCE = "kafka of a test"
ISSUER = "https://issuer.example"
SECRET = "c4n4ry-of-a-client"
"""The secret of each client."""


@dataclass
class Issuer:
    """What it knows; ``given`` counts the tokens of each client."""

    port: int = 0
    """Where it listens on this machine."""
    lives: float = 3600.0
    """For how many seconds a token is valid."""
    audience: str = AUDIENCE
    """Whom the tokens are for."""
    silent: bool = False
    """Whether it has an error for each answer."""
    given: dict[str, int] = field(default_factory=dict)
    """How many tokens each client has got."""
    asked: list[Mapping[str, str]] = field(default_factory=list)
    """The forms of all requests for tokens."""
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))
    """It signs with it."""

    @property
    def tokens(self) -> str:
        """Where tokens are given."""
        return f"https://127.0.0.1:{self.port}/tokens"

    @property
    def keys(self) -> str:
        """Where its key is."""
        return f"https://127.0.0.1:{self.port}/keys"

    def list_keys(self) -> dict[str, Any]:
        """Return its key as a broker reads it."""
        numbers = self.key.public_key().public_numbers()
        made = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1"}
        return {"keys": [{**made, "n": encode_number(numbers.n), "e": encode_number(numbers.e)}]}

    def sign(self, client: str) -> str:
        """Make a token for a client."""
        now = time.time()
        head = {"alg": "RS256", "typ": "JWT", "kid": "1"}
        claims = {"iss": ISSUER, "aud": self.audience, "sub": client, "scope": "read"}
        claims |= {"iat": int(now), "exp": int(now + self.lives)}
        text = ".".join(encode(json.dumps(each).encode()) for each in (head, claims))
        signed = self.key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{encode(signed)}"

    def answer(self, login: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Give a token, or say why not."""
        self.asked.append(form)
        if self.silent:
            return 503, {"error": "temporarily_unavailable"}
        client, _, secret = base64.b64decode(login.removeprefix("Basic ")).decode().partition(":")
        if secret != SECRET:
            return 401, {"error": "invalid_client", "error_description": f"not {secret}"}
        self.given[client] = self.given.get(client, 0) + 1
        return 200, {"access_token": self.sign(client), "expires_in": int(self.lives), "token_type": "Bearer"}


def encode(data: bytes) -> str:
    """Write bytes as a token has them."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def encode_number(number: int) -> str:
    """Write a number as a key has it."""
    return encode(number.to_bytes((number.bit_length() + 7) // 8, "big"))


@contextmanager
def run_issuer(certificate: Path) -> Iterator[Issuer]:
    """Run an issuer with a certificate of this machine's, in PEM."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send(200, issuer.list_keys())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self.send(*issuer.answer(self.headers["Authorization"], form))

        def send(self, status: int, told: Mapping[str, Any]) -> None:
            text = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Say nothing of a client that does not trust us."""

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    # The handshake is each request's own, so that one that fails holds up no other.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    issuer.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, name="issuer", daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
