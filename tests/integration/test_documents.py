"""The knowledge base: originals, what is read of them, and searching it. Documents are read by a real process."""

import threading
from collections.abc import Callable

import psutil
import pytest

from jarvis_memory.assembly import Parts
from jarvis_memory.database import Database, Lock
from jarvis_memory.document_index import read_next_document
from jarvis_memory.document_search import Passage, get_passage, passages_of, search_passages
from jarvis_memory.documents import (
    Document,
    add_document,
    count_documents,
    delete_document,
    find_namesake,
    get_document,
    list_documents,
    load_original,
    read_again,
    rename_document,
)
from jarvis_memory.embeddings import Embeddings
from jarvis_memory.erasure import delete_everything
from jarvis_memory.errors import DocumentEmpty, DocumentNameUnusable, DocumentNotFound, DocumentTooLarge
from jarvis_memory.hybrid_search import COMMON
from jarvis_memory.indexing import index_some
from jarvis_memory.settings import Settings
from tests.document_files import pdf_of
from tests.integration.chats import OneVector, at_once, one, run, somebody_else, wait_until

SETTINGS = Settings(_env_file=None)
# Takes seconds to read.
LONG = ["\n".join(f"Zeile {line} der Seite {page} mit einigen Wörtern." for line in range(50)) for page in range(900)]
LEASE = """# Mietvertrag

## § 4 Miete

Die Miete beträgt 840 Euro und ist bis zum dritten Werktag zu zahlen.

## § 9 Kündigung

Die Frist für eine Kündigung beträgt drei Monate zum Monatsende.
"""
MANUAL = """# Waschmaschine

## Fehler E18

Das Wasser läuft nicht ab: Reinigen Sie das Flusensieb und prüfen Sie den Schlauch.
"""


class Library:
    """The documents of one person, added and read in one line."""

    def __init__(self, database: Database, user_id: int) -> None:
        self.database = database
        self.user_id = user_id

    def add(self, name: str, content: str | bytes, *, replaces_id: int | None = None) -> int:
        with self.database.begin() as connection:
            document_id, _ = add_document(
                connection,
                user_id=self.user_id,
                name=name,
                content=content.encode() if isinstance(content, str) else content,
                megabytes=1,
                replaces_id=replaces_id,
            )
        return document_id

    def read(self, name: str, content: str | bytes, *, replaces_id: int | None = None) -> int:
        document_id = self.add(name, content, replaces_id=replaces_id)
        self.read_all()
        # The background of an app may have been at it.
        state = "SELECT count(*) AS n FROM documents WHERE id = :id AND status = 'waiting'"
        wait_until(lambda: one(self.database, state, id=document_id).n == 0)
        return document_id

    def read_all(self, settings: Settings = SETTINGS) -> None:
        while read_next_document(self.database, settings):
            pass

    def embed(self, embeddings: Embeddings) -> None:
        while index_some(self.database, embeddings):
            pass

    def get(self, document_id: int) -> Document:
        with self.database.begin() as connection:
            return get_document(
                connection, user_id=self.user_id, document_id=document_id, embedding_model=OneVector.model
            )

    def numbers(self) -> list[int]:
        with self.database.begin() as connection:
            found = list_documents(connection, user_id=self.user_id, embedding_model="any", limit=100)
        return [one.id for one in found]

    def names(self, query: str = "") -> list[str]:
        with self.database.begin() as connection:
            found = list_documents(connection, user_id=self.user_id, embedding_model="any", query=query, limit=10)
            assert count_documents(connection, user_id=self.user_id, query=query) == len(found)
        return [one.name for one in found]

    def search(
        self, query: str, embeddings: Embeddings | None = None, *, of: list[int] | None = None, user_id: int = 0
    ) -> list[Passage]:
        with self.database.begin() as connection:
            return search_passages(
                connection,
                user_id=user_id or self.user_id,
                query=query,
                embedding=embeddings.embed_query(query) if embeddings else None,
                embedding_model=embeddings.model if embeddings else "none",
                limit=3,
                document_ids=of,
            )

    def rename(self, document_id: int, name: str) -> str:
        with self.database.begin() as connection:
            return rename_document(connection, user_id=self.user_id, document_id=document_id, name=name)

    def delete(self, document_id: int) -> int:
        with self.database.begin() as connection:
            return delete_document(connection, user_id=self.user_id, document_id=document_id).chunks

    def counts(self) -> tuple[int, int, int]:
        """Rows in documents, document_chunks and chunk_words."""
        row = one(
            self.database,
            """SELECT (SELECT count(*) FROM documents) AS d, (SELECT count(*) FROM document_chunks) AS c,
                      (SELECT count(*) FROM chunk_words) AS w""",
        )
        return row.d, row.c, row.w


@pytest.fixture
def library(database: Database, user_id: int) -> Library:
    return Library(database, user_id)


def test_a_document_is_kept_as_it_came_and_read_with_its_headings(library: Library) -> None:
    number = library.read("Mietvertrag.md", LEASE)
    document = library.get(number)
    assert (document.name, document.kind, document.status, document.pages) == ("Mietvertrag.md", "markdown", "ready", 0)
    assert document.size == len(LEASE.encode())
    with library.database.begin() as connection:
        assert load_original(connection, user_id=library.user_id, document_id=number) == LEASE.encode()
        passages = passages_of(
            connection, user_id=library.user_id, document_id=number, first=0, last=99, by_page=False, limit=99
        )
    assert [one.heading for one in passages] == ["Mietvertrag › § 4 Miete", "Mietvertrag › § 9 Kündigung"]
    assert "drei Monate" in passages[1].content


def test_a_pdf_keeps_the_page_of_each_passage(library: Library) -> None:
    number = library.read("Brief.pdf", pdf_of(["Erste Seite mit Text.", "Zweite Seite mit der Kundennummer 4711."]))
    assert library.get(number).pages == 2
    [found] = [one for one in library.search("Kundennummer 4711") if "4711" in one.content]
    assert (found.document, found.page, found.found_by) == ("Brief.pdf", 2, "words")
    with library.database.begin() as connection:
        of_page = passages_of(
            connection, user_id=library.user_id, document_id=number, first=2, last=2, by_page=True, limit=9
        )
    assert [one.id for one in of_page] == [found.id]


def test_a_document_is_found_by_its_words_before_it_has_vectors(library: Library, encoder: Embeddings) -> None:
    number = library.read("Anleitung.md", MANUAL)
    assert (library.get(number).chunks, library.get(number).embedded, library.get(number).is_pending) == (1, 0, True)
    assert library.search("Was bedeutet E18?")[0].document_id == number
    # Also in a search by meaning, beside those that have one.
    library.embed(encoder)
    later = library.read("Mietvertrag.md", LEASE)
    assert library.search("Kündigung Frist", encoder)[0].document_id == later


def test_a_document_is_found_by_its_meaning_once_it_has_vectors(library: Library, encoder: Embeddings) -> None:
    lease, manual = library.read("Vertrag.md", LEASE), library.read("Anleitung.md", MANUAL)
    library.embed(encoder)
    document = library.get(manual)
    assert not document.is_pending or document.embedded == 0  # counted for the model that is asked for
    found = library.search("Wie lange im Voraus muss ich Bescheid geben, wenn ich ausziehe?", encoder)[0]
    assert (found.document_id, found.found_by) == (lease, "meaning")
    assert "drei Monate" in found.content


def test_the_name_of_a_document_counts_as_its_words_also_after_it_was_renamed(library: Library) -> None:
    number = library.read("Hespeler_Rechnung.md", "Der Betrag ist 99 Euro.")
    assert [one.document_id for one in library.search("Hespeler")] == [number]
    assert library.rename(number, "Zipfel-Rechnung") == "Zipfel-Rechnung.md"
    library.embed(OneVector())  # the background counts
    assert library.search("Hespeler") == []
    assert [one.document_id for one in library.search("Zipfel Rechnung")] == [number]
    assert one(library.database, "SELECT min(words) AS n FROM document_chunks").n == len(
        {"zipfel", "rechnung", "md", "betrag", "99", "euro"}
    )


@pytest.mark.parametrize(
    ("file", "name", "stored"),
    [
        ("brief.eml", "Brief vom Vermieter", "Brief vom Vermieter.eml"),
        ("brief.eml", "Brief.EML", "Brief.EML"),
        ("tabelle.csv", "Tabelle.txt", "Tabelle.csv"),
        ("miete.md", "Miete 05/2024", "Miete 05-2024.md"),
        ("notiz.txt", "Vertrag A\\B, Nr. 5", "Vertrag A-B, Nr. 5.txt"),
        ("notiz", "Andere Notiz", "Andere Notiz"),
    ],
)
def test_a_document_keeps_its_ending_and_is_read_as_before(library: Library, file: str, name: str, stored: str) -> None:
    number = library.read(file, "From: anna@example.org\nSubject: Hallo\n\nText; mit, Zeichen")
    kind = library.get(number).kind
    assert library.rename(number, name) == stored
    with library.database.begin() as connection:
        read_again(connection, user_id=library.user_id, document_id=number)
    library.read_all()
    assert library.get(number).kind == kind


@pytest.mark.parametrize("name", ["", "   ", "x" * 121])
def test_a_document_needs_a_usable_name(library: Library, name: str) -> None:
    number = library.add("Brief.txt", "Hallo")
    with pytest.raises(DocumentNameUnusable):
        library.rename(number, name)


def test_the_same_file_is_recognised_whatever_its_name(library: Library) -> None:
    first = library.add("Brief.txt", "Hallo")
    assert library.add("Kopie von Brief.txt", "Hallo") == first
    assert library.names() == ["Brief.txt"]


def test_two_uploads_of_the_same_file_at_once_make_one_document(library: Library) -> None:
    barrier, numbers = threading.Barrier(4), []

    def add() -> None:
        barrier.wait()
        numbers.append(library.add("Brief.txt", "Hallo"))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(numbers) == 4
    assert len(set(numbers)) == 1


def test_a_namesake_with_other_content_is_told_and_the_same_content_is_not(library: Library) -> None:
    number = library.add("Brief.txt", "Hallo")
    with library.database.begin() as connection:
        ask = {"connection": connection, "user_id": library.user_id}
        assert find_namesake(name="BRIEF.txt", content=b"Neu", **ask) == number
        assert find_namesake(name="Brief.txt", content=b"Hallo", **ask) is None
        assert find_namesake(name="Brief2.txt", content=b"Neu", **ask) is None


@pytest.mark.parametrize(
    ("content", "error"), [(b"", DocumentEmpty), (b" \n ", DocumentEmpty), (b"x" * 1_000_001, DocumentTooLarge)]
)
def test_what_is_empty_or_too_large_is_refused_at_the_door(
    library: Library, content: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        library.add("Brief.txt", content)
    assert library.names() == []


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("kaputt.pdf", b"%PDF-1.7\nkaputt", "DocumentBroken"),
        ("scan.pdf", pdf_of([""]), "DocumentWithoutText"),
        ("geheim.pdf", pdf_of(["Text"], password="geheim"), "DocumentLocked"),
        ("bild.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "DocumentUnknown"),
    ],
)
def test_what_cannot_be_read_says_so_and_holds_up_nothing_else(
    library: Library, name: str, content: bytes, error: str
) -> None:
    wrong = library.add(name, content)
    right = library.add("Brief.txt", "Hallo Anna")
    library.read_all()
    assert (library.get(wrong).status, library.get(wrong).error) == ("failed", error)
    assert library.get(right).status == "ready"


def test_the_limit_that_was_hit_is_kept_with_the_document(library: Library) -> None:
    number = library.add("lang.pdf", pdf_of(["eins", "zwei", "drei"]))
    library.read_all(Settings(_env_file=None, jarvis_document_pages=2))
    document = library.get(number)
    assert (document.error, document.error_details["limit"]) == ("DocumentTooManyPages", 2)
    with library.database.begin() as connection:
        read_again(connection, user_id=library.user_id, document_id=number)
    library.read_all()
    assert (library.get(number).status, library.get(number).error) == ("ready", None)


def test_reading_again_keeps_the_passages_that_are_as_they_were(library: Library) -> None:
    number = library.read("Mietvertrag.md", LEASE)
    library.embed(OneVector())
    before = [found.id for found in library.search("Miete Kündigung")]
    with library.database.begin() as connection:
        read_again(connection, user_id=library.user_id, document_id=number)
    assert library.get(number).status == "waiting"
    assert [found.id for found in library.search("Miete Kündigung")] == before, "it is searchable meanwhile"
    library.read_all()
    assert [found.id for found in library.search("Miete Kündigung")] == before
    assert library.get(number).embedded == library.get(number).chunks == 2


def test_a_new_version_takes_the_place_of_the_old_one(library: Library) -> None:
    number = library.read("Mietvertrag.md", LEASE)
    [old] = [found for found in library.search("Kündigung Frist") if "drei Monate" in found.content]
    [kept] = [found for found in library.search("Miete 840") if "840" in found.content]
    library.add("Mietvertrag 2027.md", LEASE.replace("drei Monate", "sechs Monate"), replaces_id=number)
    assert library.names() == ["Mietvertrag 2027.md", "Mietvertrag.md"]
    library.read_all()
    assert library.names() == ["Mietvertrag.md"]
    assert library.get(number).replaces_id is None
    assert "sechs Monate" in library.search("Kündigung Frist")[0].content
    with library.database.begin() as connection:
        assert get_passage(connection, user_id=library.user_id, passage_id=old.id) is None
        assert get_passage(connection, user_id=library.user_id, passage_id=kept.id) is not None
        assert b"sechs Monate" in load_original(connection, user_id=library.user_id, document_id=number)
    assert library.counts()[0] == 1


def test_a_new_version_that_cannot_be_read_leaves_the_old_one_as_it_is(library: Library) -> None:
    number = library.read("Brief.md", "Der alte Brief.")
    broken = library.read("Brief.pdf", b"%PDF-1.7\nkaputt", replaces_id=number)
    assert library.get(broken).status == "failed"
    assert library.search("alte Brief")[0].document_id == number


def test_a_new_version_has_the_name_that_the_person_gave_and_the_ending_of_its_file(library: Library) -> None:
    number = library.read("scan.txt", "Die Miete ist 800 Euro.")
    library.rename(number, "Omega")
    library.read("scan_0042.md", "Die Miete ist 900 Euro.", replaces_id=number)
    assert library.names() == ["Omega.md"]
    assert [one.document_id for one in library.search("Omega")] == [number]


@pytest.mark.parametrize("second", [b"%PDF-1.7 kaputt", b"Die Miete ist 850 Euro."], ids=["failed", "waiting"])
def test_a_version_in_place_of_one_that_has_not_taken_its_place_takes_it(library: Library, second: bytes) -> None:
    number = library.read("Miete.txt", "Die Miete ist 800 Euro.")
    failed = library.add("Miete.pdf", second, replaces_id=number)
    if second.startswith(b"%PDF"):
        library.read_all()
    with library.database.begin() as connection:
        options = {"connection": connection, "user_id": library.user_id, "content": b"neu"}
        assert find_namesake(name="Miete.pdf", **options) == number
    library.read("Miete.txt", "Die Miete ist 900 Euro.", replaces_id=failed)
    library.read_all()
    assert [(one, library.get(one).replaces_id) for one in library.numbers()] == [(number, None)]
    assert ["900" in found.content for found in library.search("Miete Euro")] == [True]


def test_an_older_version_that_is_read_later_does_not_come_back(library: Library, database: Database) -> None:
    number = library.read("Miete.txt", "Die Miete ist 800 Euro.")
    older = library.add("Miete.txt", "Die Miete ist 850 Euro.", replaces_id=number)
    library.add("Miete.txt", "Die Miete ist 900 Euro.", replaces_id=number)
    with database.try_lock(Lock.DOCUMENT, older):  # another process is at it
        library.read_all()
    library.read_all()
    assert library.numbers() == [number]
    assert ["900" in found.content for found in library.search("Miete Euro")] == [True]


def test_a_version_in_place_of_nothing_stands_for_itself(library: Library, database: Database) -> None:
    stranger = Library(database, somebody_else(database))
    theirs = stranger.read("Brief.md", "Der Brief der anderen.")
    for gone in (4711, theirs):
        number = library.read("Brief.md", f"Mein Brief statt {gone}.", replaces_id=gone)
        assert (library.get(number).status, library.get(number).replaces_id) == ("ready", None)
    assert stranger.search("Brief")[0].content == "Der Brief der anderen."


def test_a_new_version_of_a_document_that_was_deleted_meanwhile_stands_for_itself(library: Library) -> None:
    number = library.read("Brief.md", "Der alte Brief.")
    newer = library.add("Brief.md", "Der neue Brief.", replaces_id=number)
    library.delete(number)
    library.read_all()
    assert (library.get(newer).status, library.get(newer).replaces_id) == ("ready", None)


def test_deletions_and_new_versions_that_meet_do_not_stand_in_each_others_way(library: Library) -> None:
    for turn in range(8):
        number = library.read("Brief.md", f"Der Brief Nummer {turn}.")
        library.add("Brief.md", f"Die neue Fassung {turn}.", replaces_id=number)
        library.add("Brief.md", f"Die neueste Fassung {turn}.", replaces_id=number)
        results = at_once(library.read_all, library.read_all, lambda number=number: library.delete(number))
        assert [one for one in results if isinstance(one, Exception)] == []
        library.read_all()
        assert all(library.get(one).status == "ready" for one in library.numbers())
    assert delete_everything(library.database, user_id=library.user_id).documents > 0
    assert library.counts() == (0, 0, 0)


def test_a_deleted_document_leaves_nothing_and_its_receipt_counts(library: Library) -> None:
    number = library.read("Mietvertrag.md", LEASE)
    library.embed(OneVector())
    assert library.delete(number) == 2
    assert library.counts() == (0, 0, 0)
    assert library.search("Miete", OneVector()) == []
    with pytest.raises(DocumentNotFound):
        library.delete(number)


def test_what_was_deleted_while_it_was_read_does_not_come_back(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jarvis_memory import document_index

    number = library.add("Mietvertrag.md", LEASE)
    read = document_index.read_document

    def deleted_meanwhile(*arguments: object, **options: object) -> object:
        library.delete(number)
        return read(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(document_index, "read_document", deleted_meanwhile)
    library.read_all()
    assert library.counts() == (0, 0, 0)


def test_a_surprise_with_one_document_does_not_stop_the_others(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jarvis_memory import document_index

    wrong, right = library.add("eins.md", "Ein Brief"), library.add("zwei.md", "Noch ein Brief")
    read = document_index.read_document

    def surprise(name: str, *arguments: object, **options: object) -> object:
        if name == "eins.md":
            raise RuntimeError("a surprise")
        return read(name, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(document_index, "read_document", surprise)
    library.read_all()
    assert [library.get(wrong).status, library.get(right).status] == ["failed", "ready"]


def test_documents_are_read_by_one_process_at_a_time(library: Library, database: Database) -> None:
    first, second = library.add("eins.md", "Ein Brief"), library.add("zwei.md", "Noch ein Brief")
    with database.try_lock(Lock.DOCUMENT, first):
        assert read_next_document(database, SETTINGS)
        assert not read_next_document(database, SETTINGS)
    assert [library.get(first).status, library.get(second).status] == ["waiting", "ready"]


def test_nothing_of_another_person_is_seen_found_or_changed(library: Library, database: Database) -> None:
    number = library.read("Mietvertrag.md", LEASE)
    library.embed(OneVector())
    stranger = Library(database, somebody_else(database))
    assert stranger.names() == []
    assert stranger.search("Kündigung", OneVector()) == []
    assert stranger.search("Kündigung", of=[number]) == []
    with database.begin() as connection:
        passage = library.search("Kündigung")[0].id
        assert get_passage(connection, user_id=stranger.user_id, passage_id=passage) is None
        options = {"user_id": stranger.user_id, "document_id": number}
        for change in (delete_document, read_again, load_original):
            with pytest.raises(DocumentNotFound):
                change(connection, **options)
        with pytest.raises(DocumentNotFound):
            rename_document(connection, name="Meins", **options)
        assert passages_of(connection, first=0, last=9, by_page=False, limit=9, **options) == []
    # The same bytes are a document of their own.
    assert stranger.read("Mietvertrag.md", LEASE) != number


def test_a_search_can_be_of_some_documents(library: Library, encoder: Embeddings) -> None:
    lease, manual = library.read("Vertrag.md", LEASE), library.read("Anleitung.md", MANUAL)
    library.embed(encoder)
    assert {one.document_id for one in library.search("Kündigung", encoder, of=[manual])} == {manual}
    assert {one.document_id for one in library.search("Kündigung", encoder, of=[lease])} == {lease}
    assert library.search("Kündigung", encoder, of=[]) == []


def test_a_word_that_is_common_elsewhere_is_found_in_the_document_that_is_searched(
    library: Library,
) -> None:
    library.read("gross.md", "\n\n".join(f"# {n}\n\nDie Miete von {n}." for n in range(COMMON + 50)))
    small = library.read("klein.txt", "Die Miete steht im Vertrag.")
    assert [one.document_id for one in library.search("Miete", of=[small])] == [small]


def test_names_are_searched_literally(library: Library) -> None:
    for name in ("100% Wolle.txt", "a_b.txt", "ab.txt"):
        library.add(name, name)
    assert library.names("%") == ["100% Wolle.txt"]
    assert library.names("_") == ["a_b.txt"]
    assert library.names("AB") == ["ab.txt"]
    assert library.names("nichts") == []


def test_a_change_of_the_embedding_model_embeds_passages_anew(library: Library) -> None:
    number = library.read("Mietvertrag.md", LEASE)
    run(library.database, "UPDATE document_chunks SET embedding_model = 'old/model'")
    assert library.get(number).embedded == 0
    library.embed(OneVector())
    assert library.get(number).embedded == 2


def test_a_short_document_does_not_wait_behind_a_long_one(library: Library) -> None:
    library.read("lang.md", "\n\n".join(f"# Kapitel {n}\n\nInhalt von Kapitel {n}." for n in range(100)))
    short = library.read("kurz.md", "Hallo")
    assert index_some(library.database, OneVector())
    assert library.get(short).embedded == 1


def test_the_background_reads_and_embeds_what_was_added(parts: Parts) -> None:
    library = Library(parts.database, parts.user_id)
    number = library.add("Mietvertrag.md", LEASE)
    parts.background.wake()

    def is_done() -> bool:
        row = one(
            parts.database,
            "SELECT count(*) FILTER (WHERE embedding_model = :model) AS n FROM document_chunks WHERE document_id = :id",
            model=parts.embeddings.model,
            id=number,
        )
        return bool(row.n == 2)

    wait_until(is_done)
    assert library.get(number).status == "ready"


def test_a_stop_in_the_middle_of_a_document_leaves_it_waiting_and_no_process(build: Callable[..., Parts]) -> None:
    parts = build()
    library = Library(parts.database, parts.user_id)
    number = library.add("lang.pdf", pdf_of(LONG))
    parts.background.wake()
    wait_until(_is_reading)
    parts.background.stop(10)
    wait_until(lambda: not _is_reading())
    assert library.get(number).status == "waiting"


def _is_reading() -> bool:
    return any("document_process" in " ".join(child.cmdline()) for child in psutil.Process().children())
