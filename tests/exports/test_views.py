"""The list of exports, a new one sent while it is written, and its file again."""

import hashlib
import json

import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.access import ALLOWED_ROLES, Action
from evaluations.comparisons.services import create_saved_filter
from evaluations.domain.events import DOWNLOADED
from evaluations.domain.files import ExportState
from evaluations.domain.filters import ComparisonFilter
from evaluations.domain.roles import Role
from evaluations.exports.cards import EXPORT_CARDS
from evaluations.exports.forms import ExportForm
from evaluations.exports.options import complete_request, suggest_choice
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.rubrics import Aspect
from evaluations.models.users import User
from evaluations.overview.services import create_evaluation
from evaluations.verdicts.votes import update_labels
from evaluations.visibility import has_seen_verdicts
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_member, make_user
from tests.factories.verdicts import make_judge_verdicts, make_review
from tests.helpers.browser_client import sign_in_client
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    made = make_comparison(evaluation)
    make_review(make_human(evaluation, "ann"), made, {"clarity": "A"})
    make_judge_verdicts(made, as_stored={"clarity": "A"})
    return made


def post(user: User, written_as: str = "jsonl") -> StreamingHttpResponse:
    answer = sign_in_client(user).post(reverse("export_new", args=["study"]), {"written_as": written_as})
    assert isinstance(answer, StreamingHttpResponse)
    return answer


def exported(evaluation: Evaluation) -> Export:
    export = start_export(evaluation, written_as="jsonl", user=None)
    list(stream_export(export, Comparison.objects.filter(evaluation=evaluation)))
    return export


@pytest.mark.parametrize(
    ("written_as", "type_"), [("jsonl", "application/x-ndjson"), ("csv", "text/csv; charset=utf-8")]
)
def test_an_export_is_sent_while_it_is_written_and_kept(
    owner: User, comparison: Comparison, written_as: str, type_: str
) -> None:
    answer = post(owner, written_as)
    export = Export.objects.get()
    assert export.state == ExportState.UNFINISHED
    assert answer["Content-Type"] == type_
    assert answer["Content-Disposition"] == f'attachment; filename="study-{export.pk}.{written_as}"'
    body = answer.getvalue()
    export.refresh_from_db()
    assert (export.state, export.rows, export.user) == (ExportState.DONE, 1, owner)
    assert export.sha256 == hashlib.sha256(body).hexdigest()


def test_a_finished_file_is_downloaded_again_byte_for_byte(owner: User, comparison: Comparison) -> None:
    first = post(owner).getvalue()
    export = Export.objects.get()
    again = sign_in_client(owner).get(reverse("export_file", args=["study", export.pk]))
    assert isinstance(again, StreamingHttpResponse)
    assert again.getvalue() == first
    assert again["Content-Length"] == str(len(first))
    assert again["Content-Disposition"] == f'attachment; filename="study-{export.pk}.jsonl"'


def test_every_download_is_recorded_and_makes_later_reviews_not_blind(owner: User, comparison: Comparison) -> None:
    assert not has_seen_verdicts(owner, comparison)
    post(owner).getvalue()
    export = Export.objects.get()
    sign_in_client(owner).get(reverse("export_file", args=["study", export.pk])).getvalue()
    told = Event.objects.filter(verb=DOWNLOADED, object_type="export", object_id=export.pk, user=owner)
    assert told.count() == 2
    assert has_seen_verdicts(owner, comparison)


def test_the_record_of_scores_speaks_of_no_comparisons(
    owner: User, evaluation: Evaluation, comparison: Comparison
) -> None:
    for written_as, told in (("jsonl", "1 from 1 comparison,"), ("scores", "0,")):
        post(owner, written_as).getvalue()
        export = Export.objects.latest("pk")
        Export.objects.filter(pk=export.pk).update(size_bytes=5_000)
        text = html_of(sign_in_client(owner).get(reverse("export", args=[evaluation.slug, export.pk])))
        assert f'<dt>Rows</dt><dd class="number">{told}' in text


def test_an_unfinished_export_has_no_file(owner: User, evaluation: Evaluation) -> None:
    export = start_export(evaluation, written_as="jsonl", user=owner)
    assert sign_in_client(owner).get(reverse("export_file", args=["study", export.pk])).status_code == 404


def test_a_file_that_was_removed_from_storage_is_told_in_one_sentence(owner: User, evaluation: Evaluation) -> None:
    export = exported(evaluation)
    export.file.storage.delete(str(export.file.name))
    answer = sign_in_client(owner).get(reverse("export_file", args=["study", export.pk]), follow=True)
    assert "no longer in storage" in answer.text
    assert not Event.objects.filter(verb=DOWNLOADED).exists()


def test_another_format_is_an_error_on_the_form_and_makes_nothing(owner: User, evaluation: Evaluation) -> None:
    answer = sign_in_client(owner).post(reverse("export_new", args=["study"]), {"written_as": "papyrus"})
    assert answer.status_code == 422
    assert not Export.objects.exists()


def test_the_page_says_how_many_rows_and_what_is_in_them(owner: User, comparison: Comparison) -> None:
    page = html_of(sign_in_client(owner).get(reverse("export_new", args=["study"])))
    assert '<b class="number">1</b> row' in page
    assert "ann" in page
    assert "rule-based" in page


def test_the_list_shows_rows_checksum_who_and_what_was_broken_off(owner: User, comparison: Comparison) -> None:
    post(owner).getvalue()
    start_export(comparison.evaluation, written_as="csv", user=None)
    page = html_of(sign_in_client(owner).get(reverse("exports", args=["study"])))
    assert Export.objects.get(state=ExportState.DONE).sha256 in page
    assert "1 single" in page
    assert owner.username in page
    assert "unfinished" in page
    assert page.count(" download>Download<") == 1


def test_an_empty_list_says_how_to_fill_it(owner: User, evaluation: Evaluation) -> None:
    page = sign_in_client(owner).get(reverse("exports", args=["study"])).text
    assert "Exported files" not in page
    assert reverse("export_new", args=["study"]) in page


def test_a_long_list_is_paged_newest_first_at_the_same_number_of_queries(owner: User, evaluation: Evaluation) -> None:
    client, address = sign_in_client(owner), reverse("exports", args=["study"])
    made = [exported(evaluation).pk]
    client.get(address)
    with CaptureQueriesContext(connection) as few:
        client.get(address)
    made += [start_export(evaluation, written_as="csv", user=owner).pk for _ in range(60)]
    with CaptureQueriesContext(connection) as many:
        page = client.get(address)
    assert len(many) == len(few) + 1  # where there is a second page, the pager counts them all
    assert [export.pk for export in page.context["exports"].rows] == made[:-51:-1]
    following = client.get(f"{address}?{page.context['exports'].next_page}")
    assert [export.pk for export in following.context["exports"].rows] == made[10::-1]


PAGES = ["exports", "export_new", "export_file"]


def addresses(export: Export) -> list[str]:
    return [reverse(page, args=["study", export.pk] if page == "export_file" else ["study"]) for page in PAGES]


def test_a_stranger_cannot_tell_that_anything_is_there(evaluation: Evaluation) -> None:
    client = sign_in_client(make_user())
    assert {client.get(address).status_code for address in addresses(exported(evaluation))} == {404}


def test_a_reviewer_may_not_export(evaluation: Evaluation) -> None:
    client = sign_in_client(make_member(evaluation, Role.REVIEWER))
    assert {client.get(address).status_code for address in addresses(exported(evaluation))} == {403}
    assert client.post(reverse("export_new", args=["study"]), {"written_as": "csv"}).status_code == 403


@pytest.mark.parametrize("role", [Role.MANAGER, Role.ADJUDICATOR, Role.VIEWER])
def test_the_others_may(evaluation: Evaluation, role: Role) -> None:
    client = sign_in_client(make_member(evaluation, role))
    assert {client.get(address).status_code for address in addresses(exported(evaluation))} == {200}


def looked_at(user: User, **sent: str) -> str:
    sent = {"step": "look", "written_as": "dpo", **sent}
    return html_of(sign_in_client(user).post(reverse("export_new", args=["study"]), sent))


def test_a_preference_has_a_default_that_a_written_rule_overrides(owner: User, comparison: Comparison) -> None:
    assert '<option value="derived:majority_of_aspects" selected>' in html_of(
        sign_in_client(owner).get(reverse("export_new", args=["study"]), {"format": "dpo"})
    )
    post(owner, "dpo").getvalue()
    assert Export.objects.get().options["combine"] == "majority_of_aspects"
    sent = {"written_as": "dpo", "aspect": "clarity", "combine": "unanimous"}
    sign_in_client(owner).post(reverse("export_new", args=["study"]), sent)
    assert Export.objects.latest("pk").options["combine"] == "unanimous"


def test_a_preference_is_the_overall_choice_where_the_rubric_asks_for_it(evaluation: Evaluation) -> None:
    assert suggest_choice(evaluation) == ("", "majority_of_aspects")
    whole = create_evaluation(slug="whole", name="Whole", owner=None, by=None, rubric="qa-pairwise")
    assert suggest_choice(whole) == ("overall", "")


def test_each_card_exports_in_one_click_and_counts_rows(owner: User, comparison: Comparison) -> None:
    tied = make_comparison(comparison.evaluation)
    make_review(make_human(comparison.evaluation, "bob"), tied, {"clarity": "tie"})
    update_labels([comparison.pk, tied.pk])
    client = sign_in_client(owner)
    page = html_of(client.get(reverse("exports", args=["study"])))
    for card in EXPORT_CARDS:
        assert card.title in page
        for name, _ in card.formats:
            answer = client.get(reverse("export_preview", args=["study"]), {"written_as": name})
            assert answer.status_code == 200
            post(owner, name).getvalue()
    counts = html_of(client.get(reverse("export_preview", args=["study"]), {"written_as": "dpo"}))
    assert '<b class="number">1</b> row · excluded: 1 ties' in counts
    assert "chosen_model" in counts


def test_a_first_row_counts_as_seen_and_no_other(owner: User, comparison: Comparison) -> None:
    other = make_comparison(comparison.evaluation)
    make_review(make_human(comparison.evaluation, "bob"), other, {"clarity": "A"})
    update_labels([comparison.pk, other.pk])
    sign_in_client(owner).get(reverse("export_preview", args=["study"]), {"written_as": "dpo"})
    assert has_seen_verdicts(owner, comparison)
    assert not has_seen_verdicts(owner, other)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"aspect": "clarity"}, {"aspect": "clarity"}),
        ({"aspect": "derived:majority_of_aspects"}, {"combine": "majority_of_aspects"}),
        ({"combine": "weighted:clarity=2,safety=1"}, {"combine": "weighted:clarity=2,safety=1"}),
    ],
)
def test_a_preference_is_the_label_of_an_aspect_or_made_by_a_rule(
    owner: User, comparison: Comparison, sent: dict[str, str], kept: dict[str, str]
) -> None:
    sign_in_client(owner).post(reverse("export_new", args=["study"]), {"written_as": "dpo", **sent})
    options = Export.objects.get().options
    assert {name: options[name] for name in ("aspect", "combine") if name in options} == kept


def test_the_only_aspect_needs_no_choosing() -> None:
    bare = Evaluation.objects.create(slug="bare", name="Bare")
    Aspect.objects.create(evaluation=bare, key="clarity", name="Clarity")
    form = ExportForm({"written_as": "dpo"}, evaluation=bare)
    assert form.is_valid()
    completed = complete_request(bare, form.export_format, form.export_request())
    assert (completed.aspect, completed.combine) == ("clarity", "")
    assert "combine" not in [field.name for field in form.list_format_fields()]


def test_a_file_without_a_row_is_announced(owner: User, comparison: Comparison) -> None:
    assert "The file would be empty." in looked_at(owner, written_as="scores")
    assert "The file would be empty." not in looked_at(owner, written_as="jsonl")


def test_a_saved_filter_is_chosen_already_where_one_comes_from_it(
    owner: User, evaluation: Evaluation, comparison: Comparison
) -> None:
    create_saved_filter(evaluation, "Facts", ComparisonFilter(category="facts"), user=owner)
    address = reverse("export_new", args=["study"])
    asked = html_of(sign_in_client(owner).get(address, {"saved_filter": "Facts"}))
    assert '<option value="Facts" selected>' in asked
    assert '<b class="number">0</b> rows' in asked
    assert '<option value="" selected>all</option>' in html_of(
        sign_in_client(owner).get(address, {"saved_filter": "gone"})
    )
    assert f"{address}?saved_filter=Facts" in html_of(
        sign_in_client(owner).get(reverse("saved_filters", args=["study"]))
    )


def test_an_export_of_another_evaluation_is_not_found(owner: User, evaluation: Evaluation) -> None:
    elsewhere = exported(make_evaluation(owner))
    assert sign_in_client(owner).get(reverse("export_file", args=["study", elsewhere.pk])).status_code == 404


def test_whoever_may_export_may_see_everything_beforehand() -> None:
    assert ALLOWED_ROLES[Action.EXPORT] <= ALLOWED_ROLES[Action.SEE_ALL]


def test_the_file_holds_what_was_said(owner: User, comparison: Comparison) -> None:
    (line,) = post(owner).getvalue().splitlines()
    row = json.loads(line)
    assert row["labels"]["clarity"]["choice"] == "A"
    assert row["judges"][0]["remark"] == "rule-based"
