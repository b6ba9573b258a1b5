"""The scripted Ollama, asked over HTTP as the app does."""

import math
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests import fake_ollama as fake
from tests.fake_ollama import FakeOllama, vector_of


@pytest.fixture
def ollama() -> Iterator[FakeOllama]:
    with FakeOllama() as server:
        yield server


def embed(ollama: FakeOllama, texts: Any, **more: Any) -> requests.Response:
    sent = {"model": "embeddinggemma", "input": texts, **more}
    return requests.post(f"{ollama.base_url}/api/embed", json=sent, timeout=5)


def likeness(one: str, other: str) -> float:
    return sum(a * b for a, b in zip(vector_of(one), vector_of(other), strict=True))


def test_answers_one_text_with_one_normalised_vector(ollama: FakeOllama) -> None:
    answer = embed(ollama, "Mein Hund heißt Bruno").json()
    assert answer["model"] == "embeddinggemma"
    assert [len(vector) for vector in answer["embeddings"]] == [768]
    assert math.isclose(math.hypot(*answer["embeddings"][0]), 1.0)


def test_answers_several_texts_in_their_order(ollama: FakeOllama) -> None:
    vectors = embed(ollama, ["Hund", "Katze"]).json()["embeddings"]
    assert vectors == [vector_of("Hund"), vector_of("Katze")]
    assert embed(ollama, []).json()["embeddings"] == []


def test_similar_texts_are_close_and_others_are_not() -> None:
    question = "Wie heißt mein Hund?"
    assert likeness(question, "Mein Hund heißt Bruno") > 0.5
    assert likeness("Hunde", "Hund") > 0.1
    assert likeness("Ich bin mit dem Hund", "Ich bin mit dem Rad") < 0.2
    assert abs(likeness(question, "Die Katze schläft auf dem Sofa")) < 0.1


def test_a_text_without_words_has_a_vector_too() -> None:
    assert math.hypot(*vector_of("…")) == 1.0


def test_the_dimension_can_be_set() -> None:
    with FakeOllama(dimension=384) as ollama:
        assert len(embed(ollama, "Hund").json()["embeddings"][0]) == 384


def test_records_what_was_asked(ollama: FakeOllama) -> None:
    embed(ollama, "Hund", truncate=True, options={"num_ctx": 4096})
    assert ollama.requests == [
        {"model": "embeddinggemma", "input": "Hund", "truncate": True, "options": {"num_ctx": 4096}}
    ]


def test_an_unknown_model_is_not_found(ollama: FakeOllama) -> None:
    answer = embed(ollama, "Hund", model="gemma")
    assert answer.status_code == 404
    assert answer.json() == {"error": 'model "gemma" not found, try pulling it first'}
    ollama.models.add("gemma")
    assert embed(ollama, "Hund", model="gemma:latest").status_code == 200


def test_refuses_a_text_beyond_the_context_unless_it_may_cut(ollama: FakeOllama) -> None:
    long = "Hund " * 2000
    refused = embed(ollama, long, truncate=False)
    assert (refused.status_code, refused.json()["error"]) == (
        400,
        "the input length exceeds the context length",
    )
    assert embed(ollama, long).status_code == 200
    assert embed(ollama, long, truncate=False, options={"num_ctx": 8192}).status_code == 200


@pytest.mark.parametrize("failure", [fake.model_not_found("x"), fake.input_too_long(), fake.server_error()])
def test_fails_once_when_told_to(ollama: FakeOllama, failure: fake.Fails) -> None:
    ollama.fail(failure)
    answer = embed(ollama, "Hund")
    assert (answer.status_code, answer.json()["error"]) == (failure.status, failure.message)
    assert embed(ollama, "Hund").status_code == 200


def test_fails_always_when_told_to(ollama: FakeOllama) -> None:
    ollama.always = fake.server_error()
    assert [embed(ollama, "Hund").status_code for _ in range(2)] == [500, 500]


def test_gives_wrong_vectors_when_told_to(ollama: FakeOllama) -> None:
    ollama.fail(fake.WrongDimension(5), fake.FewerVectors())
    assert len(embed(ollama, "Hund").json()["embeddings"][0]) == 5
    assert len(embed(ollama, ["Hund", "Katze"]).json()["embeddings"]) == 1


def test_stalls_until_released(ollama: FakeOllama) -> None:
    release = threading.Event()
    ollama.fail(fake.Stall(), fake.Stall(release))
    with pytest.raises(requests.ReadTimeout):
        requests.post(f"{ollama.base_url}/api/embed", json={"model": "x", "input": "x"}, timeout=0.2)
    release.set()
    with pytest.raises(requests.ConnectionError):
        embed(ollama, "Hund")


def test_lists_its_models_and_its_version(ollama: FakeOllama) -> None:
    models = requests.get(f"{ollama.base_url}/api/tags", timeout=5).json()["models"]
    assert [model["name"] for model in models] == ["embeddinggemma:latest", "nomic-embed-text:latest"]
    assert requests.get(f"{ollama.base_url}/api/version", timeout=5).json() == {"version": "0.14.0"}
    assert requests.get(f"{ollama.base_url}/api/nothing", timeout=5).status_code == 404
    assert requests.get(f"{ollama.base_url}/", timeout=5).text == "Ollama is running"
    assert requests.post(f"{ollama.base_url}/api/embeddings", json={}, timeout=5).status_code == 404
