"""A scripted Ollama: a real HTTP server for `/api/embed`, `/api/tags` and `/api/version`.

Its vectors are made of hashed words, so texts that share words are close. No other endpoint is in here.
"""

import hashlib
import json
import math
import re
import sys
import threading
from collections import deque
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

DIMENSION = 768
MODELS = frozenset({"embeddinggemma", "nomic-embed-text"})
CONTEXT_TOKENS = 2048  # Ollama's default num_ctx for embedding models
CHARACTERS_PER_TOKEN = 4
COMMON_WORDS = (
    "der die das dem den des ein eine und oder ist war hat bin bist sind ich du er sie wir mich dir mir mein dein "
    "meine deine wie was wo in im am an auf zu mit nicht auch the a and or is are was has i you he she we my your "
    "how what where on at to of with not also"
)


@dataclass(frozen=True)
class Fails:
    """An error instead of vectors."""

    status: int
    message: str


@dataclass(frozen=True)
class Stall:
    """Silence; the connection is closed once `release` is set."""

    release: threading.Event | None = None


@dataclass(frozen=True)
class WrongDimension:
    dimension: int = 384


@dataclass(frozen=True)
class FewerVectors:
    """One vector less than there were inputs."""


Failure = Fails | Stall | WrongDimension | FewerVectors


def model_not_found(model: str) -> Fails:
    return Fails(404, f'model "{model}" not found, try pulling it first')


def input_too_long() -> Fails:
    return Fails(400, "the input length exceeds the context length")


def server_error() -> Fails:
    return Fails(500, "llama runner process has terminated: exit status 2")


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """A vector of length 1 made of the text's words and their beginnings, the same for the same text."""
    vector = [0.0] * dimension
    common = set(COMMON_WORDS.split())
    for word in re.findall(r"\w+", text.lower()):
        weight = 0.1 if word in common else 1.0
        # The beginnings bring "Hund" and "Hunde" together.
        for feature, share in ((word, 1.0), (word[:4], 0.5)):
            digest = hashlib.sha256(feature.encode("utf-8", "replace")).digest()
            sign = 1.0 if digest[0] % 2 else -1.0
            vector[int.from_bytes(digest[1:5], "big") % dimension] += sign * weight * share
    length = math.sqrt(sum(value * value for value in vector))
    if not length:  # also a text without words gets a vector, as from the real models
        return [1.0] + [0.0] * (dimension - 1)
    return [value / length for value in vector]


class FakeOllama:
    """The server, started on entering and stopped on leaving; `requests` are the bodies for /api/embed."""

    def __init__(self, *, dimension: int = DIMENSION, port: int = 0) -> None:
        self.dimension = dimension
        self.models = set(MODELS)
        self.always: Failure | None = None  # how every request fails from now on
        self._failures: deque[Failure] = deque()
        self._lock = threading.Lock()
        self._requests: list[dict[str, Any]] = []
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.ollama = self
        self.base_url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def requests(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._requests)

    def fail(self, *failures: Failure) -> None:
        """Queues failures for the next requests, in order."""
        with self._lock:
            self._failures.extend(failures)

    def answer(self, body: dict[str, Any]) -> Failure | dict[str, Any]:
        """Records the request; returns the body of the response, or how it fails."""
        with self._lock:
            self._requests.append(body)
            failure = self._failures.popleft() if self._failures else self.always
        if isinstance(failure, Fails | Stall):
            return failure
        model = body.get("model") or ""
        if model.removesuffix(":latest") not in self.models:
            return model_not_found(model)
        given = body.get("input", [])
        texts = [given] if isinstance(given, str) else list(given)
        limit = (body.get("options") or {}).get("num_ctx", CONTEXT_TOKENS) * CHARACTERS_PER_TOKEN
        if any(len(text) > limit for text in texts) and not body.get("truncate", True):
            return input_too_long()
        dimension = failure.dimension if isinstance(failure, WrongDimension) else self.dimension
        vectors = [vector_of(text[:limit], dimension) for text in texts]
        tokens = sum(len(text[:limit]) for text in texts) // CHARACTERS_PER_TOKEN
        return {
            "model": model,
            "embeddings": vectors[:-1] if isinstance(failure, FewerVectors) else vectors,
            "total_duration": 14_143_917,
            "load_duration": 1_019_500,
            "prompt_eval_count": tokens,
        }

    def wait(self, event: threading.Event | None) -> None:
        """Returns once the event is set or the server closes; without an event only then."""
        if event is None:
            self._closing.wait()
            return
        while not (self._closing.is_set() or event.wait(0.01)):
            pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    ollama: FakeOllama

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # a client that went away is no error here
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Nothing: requests are recorded, not logged."""

    def do_GET(self) -> None:
        if self.path == "/api/version":
            self._send(200, {"version": "0.14.0"})
        elif self.path == "/api/tags":
            models = [{"name": f"{one}:latest", "model": f"{one}:latest"} for one in self.server.ollama.models]
            self._send(200, {"models": sorted(models, key=lambda model: model["name"])})
        elif self.path == "/":
            self._send(200, "Ollama is running", "text/plain; charset=utf-8")
        else:
            self._send(404, "404 page not found", "text/plain")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/api/embed":
            self._send(404, "404 page not found", "text/plain")
            return
        try:
            body = json.loads(raw.decode("utf-8"))
        except ValueError as error:
            self._send(400, {"error": str(error)})
            return
        answer = self.server.ollama.answer(body)
        if isinstance(answer, Fails):
            self._send(answer.status, {"error": answer.message})
        elif isinstance(answer, Stall):
            self.server.ollama.wait(answer.release)
            self.close_connection = True
        else:
            self._send(200, answer)

    def _send(self, status: int, body: Any, kind: str = "application/json; charset=utf-8") -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
