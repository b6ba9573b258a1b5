"""What `streamlit run` starts: the chat page with its neighbours, security headers, an orderly start and end."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from starlette.middleware import Middleware

from jarvis_memory.errors import JarvisError, SettingsError
from jarvis_memory.settings import print_settings_error
from jarvis_memory.ui import wiring

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
log = logging.getLogger("jarvis")

# Nothing is loaded from elsewhere, whatever a text of the model, a mail or a document contains.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; "
    "media-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]


class SecurityHeaders:
    """Adds HEADERS to every answer."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            await send(message)

        await self.app(scope, receive, send_with_headers)


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Build the parts before the first page asks, and say so in the terminal; shut down in order."""
    # Else every request of the SDK and every look at the migrations would be a line.
    for talkative in ("httpx2", "alembic.runtime.migration"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    try:
        parts = await asyncio.to_thread(wiring.get_parts)
        parts.background.warm_up()
        log.info("Model %s, embeddings %s", parts.settings.jarvis_model, parts.embeddings.model)
    except SettingsError as error:
        print_settings_error(error)
    except JarvisError as error:
        log.error("%s %s", error, error.details)
    print(f"\n  JARVIS: http://localhost:{st.get_option('server.port')}   (Ctrl-C ends it)\n", flush=True)
    yield
    await asyncio.to_thread(wiring.shut_down)


app = st.App("chat.py", lifespan=lifespan, middleware=[Middleware(SecurityHeaders)])
