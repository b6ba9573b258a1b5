"""A scripted Claude: a real HTTP server that speaks the Messages API, for the tests and for `make demo`.

It refuses what the real API refuses (history_rules.py) and can fail in every way seen in practice.
What it answers (claude_replies.py) is queued by a test or asked of a responder; no dialogue is in here.
"""

import json
import sys
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.claude_replies import (  # noqa: F401 - tests find the server and its answers in one place
    Answer,
    Breaks,
    CorruptChunk,
    CutToolJson,
    Drop,
    EndsEarly,
    ErrorInStream,
    Event,
    Fails,
    NotSse,
    PingsForever,
    Reply,
    Stall,
    Text,
    Thinking,
    ToolUse,
    as_blocks,
    billing_problem,
    events,
    invalid_request,
    overloaded,
    own_spend_limit_reached,
    rate_limited,
    server_error,
    spend_limit_reached,
    unknown_model,
    whole_message,
    wrong_key,
)
from tests.file_rules import REQUEST_BYTES
from tests.history_rules import Body, violations

MODELS = frozenset({"claude-sonnet-5-5", "claude-haiku-5-5"})
DEFAULT_ANSWER = "OK."
DEFAULT_SUMMARY = "Titel: Ein Gespräch\nZusammenfassung: Es wurde gesprochen."
PING_SECONDS = 0.02
EMPTY: Mapping[str, str] = {}


def is_summary_call(body: Body) -> bool:
    """Whether the request is for a summary: those are not streamed and have no tools."""
    return not body.get("stream") and not body.get("tools")


class FakeClaude:
    """The server, started on entering and stopped on leaving; `base_url` goes to the SDK.

    `models` are the known ids, `requests` and `headers` what arrived in order, refused ones included, and
    `refused` the messages of the 400s that the rules of the API caused.
    """

    def __init__(
        self, responder: Callable[[Body], Answer] | None = None, *, port: int = 0, require_key: bool = True
    ) -> None:
        self.models = set(MODELS)
        self._responder = responder
        self._require_key = require_key
        self._lock = threading.Lock()
        self._requests: list[Body] = []
        self._headers: list[dict[str, str]] = []
        self._refused: list[str] = []
        self._answers: deque[Answer] = deque()
        self._summaries: deque[Answer] = deque()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.claude = self
        self.base_url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        # A short poll: shutdown() waits for it, in every test that uses this server.
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def requests(self) -> list[Body]:
        with self._lock:
            return list(self._requests)

    @property
    def headers(self) -> list[dict[str, str]]:
        with self._lock:
            return list(self._headers)

    @property
    def refused(self) -> list[str]:
        with self._lock:
            return list(self._refused)

    def say(self, *replies: Answer) -> None:
        """Queues answers for the requests of turns, in order."""
        with self._lock:
            self._answers.extend(replies)

    def say_to_summary(self, *replies: Answer) -> None:
        """Queues answers for the summary calls, in order."""
        with self._lock:
            self._summaries.extend(replies)

    def answer(self, raw: bytes, headers: dict[str, str]) -> tuple[Body, Answer]:
        """The request and what the API would say to it: a refusal or the next scripted answer."""
        # The SDK sends the key as a bearer token, older clients in x-api-key; the real API takes both.
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer")
        if self._require_key and not key.strip():
            return {}, wrong_key()
        if len(raw) > REQUEST_BYTES:
            return {}, Fails(413, "request_too_large", "Request exceeds the maximum size")
        try:
            body: Body = json.loads(raw.decode("utf-8"))
        except ValueError as error:
            return {}, self._refuse(f"The request body is not valid JSON: {error}")
        if not isinstance(body, dict):
            return {}, self._refuse("Input should be a valid dictionary")
        with self._lock:
            self._requests.append(body)
            self._headers.append(headers)
        if "anthropic-version" not in headers:
            return body, self._refuse("anthropic-version: header is required")
        try:
            if message := violations(body):
                return body, self._refuse(message)
            if body["model"] not in self.models:
                return body, unknown_model(body["model"])
            return body, self._scripted(body)
        except Exception as error:  # noqa: BLE001 - a broken script must show in the test, not hang it
            return body, Fails(500, "api_error", f"The script failed: {error!r}")

    def _refuse(self, message: str) -> Fails:
        with self._lock:
            self._refused.append(message)
        return invalid_request(message)

    def _scripted(self, body: Body) -> Answer:
        summary = is_summary_call(body)
        with self._lock:
            queue = self._summaries if summary else self._answers
            if queue:
                return queue.popleft()
        if self._responder:
            return self._responder(body)
        return DEFAULT_SUMMARY if summary else DEFAULT_ANSWER

    def wait(self, event: threading.Event | None) -> None:
        """Returns once the event is set or the server closes; without an event only then."""
        if event is None:
            self._closing.wait()
            return
        while not (self._closing.is_set() or event.wait(0.01)):
            pass

    def closes_within(self, seconds: float) -> bool:
        """Whether the server closes in that time; sleeps otherwise."""
        return self._closing.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    claude: FakeClaude

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # a client that went away is no error here
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # chunks arrive when they are sent
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Nothing: requests are recorded, not logged."""

    def do_GET(self) -> None:
        if self._path() != "/v1/models":
            self._fail(Fails(404, "not_found_error", "Not Found"))
            return
        ids = sorted(self.server.claude.models)
        made = {"created_at": "2026-09-28T00:00:00Z", "lifecycle": "active"}
        models = [{"type": "model", "id": one, "display_name": one, **made} for one in ids]
        self._send(200, {"data": models, "has_more": False, "first_id": ids[0], "last_id": ids[-1]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self._path() != "/v1/messages":
            self._fail(Fails(404, "not_found_error", "Not Found"))
            return
        body, answer = self.server.claude.answer(raw, {k.lower(): v for k, v in self.headers.items()})
        if isinstance(answer, Fails):
            self._fail(answer)
        elif isinstance(answer, NotSse):
            self._send(200, answer.html, "text/html")
        else:
            script = answer if isinstance(answer, Reply | Breaks) else Reply(answer)
            send = self._stream if body.get("stream") else self._whole
            send(body, script)

    def _path(self) -> str:
        self.request_id = "req_" + uuid.uuid4().hex[:24]  # a fresh one for each request of the connection
        return self.path.split("?")[0]

    def _fail(self, error: Fails) -> None:
        named: dict[str, Any] = {"type": error.type, "message": error.message}
        if error.details is not None:
            named["details"] = dict(error.details)
        body = {"type": "error", "error": named, "request_id": self.request_id}
        self._send(error.status, body, headers=error.headers)

    def _whole(self, body: Body, script: Reply | Breaks) -> None:
        if isinstance(script, Reply):
            for block in as_blocks(script.blocks):
                if isinstance(block, Text):
                    self._hold(block)
            self._send(200, whole_message(body, script))
        elif isinstance(script, ErrorInStream):
            self._fail(Fails(529, script.type, script.message))
        else:
            if isinstance(script, Stall | PingsForever):
                self.server.claude.wait(script.release if isinstance(script, Stall) else None)
            half = json.dumps(whole_message(body, Reply(script.after)))[:-20]
            more = 0 if isinstance(script, EndsEarly | CorruptChunk) else 20  # bytes that never come
            self._start(200, "application/json", {"content-length": str(len(half.encode()) + more)})
            self.wfile.write(half.encode())
            self.close_connection = True

    def _stream(self, body: Body, script: Reply | Breaks) -> None:
        self._start(200, "text/event-stream; charset=utf-8", {"transfer-encoding": "chunked"})
        held: Text | None = None
        for event, text in events(body, script):
            self._event(event)
            if text and text is not held:
                held = text
                self._hold(text)
            if text and text.pause:
                self.server.claude.closes_within(text.pause)
        if isinstance(script, Breaks):
            self._break(script)
        if not self.close_connection:
            self.wfile.write(b"0\r\n\r\n")

    def _hold(self, block: Text) -> None:
        if block.started:
            block.started.set()
        if block.release:
            self.server.claude.wait(block.release)

    def _break(self, script: Breaks) -> None:
        if isinstance(script, ErrorInStream):
            error = {"type": script.type, "message": script.message}
            self._event({"type": "error", "error": error, "request_id": self.request_id})
        elif isinstance(script, Stall):
            self.server.claude.wait(script.release)
            self.close_connection = True
        elif isinstance(script, PingsForever):
            while not self.server.claude.closes_within(PING_SECONDS):
                self._event({"type": "ping"})
            self.close_connection = True
        elif isinstance(script, Drop):
            self.wfile.write(b"400\r\nevent: content_block_delta\ndata: {")
            self.close_connection = True
        elif isinstance(script, CorruptChunk):
            self._chunk('event: content_block_delta\ndata: {"type": "content_block_de\n\n')

    def _event(self, event: Event) -> None:
        self._chunk(f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n")

    def _chunk(self, text: str) -> None:
        # surrogatepass is no option: a lone surrogate arrives from the real API as an escape.
        data = text.encode("utf-8", "backslashreplace")
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _send(self, status: int, body: Any, kind: str = "application/json", headers: Mapping[str, str] = EMPTY) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self._start(status, kind, {"content-length": str(len(data)), **headers})
        self.wfile.write(data)

    def _start(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "request-id": self.request_id, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
