from collections.abc import Iterator, Mapping
from typing import Any, Final

from django import forms
from django.http import QueryDict

from evaluations.domain import DRAWN, PickedBy, Strata
from evaluations.models import Evaluation, User

# What each order of work finds, in one sentence.
FINDS: Final[Mapping[PickedBy, tuple[str, str]]] = {
    PickedBy.RANDOM: ("Random", "The next in the one random order, as from the pool. The unbiased one."),
    PickedBy.STRATIFIED: (
        "Random, from each group alike",
        "As many from every category or pair of candidates, so that small groups are seen too; each with a known "
        "probability.",
    ),
    PickedBy.FLIPS: (
        "A judge flips between orders",
        "A judge chose otherwise once A and B had changed places: finds position bias and near ties.",
    ),
    PickedBy.JUDGES_DISAGREE: (
        "Judges disagree among themselves",
        "Two judges chose differently, so at least one of them is wrong: finds where a judge fails.",
    ),
    PickedBy.PEOPLE_DISAGREE: (
        "People disagree",
        "Reviewers chose differently: finds hard cases and unclear rubrics, and brings a further opinion.",
    ),
    PickedBy.LEAST_CONFIDENT: (
        "A judge is least confident",
        "The judge’s own probabilities are closest to even: finds what it cannot tell.",
    ),
}
STRATA: Final = [(Strata.CATEGORY, "category of the query"), (Strata.CANDIDATE_PAIR, "pair of candidates")]
FROM_POOL, SPLIT, EACH = "pool", "split", "each"
WHO: Final = [
    (FROM_POOL, "Everyone: whoever reviews next meets them before the pool"),
    (SPLIT, "The people below, divided among them"),
    (EACH, "The people below, all of it to each"),
]
RANDOM_PERCENT: Final = 20
# Where chance picks everything there is no share to choose.
RANDOM_SHARES: Final[Mapping[PickedBy, int]] = {PickedBy.RANDOM: 100, PickedBy.STRATIFIED: 0}
MOST: Final = 100_000


class PeopleChoice(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: User) -> str:
        return str(obj)


class RoundForm(forms.Form):
    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    strategy = forms.ChoiceField(
        label="Which comparisons",
        choices=[(value, name) for value, (name, _) in FINDS.items()],
        widget=forms.RadioSelect,
    )
    strata = forms.ChoiceField(label="Groups", choices=STRATA, required=False)
    size = forms.IntegerField(
        label="How many", min_value=1, max_value=MOST, required=False, help_text="Empty: all that match."
    )
    random_percent = forms.IntegerField(
        label="Random share, in percent",
        min_value=0,
        max_value=100,
        required=False,
        help_text="So many of them are drawn at random from all comparisons instead. Where the rest is picked, and not "
        "drawn, estimates use these alone.",
    )
    reviews_wanted = forms.IntegerField(label="Reviews of each", min_value=1, max_value=100)
    who = forms.ChoiceField(label="Who reviews them", choices=WHO, widget=forms.RadioSelect)
    people = PeopleChoice(
        User.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"invalid_choice": "One of these people does not review here."},
    )
    seed = forms.IntegerField(
        min_value=0,
        max_value=2**53,
        required=False,
        help_text="What chance decides here is decided the same way by the same seed.",
    )

    def __init__(self, data: QueryDict | None, *, evaluation: Evaluation, people: Any, name: str = "") -> None:
        initial = {
            "name": name,
            "strategy": PickedBy.RANDOM,
            "size": 50,
            "random_percent": RANDOM_PERCENT,
            "reviews_wanted": evaluation.reviews_wanted,
            "who": FROM_POOL,
            "seed": 0,
        }
        super().__init__(data, initial=initial)
        self.fields["people"].queryset = people  # type: ignore[attr-defined]

    def strategies(self) -> Iterator[dict[str, object]]:
        """The choices with what each finds, and whether estimates may use what it picks."""
        chosen = self["strategy"].value()
        for value, (name, finds) in FINDS.items():
            yield {
                "value": value,
                "name": name,
                "finds": finds,
                "is_chosen": chosen == value,
                "is_drawn": value in DRAWN,
            }

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if not self.errors and given["who"] != FROM_POOL and not given["people"]:
            self.add_error("people", "Choose at least one person, or have everyone take them from the pool.")
        if not self.errors and given["strategy"] == PickedBy.STRATIFIED and not given["strata"]:
            self.add_error("strata", "Choose what the groups are.")
        return given

    def options(self) -> dict[str, Any]:
        """What the round is to be, by the names that `make_round` has for it."""
        given, people = self.cleaned_data, list(self.cleaned_data["people"])
        by_name = given["who"] != FROM_POOL
        return {
            "name": given["name"],
            **self.drawing(given),
            "seed": given["seed"] or 0,
            "people": people if by_name else [],
            "by_name": by_name,
        }

    def picking(self) -> dict[str, Any] | None:
        """What decides which comparisons it holds; None while one of these fields cannot be read."""
        if not self.is_bound:
            given = {name: self.get_initial_for_field(field, name) for name, field in self.fields.items()}
        elif self.errors.keys() & {"strategy", "strata", "size", "random_percent", "reviews_wanted", "who"}:
            return None
        else:
            given = self.cleaned_data
        return self.drawing(given)

    def drawing(self, given: Mapping[str, Any]) -> dict[str, Any]:
        strategy, share = PickedBy(given["strategy"]), given.get("random_percent")
        each = given["who"] == EACH and given.get("people")
        return {
            "strategy": strategy,
            "strata": Strata(given["strata"]) if strategy == PickedBy.STRATIFIED else None,
            "size": given.get("size") or MOST,
            "random_percent": RANDOM_SHARES.get(strategy, RANDOM_PERCENT if share is None else share),
            "reviews_wanted": len(given["people"]) if each else given["reviews_wanted"],
        }
