"""Texts to vectors: the built-in model as it is, and Ollama's interface against the scripted Ollama."""

import math
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from jarvis_memory.embeddings import (
    EMBEDDED_CHARACTERS,
    BuiltInEmbeddings,
    OllamaEmbeddings,
    Vector,
    build_embeddings,
    fit,
)
from jarvis_memory.errors import EmbeddingTooLong, EmbeddingUnavailable
from jarvis_memory.settings import Settings
from tests.fake_ollama import (
    Fails,
    FakeOllama,
    FewerVectors,
    Stall,
    WrongDimension,
    input_too_long,
    server_error,
)

ODD_TEXTS = ["", " \n", "\0", "\ud800", "a\udfffb", "🐕" * 50, "x" * 100_000]


def cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def is_normal(vector: Vector) -> bool:
    """768 numbers, length 1."""
    return len(vector) == 768 and math.isclose(cosine(vector, vector), 1, rel_tol=1e-5)


# --- fit --------------------------------------------------------------------------------------------------


def test_a_short_vector_is_padded_and_scaled_without_changing_a_cosine() -> None:
    one, other = fit([3.0, 4.0]), fit([4.0, 3.0])
    assert is_normal(one)
    assert one[:3] == [0.6, 0.8, 0.0]
    assert math.isclose(cosine(one, other), 24 / 25)


def test_a_vector_above_768_numbers_is_refused() -> None:
    assert is_normal(fit([1.0] * 768))
    with pytest.raises(EmbeddingTooLong) as raised:
        fit([1.0] * 769)
    assert raised.value.details == {"size": 769}


@pytest.mark.parametrize("vector", [[], [0.0] * 384, [math.nan, 1.0], [math.inf, 1.0]])
def test_a_vector_without_a_direction_is_refused(vector: list[float]) -> None:
    with pytest.raises(EmbeddingUnavailable):
        fit(vector)


# --- the built-in model -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built_in() -> BuiltInEmbeddings:
    return BuiltInEmbeddings()


def test_the_built_in_model_makes_normal_vectors(built_in: BuiltInEmbeddings) -> None:
    [passage] = built_in.embed_passages(["Mein Hund heißt Bruno"])
    query = built_in.embed_query("Mein Hund heißt Bruno")
    assert is_normal(passage)
    assert is_normal(query)
    assert 0.0 not in passage, "both halves are used"


def test_a_question_and_a_stored_text_are_embedded_differently(built_in: BuiltInEmbeddings) -> None:
    [passage] = built_in.embed_passages(["Mein Hund heißt Bruno"])
    assert cosine(passage, built_in.embed_query("Mein Hund heißt Bruno")) < 0.999


def test_meaning_brings_texts_together(built_in: BuiltInEmbeddings) -> None:
    question = built_in.embed_query("Wie heißt mein Hund?")
    dog, tax = built_in.embed_passages(["Der Hund des Nutzers heißt Bruno.", "Die Steuererklärung ist im Mai fällig."])
    assert cosine(question, dog) > cosine(question, tax)


def test_odd_texts_have_vectors_too(built_in: BuiltInEmbeddings) -> None:
    assert all(is_normal(vector) for vector in built_in.embed_passages(ODD_TEXTS))
    assert all(is_normal(built_in.embed_query(text)) for text in ODD_TEXTS[:5])


def test_nothing_to_embed_is_no_vector(built_in: BuiltInEmbeddings) -> None:
    assert built_in.embed_passages([]) == []


def test_four_threads_at_once_get_what_one_would() -> None:
    fresh = BuiltInEmbeddings()  # so that they also meet while it is being loaded
    texts = [f"Das Gespräch Nummer {number} war lang." for number in range(4)]
    found: dict[int, Vector] = {}

    def embed(number: int) -> None:
        found[number] = fresh.embed_query(texts[number])

    threads = [threading.Thread(target=embed, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, text in enumerate(texts):
        assert cosine(found[number], fresh.embed_query(text)) > 0.9999


# --- Ollama -----------------------------------------------------------------------------------------------


@pytest.fixture
def ollama() -> Iterator[FakeOllama]:
    with FakeOllama() as server:
        yield server


@pytest.fixture
def nomic(ollama: FakeOllama) -> OllamaEmbeddings:
    return OllamaEmbeddings(ollama.base_url, "nomic-embed-text")


def test_the_settings_choose_the_model_and_never_mix() -> None:
    assert build_embeddings(Settings(_env_file=None)).model == "builtin/e5-small+use"
    with_ollama = Settings(_env_file=None, ollama_url="http://localhost:11434")
    assert build_embeddings(with_ollama).model == "ollama/nomic-embed-text"
    named = Settings(_env_file=None, ollama_url="http://localhost:11434", embedding_model="embeddinggemma")
    assert build_embeddings(named).model == "ollama/embeddinggemma"


@pytest.mark.parametrize(
    ("model", "question", "stored"),
    [
        ("nomic-embed-text", "search_query: Hund", "search_document: Hund"),
        ("nomic-embed-text:latest", "search_query: Hund", "search_document: Hund"),
        ("embeddinggemma", "task: search result | query: Hund", "title: none | text: Hund"),
        ("somebody/embeddinggemma:300m", "task: search result | query: Hund", "title: none | text: Hund"),
        ("all-minilm", "Hund", "Hund"),
    ],
)
def test_each_model_gets_its_prefixes(ollama: FakeOllama, model: str, question: str, stored: str) -> None:
    ollama.models.add(model)
    embeddings = OllamaEmbeddings(ollama.base_url, model)
    embeddings.embed_query("Hund")
    embeddings.embed_passages(["Hund", "Katze"])
    assert ollama.requests[0]["input"] == [question]
    assert ollama.requests[1]["input"][0] == stored
    assert len(ollama.requests[1]["input"]) == 2


def test_the_context_is_set_and_long_texts_are_cut(ollama: FakeOllama, nomic: OllamaEmbeddings) -> None:
    nomic.embed_query("x" * 100_000)
    [request] = ollama.requests
    assert request["options"]["num_ctx"] == 2048
    assert request["truncate"] is True
    assert len(request["input"][0]) == len("search_query: ") + EMBEDDED_CHARACTERS


def test_a_text_above_the_context_is_sent_again_shorter(ollama: FakeOllama, nomic: OllamaEmbeddings) -> None:
    ollama.fail(input_too_long())
    [vector] = nomic.embed_passages(["Wort " * 1_000])
    assert is_normal(vector)
    assert [len(request["input"][0]) for request in ollama.requests] == [
        len("search_document: ") + EMBEDDED_CHARACTERS,
        EMBEDDED_CHARACTERS // 4,
    ]


def test_a_text_that_is_still_too_long_is_not_sent_for_ever(ollama: FakeOllama, nomic: OllamaEmbeddings) -> None:
    ollama.always = input_too_long()
    with pytest.raises(EmbeddingUnavailable):
        nomic.embed_query("Hund")
    assert len(ollama.requests) == 2


def test_a_missing_model_names_the_command_that_fetches_it(ollama: FakeOllama) -> None:
    with pytest.raises(EmbeddingUnavailable, match="ollama pull bge-m3"):
        OllamaEmbeddings(ollama.base_url, "bge-m3").embed_query("Hund")


@pytest.mark.parametrize("failure", [server_error(), Fails(400, "bad"), FewerVectors()])
def test_a_failure_of_the_server_is_unavailable(ollama: FakeOllama, nomic: OllamaEmbeddings, failure: Any) -> None:
    ollama.fail(failure)
    with pytest.raises(EmbeddingUnavailable):
        nomic.embed_passages(["Hund", "Katze"])
    assert len(nomic.embed_passages(["Hund", "Katze"])) == 2


def test_vectors_above_768_numbers_are_refused_by_name(ollama: FakeOllama, nomic: OllamaEmbeddings) -> None:
    ollama.fail(WrongDimension(1024))
    with pytest.raises(EmbeddingTooLong):
        nomic.embed_query("Hund")


def test_shorter_vectors_are_padded(ollama: FakeOllama, nomic: OllamaEmbeddings) -> None:
    ollama.fail(WrongDimension(384))
    vector = nomic.embed_query("Hund")
    assert is_normal(vector)
    assert set(vector[384:]) == {0.0}


def test_a_server_that_falls_silent_is_unavailable(ollama: FakeOllama, nomic: OllamaEmbeddings) -> None:
    ollama.fail(Stall())
    with pytest.raises(EmbeddingUnavailable):
        nomic._embed(["Hund"], timeout=0.2)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with FakeOllama() as gone:
        url = gone.base_url
    with pytest.raises(EmbeddingUnavailable):
        OllamaEmbeddings(url, "nomic-embed-text").embed_query("Hund")


def test_odd_texts_reach_ollama_as_valid_json(ollama: FakeOllama, nomic: OllamaEmbeddings) -> None:
    assert all(is_normal(vector) for vector in nomic.embed_passages(ODD_TEXTS))
    assert nomic.embed_passages([]) == []
    assert len(ollama.requests) == 1
