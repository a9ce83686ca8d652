"""The full-text index of comparisons on both databases."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from django.apps import AppConfig
from django.db import connection, transaction
from django.db.models.expressions import RawSQL
from django.db.models.signals import post_migrate
from django.dispatch import receiver

from evaluations.domain.search import SearchQuery, Term
from evaluations.models.comparisons import Comparison

SEARCH_TABLE: Final = "evaluations_words"
# What PostgreSQL keeps of one word in one document.
MAX_POSITIONS_PER_WORD: Final = 255
LAST_POSITION: Final = 16_383


def search_ids(search: SearchQuery, after: int | None, last: int | None, among: Sequence[int] | None = None) -> RawSQL:
    """The comparisons in whose texts the search finds what it wants: after one id, up to another, among these."""
    column = "comparison_id" if is_postgresql() else "rowid"
    condition, values = match_clause(search), list[object]([match_expression(search)])
    for sign, bound in ((">", after), ("<=", last)):
        if bound is not None:
            condition += f" AND {column} {sign} %s"
            values.append(bound)
    if among:
        condition += f" AND {column} IN ({', '.join(['%s'] * len(among))})"
        values += among
    return RawSQL(f"SELECT {column} FROM {SEARCH_TABLE} WHERE {condition}", values)


def search_first_ids(search: SearchQuery, most: int) -> list[int] | None:
    """Some comparisons of whichever evaluation in whose texts the search finds what it wants: all where they are less
    than so many. None for a phrase, whose words may be everywhere and never meet.
    """
    if any(len(term) > 1 for term in search.required):
        return None
    column = "comparison_id" if is_postgresql() else "rowid"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {column} FROM {SEARCH_TABLE} WHERE {match_clause(search)} LIMIT %s",
            [match_expression(search), most],
        )
        return [pk for (pk,) in cursor.fetchall()]


def match_clause(search: SearchQuery) -> str:
    return "document @@ %s::tsquery" if is_postgresql() else f"{SEARCH_TABLE} MATCH %s"


def match_expression(search: SearchQuery) -> str:
    """The search as the database writes it. Words are letters and digits, and quoted all the same."""
    if is_postgresql():
        required = " & ".join(phrase_expression(term) for term in search.required)
        return required + "".join(f" & !({phrase_expression(term)})" for term in search.excluded)
    required = " AND ".join(quote_term(term) for term in search.required)
    return f"({required})" + "".join(f" NOT {quote_term(term)}" for term in search.excluded)


def phrase_expression(term: Term) -> str:
    return "(" + " <-> ".join(f"'{word}'" for word in term) + ")"


def quote_term(term: Term) -> str:
    return '"' + " ".join(term) + '"'


def index_words(documents: Mapping[int, Sequence[str]]) -> None:
    """Make these comparisons findable by these words. One that can be found already is left as it is."""
    if not documents:
        return
    with connection.cursor() as cursor:
        if is_postgresql():
            cursor.execute(
                f"INSERT INTO {SEARCH_TABLE} (comparison_id, document) SELECT id, words::tsvector "
                "FROM unnest(%s::bigint[], %s::text[]) AS source (id, words) "
                "ON CONFLICT (comparison_id) DO UPDATE SET document = EXCLUDED.document",
                [list(documents), [to_tsvector_text(words) for words in documents.values()]],
            )
            return
        indexed = set(find_indexed_ids(list(documents)))
        rows = [(pk, " ".join(words)) for pk, words in documents.items() if pk not in indexed]
        cursor.executemany(f"INSERT INTO {SEARCH_TABLE} (rowid, words) VALUES (%s, %s)", rows)


def unindex_words(documents: Mapping[int, Sequence[str]]) -> None:
    """Let these comparisons be found no more. SQLite keeps no texts, and must be given the words that it was given."""
    if not documents:
        return
    with connection.cursor() as cursor:
        if is_postgresql():
            cursor.execute(f"DELETE FROM {SEARCH_TABLE} WHERE comparison_id = ANY(%s)", [list(documents)])
            return
        rows = [(pk, " ".join(words)) for pk, words in documents.items()]
        cursor.executemany(f"INSERT INTO {SEARCH_TABLE} ({SEARCH_TABLE}, rowid, words) VALUES ('delete', %s, %s)", rows)


def find_indexed_ids(comparison_ids: Sequence[int]) -> list[int]:
    """The given ids that are indexed."""
    if not comparison_ids:
        return []
    column = "comparison_id" if is_postgresql() else "rowid"
    marks = ", ".join(["%s"] * len(comparison_ids))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column} FROM {SEARCH_TABLE} WHERE {column} IN ({marks})", list(comparison_ids))
        return [pk for (pk,) in cursor.fetchall()]


def refresh_search_statistics() -> None:
    """Let PostgreSQL look at the words of the documents. Without that it takes the commonest word for a rare one, and
    reads every document there is for a phrase of two such."""
    if is_postgresql():
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE (SKIP_LOCKED) {SEARCH_TABLE}")


@receiver(post_migrate)
def clear_orphaned_words(sender: AppConfig, **_: object) -> None:
    """Where no comparison is left, as after ``manage.py flush``, which empties the tables of models alone. The next
    comparison would otherwise be found by the words of the one whose number it has."""
    if sender.label != Comparison._meta.app_label:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        if SEARCH_TABLE not in connection.introspection.table_names(cursor) or Comparison.all_rows.exists():
            return
        if is_postgresql():  # asked once more: this transaction keeps nobody from writing the first comparison
            cursor.execute(f"DELETE FROM {SEARCH_TABLE} WHERE NOT EXISTS (SELECT 1 FROM evaluations_comparison)")
        else:
            cursor.execute(f"INSERT INTO {SEARCH_TABLE} ({SEARCH_TABLE}) VALUES ('delete-all')")


def to_tsvector_text(words: Sequence[str]) -> str:
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words, 1):
        places.setdefault(word, []).append(min(place, LAST_POSITION))
    return " ".join(f"'{word}':{','.join(map(str, islice(at, MAX_POSITIONS_PER_WORD)))}" for word, at in places.items())


def is_postgresql() -> bool:
    return connection.vendor == "postgresql"
