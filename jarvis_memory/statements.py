"""Which exchanges state a fact, so that forgetting it reaches them too. A reading by words, without a model.

An exchange is a user's message with the answer that follows it. It is judged as one text, because "Wie heißt mein
Hund?" and "Bruno." state the fact only together. Nothing is changed here.
"""

import re

from sqlalchemy import Connection, text

from jarvis_memory.facts import Fact
from jarvis_memory.text import sql_words, without_marks, words

# A text states a fact when it has more than this share of its words, weighted by rarity: "Bruno ist mein Hund"
# states "Mein Hund heißt Bruno"; "Wie groß wird ein Hund?" does not.
STATES = 0.5

# German writes nouns and names with a capital, English names: they carry a fact, and the other words little of it.
WEIGHT_OF_OTHER_WORDS = 0.3

# Words that facts are dressed in: whoever states the same in other words leaves them out.
_DRESS = frozenset(
    words(
        "nutzer nutzers nutzerin benutzer benutzers benutzerin user users user's heißt heisst heißen heiße hieß "
        "name namens named called"
    )
)
_DETERMINERS = frozenset(
    words(
        "der die das des dem den ein eine einen einem einer eines mein meine meinen meinem meiner meines sein seine "
        "seinen seinem seiner seines ihr ihre ihren ihrem ihrer ihres unser unsere unseren unserem unserer unseres "
        "im am zum zur beim vom the a an my his her its our their"
    )
)

_STATING = f"""
    WITH fact AS MATERIALIZED (
        SELECT lexeme AS word, bool_or(w.carries) AS carries, bool_or(w.is_name) AS is_name,
               length(lexeme) > 3 AND lexeme !~ '[0-9]' AS begins
        FROM unnest(CAST(:words AS text[]), CAST(:carries AS boolean[]), CAST(:names AS boolean[]))
                 AS w(word, carries, is_name),
             unnest(tsvector_to_array(to_tsvector('german', w.word))) AS lexeme
        WHERE length(to_tsvector('english', w.word)) > 0
        GROUP BY 1
    ), asked AS (
        -- The index takes an opening mark for a part of the word.
        SELECT CAST(string_agg(quote_literal(mark || word) || ':*', ' | ') AS tsquery) AS words
        FROM fact, unnest(ARRAY['', '„', '“', '‚', '‘', '’', '»', '«', '›', '‹', '–', '—', '…']) AS mark
    ), hits AS (
        SELECT m.id, m.conversation_id, m.role FROM messages m, asked
        WHERE m.user_id = :user_id AND to_tsvector('german', left(m.content, 100000)) @@ asked.words
        UNION
        SELECT m.id, m.conversation_id, m.role FROM messages m
        WHERE m.user_id = :user_id AND (m.id = :source OR position(:literal IN lower(m.content)) > 0)
    ), beginnings AS (
        SELECT DISTINCT conversation_id, CASE WHEN role = 'user' THEN id ELSE (
            SELECT max(u.id) FROM messages u
            WHERE u.conversation_id = hits.conversation_id AND u.role = 'user' AND u.id < hits.id
        ) END AS number
        FROM hits
    ), exchanges AS MATERIALIZED (
        SELECT b.conversation_id, b.number, array_agg(m.id) AS ids,
               (SELECT max(u.id) FROM messages u WHERE u.conversation_id = b.conversation_id
                AND u.role = 'user' AND u.id < b.number) AS before,
               string_agg(left(m.content, 100000), E'\\n' ORDER BY m.id) AS content
        FROM beginnings b JOIN messages m ON m.conversation_id = b.conversation_id
            AND m.id >= b.number AND m.id < coalesce((
                SELECT min(u.id) FROM messages u WHERE u.conversation_id = b.conversation_id
                AND u.role = 'user' AND u.id > b.number), 9223372036854775807)
        GROUP BY 1, 2
    ), texts AS MATERIALIZED (
        SELECT 'exchange' AS kind, number, tsvector_to_array({sql_words("content")}) AS words FROM exchanges
        UNION ALL
        -- A summary can put together what no single exchange says ("er", "sie" become names there).
        SELECT 'summary', conversation_id, tsvector_to_array({sql_words("summary")}) FROM conversation_summaries
        WHERE user_id = :user_id AND summary IS NOT NULL
          AND conversation_id IN (SELECT conversation_id FROM exchanges)
    ), present AS MATERIALIZED (
        SELECT DISTINCT t.kind, t.number, f.word, f.carries
        FROM texts t CROSS JOIN LATERAL unnest(t.words) AS said
        -- "Brunos" and "Hundeleine", but not "30" for "3".
        JOIN fact f ON said IN (f.word, f.word || 's') OR (f.begins AND starts_with(said, f.word))
    ), rarities AS (
        -- Inverse document frequencies, as in BM25; a word that nobody said tells nothing apart.
        SELECT f.word, f.carries, f.is_name,
               ln(1 + n / (0.5 + coalesce(nullif(count(p.word), 0), n))) AS rarity
        FROM fact f LEFT JOIN present p ON p.word = f.word AND p.kind = 'exchange',
             (SELECT CAST(count(*) AS float) AS n FROM exchanges) AS all_exchanges
        GROUP BY 1, 2, 3, n
    ), weights AS (
        SELECT *, rarity * CASE WHEN carries THEN 1 ELSE :other END AS weight FROM rarities
    ), whole AS (
        SELECT sum(weight) AS weight, sum(rarity) AS rarity, least(2, count(*)) AS words,
               least(2, count(*) FILTER (WHERE carries)) AS carrying
        FROM weights
    ), said AS (
        SELECT kind, number, word FROM present
        UNION
        -- "Ich habe einen Hund." and next "Er heißt Bruno."
        SELECT 'pair', e.number, p.word
        FROM (SELECT number, number AS part FROM exchanges UNION ALL SELECT number, before FROM exchanges) AS e
        JOIN present p ON p.kind = 'exchange' AND p.number = e.part
    ), stating AS MATERIALIZED (
        SELECT kind, number FROM said JOIN weights w USING (word), whole
        GROUP BY kind, number, whole.weight, whole.rarity, whole.words, whole.carrying
        HAVING (count(*) >= whole.words AND count(*) FILTER (WHERE w.carries) >= whole.carrying
                AND sum(w.weight) > :states * whole.weight)
            OR (kind <> 'pair' AND max(w.rarity) FILTER (WHERE w.is_name) > :states * whole.rarity)
    )
    SELECT DISTINCT unnest(e.ids) FROM exchanges e
    WHERE e.number IN (SELECT number FROM stating WHERE kind = 'exchange')
       OR (position(:literal IN lower(e.content)) > 0 AND e.content ~* :as_words)
       OR :source = ANY(e.ids)
       OR (e.number IN (SELECT number FROM present WHERE kind = 'exchange' AND carries)
           AND (e.conversation_id IN (SELECT number FROM stating WHERE kind = 'summary')
                OR e.number IN (SELECT number FROM stating WHERE kind = 'pair')
                OR e.number IN (SELECT next.before FROM exchanges next JOIN stating s USING (number)
                                WHERE s.kind = 'pair')))
"""


def messages_that_state(connection: Connection, *, user_id: int, fact: Fact) -> list[int]:
    """The ids of all messages in exchanges that state the fact: its source, literal and close matches."""
    literal = fact.content.lower().rstrip(" .!?…")
    telling, carries, names = _telling(fact.content)
    rows = connection.execute(
        text(_STATING),
        {
            "words": telling,
            "carries": carries,
            "names": names,
            "literal": literal,
            # Whole words: the fact "Tee" is not stated by "Teer".
            "as_words": r"(^|\W)" + re.sub(r"([^\w\s])", r"\\\1", literal) + r"(\W|$)",
            "user_id": user_id,
            "source": fact.source_message_id,
            "states": STATES,
            "other": WEIGHT_OF_OTHER_WORDS,
        },
    )
    return [int(row[0]) for row in rows]


def _telling(fact: str) -> tuple[list[str], list[bool], list[bool]]:
    """The fact's words; for each whether it carries the fact (a noun, a name, a number), and whether it is a name:
    one that carries and stands without an article or the like."""
    telling, carries, names = [], [], []
    before = ""
    for written in fact.split():
        word = written.strip(".,;:!?…\"'„“”‚‘’()[]")
        if word.lower() not in _DRESS:
            telling.append(without_marks(word))
            carries.append(word[:1].isupper() or any(character.isdigit() for character in word))
            names.append(carries[-1] and before not in _DETERMINERS)
        before = word.lower()
    if not telling:
        telling = without_marks(fact).split()
    if not any(carries):
        carries = [True] * len(telling)
        names = [False] * len(telling)
    return telling, carries, names
