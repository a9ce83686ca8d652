"""What a score row means in an evaluation: which response it is on, and whether it is here already."""

from evaluations.domain import ScoreRow
from evaluations.formats.values import RowRefused
from evaluations.models import Response, Score, Verdict
from evaluations.services.importing.knowing import key_of_score, score_word
from evaluations.services.importing.naming import Addition, named_aspect, rater_meant, refuse_second_way
from evaluations.services.importing.scaling import scale_of


def add_score(added: Addition, row: ScoreRow) -> None:
    response = response_meant(added, row)
    rater, aspect = rater_meant(added, row), named_aspect(added, row.aspect)
    refuse_second_way(added, rater, aspect, Verdict)
    score = Score(
        rater=rater,
        response=response,
        aspect=aspect,
        value=row.value,
        sample=row.sample or 0,
        source_import=added.batch.around.importing,
        rationale=row.rationale,
    )
    key, word = key_of_score(score), score_word(score)
    found = added.find(key)
    if found is None:
        added.put(key, score, word)
    elif found.word != word:
        raise RowRefused(f"the same score stands {found.where} with the value {found.word}, not {word}")
    added.scales.append((row.aspect, scale_of(row)))


def response_meant(added: Addition, row: ScoreRow) -> Response:
    known = added.batch.responses.get((row.query_key, row.candidate), [])
    own = [one for one in added.responses if (one.query.key, one.candidate.name) == (row.query_key, row.candidate)]
    matching = [*known, *own]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise RowRefused(
            f"query “{row.query_key}” has {len(matching)} responses of “{row.candidate}”: which one is not clear"
        )
    if added.find(("query", row.query_key)) is None:
        raise RowRefused(f"there is no query “{row.query_key}” in this evaluation")
    if row.candidate not in added.batch.around.candidates:
        raise RowRefused(f"there is no candidate “{row.candidate}” in this evaluation")
    raise RowRefused(f"query “{row.query_key}” has no response of “{row.candidate}”")
