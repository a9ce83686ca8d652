"""The card of a dataset: what it is, how it was labelled, what it leaves out, its limits."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evaluations.domain.preferences import PreferenceRule
from evaluations.domain.texts import replace_unstorable
from evaluations.formats.preferences import EXCLUSION_REASONS, ExportCounts

SIZES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
LARGER: Final = "1M<n<10M"
ALREADY_MARKED: Final = re.compile(r"[\\`*_{}\[\]<>|#~&$!^]")
PLAIN_YAML: Final = re.compile(
    r"[a-z][a-z0-9]*_[a-z0-9_]*|[a-z]{4,}"
)  # longer than any word that YAML 1.1 reads as a value
YAML_WORDS: Final = {"true", "false", "null"}
# JSON may have these as they are, and YAML takes them for line breaks, or none of them at all.
NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
NOTED_IN_WORDS: Final = {
    "chosen_is_empty": "preferences whose chosen response is empty",
    "rejected_is_empty": "preferences whose rejected response is empty",
    "response_of_several_turns": "preferences with a response of several turns",
}


@dataclass(frozen=True)
class CardRubric:
    """A rubric as raters read it. ``aspects``: key and definition of each."""

    name: str
    instructions: str
    aspects: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class CardAgreement:
    """The agreement of two or more sides on an aspect, with numbers formatted for printing."""

    aspect: str
    between: str
    measure: str
    value: str
    interval: str
    n: int


@dataclass(frozen=True)
class CardFacts:
    """``judges``: name, kind, model and rubric of each. ``policy`` and ``rules`` are sentences."""

    name: str = ""
    description: str = ""
    rubrics: Sequence[CardRubric] = ()
    people: int = 0
    judges: Sequence[tuple[str, str, str, str]] = ()
    policy: str = ""
    agreement: Sequence[CardAgreement] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CardConfig:
    """One table of the data set. ``files``: split → path and rows. ``features``: lines of YAML."""

    name: str
    about: str
    files: Mapping[str, tuple[str, int]]
    features: Sequence[str]

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.files.values())


def dataset_card(facts: CardFacts, rule: PreferenceRule, configs: Sequence[CardConfig], counts: ExportCounts) -> str:
    return "\n".join([*front_matter(facts, configs), "", *card_text(facts, rule, configs, counts)]) + "\n"


def front_matter(facts: CardFacts, configs: Sequence[CardConfig]) -> Iterator[str]:
    """YAML; a text in it is quoted as JSON has it, which YAML reads as well."""
    yield "---"
    yield f"pretty_name: {quote_yaml(facts.name)}"
    yield "license: unknown"
    yield "annotations_creators:"
    yield from [f"- {creator}" for creator in creators(facts)]
    yield "tags:"
    yield from ["- preference", "- dpo", "- pairwise", "- judgeweb"]
    yield "size_categories:"
    yield f"- {size_category(configs[0].rows if configs else 0)}"
    if not configs:
        yield "---"
        return
    yield "configs:"
    for place, config in enumerate(configs):
        yield f"- config_name: {config.name}"
        if place == 0:
            yield "  default: true"
        yield "  data_files:"
        for split, (path, _) in config.files.items():
            yield f"  - split: {split}"
            yield f"    path: {path}"
    yield "dataset_info:"
    for config in configs:
        yield f"- config_name: {config.name}"
        yield "  features:"
        yield from (f"  {line}" for line in config.features)
    yield "---"


def creators(facts: CardFacts) -> list[str]:
    kinds = [
        *(["expert-generated"] if facts.people else []),
        *(["machine-generated"] if any(kind != "rule" for _, kind, _, _ in facts.judges) else []),
    ]
    return kinds or ["no-annotation"]


def size_category(rows: int) -> str:
    return next((name for limit, name in SIZES if rows < limit), LARGER)


def card_text(
    facts: CardFacts, rule: PreferenceRule, configs: Sequence[CardConfig], counts: ExportCounts
) -> Iterator[str]:
    yield f"# {escape_markdown_line(facts.name)}"
    yield ""
    yield from describe_dataset(facts, rule, configs)
    yield from describe_labelling(facts, rule)
    yield from describe_agreement(facts)
    yield from describe_exclusions(counts)
    yield from describe_splits(configs)
    yield from describe_limits(rule)
    yield from describe_provenance(facts)


def describe_dataset(facts: CardFacts, rule: PreferenceRule, configs: Sequence[CardConfig]) -> Iterator[str]:
    if facts.description.strip():
        yield from [fence_block(facts.description), ""]
    yield "Pairs of responses to the same prompt with a preference. Exported by judgeweb."
    yield ""
    for config in configs:
        yield f"- `{config.name}` ({config.rows:,} rows): {config.about}"
    yield ""
    yield f"Preference from: **{code_span(rule.name)}**. {escape_markdown_line(rule.in_words)}"
    yield ""
    yield "**License**: not stated. Before publishing, state how the texts and labels may be used."
    yield ""


def describe_labelling(facts: CardFacts, rule: PreferenceRule) -> Iterator[str]:
    yield "## Annotation"
    yield ""
    yield (
        f"Annotated by {facts.people:,} {'reviewer' if facts.people == 1 else 'reviewers'} and "
        f"{len(facts.judges):,} {'judge' if len(facts.judges) == 1 else 'judges'}."
    )
    if facts.policy:
        yield f"Labels: {escape_markdown_line(facts.policy)}"
    yield (
        "`label_source` is where the label of a row comes from (`adjudicated`, `majority`, `single`: reviewers; "
        "`panel`, `judge`: language models). `votes` is the number of votes, `agreement` the share for the choice."
    )
    yield ""
    if facts.judges:
        yield from markdown_table(("judge", "kind", "model", "rubric"), facts.judges)
    for rubric in facts.rubrics:
        yield from [f"### Rubric {escape_markdown_line(rubric.name)}", "", fence_block(rubric.instructions), ""]
        yield from markdown_table(("aspect", "definition"), rubric.aspects)


def describe_agreement(facts: CardFacts) -> Iterator[str]:
    if not facts.agreement:
        return
    yield from [
        "## Agreement",
        "",
        "On the exported comparisons, with 95% confidence intervals.",
        "",
    ]
    columns = ("aspect", "between", "measure", "value", "interval", "n")
    yield from markdown_table(
        columns,
        [(row.aspect, row.between, row.measure, row.value, row.interval, f"{row.n:,}") for row in facts.agreement],
    )


def describe_exclusions(counts: ExportCounts) -> Iterator[str]:
    yield from ["## Exclusions", ""]
    if counts.excluded:
        rows = [(reason, EXCLUSION_REASONS.get(reason, ""), f"{n:,}") for reason, n in sorted(counts.excluded.items())]
        yield from markdown_table(("reason", "", "comparisons"), rows)
    else:
        yield from ["None.", ""]
    noted = [(NOTED_IN_WORDS[name], n) for name, n in sorted(counts.noted.items()) if n and name in NOTED_IN_WORDS]
    if noted:
        yield from [*(f"- {n:,} {words}" for words, n in noted), ""]


def describe_splits(configs: Sequence[CardConfig]) -> Iterator[str]:
    yield from ["## Splits", ""]
    table_rows = [(config.name, split, f"{rows:,}") for config in configs for split, (_, rows) in config.files.items()]
    yield from markdown_table(("table", "split", "rows"), table_rows)
    if any(len(config.files) > 1 for config in configs):
        yield from ["No prompt cluster is in two splits.", ""]


def describe_limits(rule: PreferenceRule) -> Iterator[str]:
    yield from ["## Limits", ""]
    yield "- A preference does not mean that either response is correct."
    if rule.rule:
        yield f"- {code_span(rule.name)} is derived from several aspects. Raters were not asked this question directly."
    yield "- Rows with the source `panel` or `judge` reflect the preferences and biases of language models."
    yield "- It is not known whether a candidate saw `context` or `reference`."
    yield ""


def describe_provenance(facts: CardFacts) -> Iterator[str]:
    yield from ["## Provenance", "", "See `manifest.json` for the full manifest of this export."]
    if facts.provenance:
        yield from ["", fence_block(json.dumps(facts.provenance, ensure_ascii=False, indent=1, sort_keys=True), "json")]


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{' --- |' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(escape_markdown_line(cell) for cell in row)} |"
    yield ""


def escape_markdown_line(words: str) -> str:
    """One line of text in which nothing is Markdown."""
    return ALREADY_MARKED.sub(r"\\\g<0>", " ".join(words.split()))


def code_span(words: str) -> str:
    """One line of text as code, in marks that do not occur in it."""
    line = " ".join(words.split())
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    marks = "`" * (longest + 1)
    return f"{marks} {line} {marks}" if longest else f"{marks}{line}{marks}"


def quote_yaml(words: str) -> str:
    """A text as JSON has it, which YAML reads as well."""
    quoted = json.dumps(replace_unstorable(words), ensure_ascii=False)
    return NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def yaml_name(name: str) -> str:
    """A name as it is where YAML can only read it as a text."""
    return name if PLAIN_YAML.fullmatch(name) and name not in YAML_WORDS else quote_yaml(name)


def fence_block(words: str, language: str = "") -> str:
    """The text in a fence that does not occur in it."""
    longest = max((len(run) for run in re.findall("`+", words)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{words}\n{fence}"
