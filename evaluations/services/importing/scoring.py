"""What a score row means in an evaluation: which response it is on, and whether it is here already."""

from evaluations.domain import ScoreRow
from evaluations.formats.values import RowRefused
from evaluations.models import Verdict
from evaluations.services.importing.knowing import key_of_score, score_word
from evaluations.services.importing.naming import Addition, named_aspect, rater_meant, refuse_second_way
from evaluations.services.importing.scaling import scale_of
from evaluations.services.importing.sketching import ResponseSketch, ScoreSketch, where


def add_score(added: Addition, row: ScoreRow) -> None:
    response = response_meant(added, row)
    rater, aspect = rater_meant(added, row), named_aspect(added, row.aspect)
    refuse_second_way(added, rater, aspect, Verdict)
    key, word = key_of_score(rater, aspect.key, row.sample or 0), score_word(row.value)
    subject = ("score", *response.key)
    found = added.said(response.query, subject, response.said, key)
    if found is None:
        added.say(response.query, subject, response.said, key, word)
        added.new.append(ScoreSketch(rater, response, aspect, row))
    elif found[0] != word:
        raise RowRefused(f"the same score stands {where(found[1])} with the value {found[0]}, not {word}")
    added.scales.append((row.aspect, scale_of(row)))


def response_meant(added: Addition, row: ScoreRow) -> ResponseSketch:
    query = added.batch.queries.get(row.query_key)
    known = query.responses.values() if query else ()
    matching = [one for one in known if one.candidate.name == row.candidate]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise RowRefused(
            f"query “{row.query_key}” has {len(matching)} responses of “{row.candidate}”: which one is not clear"
        )
    if query is None:
        raise RowRefused(f"there is no query “{row.query_key}” in this evaluation")
    if row.candidate not in added.batch.around.candidates:
        raise RowRefused(f"there is no candidate “{row.candidate}” in this evaluation")
    raise RowRefused(f"query “{row.query_key}” has no response of “{row.candidate}”")
