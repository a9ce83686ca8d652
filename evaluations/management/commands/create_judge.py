"""``manage.py create_judge SLUG --name … --model …``"""

from argparse import ArgumentParser

from django.db import transaction

from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import Dialect, OutputMode
from evaluations.domain.rubrics import RubricKind
from evaluations.judges.endpoints.services import find_or_create_endpoint
from evaluations.judges.selectors import judge_warnings
from evaluations.judges.services import REASONING_EFFORTS, JudgeSettings, create_judge
from evaluations.management.product_command import CommandOptions, ProductCommand, find_evaluation
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.rubrics import RubricVersion
from evaluations.rubrics.selectors import list_builtin_rubrics
from evaluations.rubrics.services import create_builtin_rubric


class Command(ProductCommand):
    help = "Create a judge: a model at an endpoint, or a rule without one (longest, first or random)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="the evaluation")
        parser.add_argument("--name", required=True, help="name on pages and in reports")
        parser.add_argument(
            "--model", required=True, help="model ID at the endpoint; longest, first and random need no endpoint"
        )
        parser.add_argument(
            "--base-url", metavar="URL", help="OpenAI-compatible API, such as http://localhost:11434/v1"
        )
        parser.add_argument(
            "--key-env",
            default="",
            metavar="NAME",
            help="environment variable with the API key: …_API_KEY or JUDGEWEB_KEY_…",
        )
        parser.add_argument(
            "--rubric",
            metavar="NAME",
            help="the latest version is used (default: the rubric for reviews); a built-in one is added if missing",
        )
        parser.add_argument(
            "--mode",
            default="auto",
            choices=[str(mode) for mode in OutputMode],
            help="output format: auto detects what the server supports, two_step asks for free text first",
        )
        parser.add_argument("--temperature", type=float, help="from 0 to 2 (default: the server's own)")
        parser.add_argument("--max-tokens", type=int, metavar="N", help="limit per reply")
        parser.add_argument("--seed", type=int, help="sent with every request, plus the sample number")
        parser.add_argument(
            "--reasoning-effort",
            default="",
            metavar="WORD",
            help=f"for reasoning models: {', '.join(REASONING_EFFORTS)}",
        )
        parser.add_argument(
            "--logprobs", action="store_true", help="weight each choice by the probabilities of its labels"
        )
        parser.add_argument("--no-repair", action="store_true", help="do not retry when a reply cannot be parsed")
        parser.add_argument(
            "--one-aspect-per-call",
            action="store_true",
            help="one request per aspect: more requests and cost",
        )
        parser.add_argument(
            "--extra-header",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="sent with every request of this judge; repeatable",
        )
        parser.add_argument("--extra-body", default="", metavar="JSON", help="fields added to the body of each request")
        parser.add_argument("--timeout", type=int, metavar="SECONDS", help="per request; a setting of the endpoint")
        parser.add_argument(
            "--dialect",
            default="",
            choices=[str(dialect) for dialect in Dialect],
            help="API of the endpoint (default: detected from its address)",
        )
        parser.add_argument(
            "--max-in-flight", type=int, metavar="N", help="max concurrent requests; a setting of the endpoint"
        )

    def handle(self, *args: object, slug: str, **options: object) -> None:
        judge = create_judge_from_options(slug, options)
        kind = "rule-based" if judge.is_baseline else f"{judge.model} at {judge.endpoint}"
        for warning in judge_warnings(judge):
            self.stderr.write(warning)
        self.stdout.write(f"Created judge {judge.name}: {kind}.")


@transaction.atomic
def create_judge_from_options(slug: str, options: CommandOptions) -> Judge:
    evaluation = find_evaluation(slug)
    return create_judge(
        evaluation,
        JudgeSettings(
            name=options["name"],
            model=options["model"],
            version=find_version(evaluation, options["rubric"]),
            endpoint=find_endpoint(options),
            mode=options["mode"],
            temperature=options["temperature"],
            max_tokens=options["max_tokens"],
            seed=options["seed"],
            reasoning_effort=options["reasoning_effort"],
            logprobs=options["logprobs"],
            repairs=not options["no_repair"],
            extra_headers=join_header_lines(options["extra_header"]),
            extra_body=options["extra_body"],
            one_aspect_per_call=options["one_aspect_per_call"],
        ),
        user=None,
    )


def find_version(evaluation: Evaluation, name: str | None) -> RubricVersion | None:
    if name is None:
        return evaluation.review_rubric
    version = RubricVersion.objects.filter(rubric__evaluation=evaluation, rubric__name=name).order_by("number").last()
    if version is not None:
        return version
    builtin = [*list_builtin_rubrics(RubricKind.PAIRWISE), *list_builtin_rubrics(RubricKind.POINTWISE)]
    if name not in builtin:
        raise InputRefused(f"“{evaluation.name}” has no rubric “{name}”. Built-in rubrics: {', '.join(builtin)}.")
    return create_builtin_rubric(evaluation, builtin=name, user=None)


def find_endpoint(options: CommandOptions) -> Endpoint | None:
    if options["base_url"] is None:
        return None
    return find_or_create_endpoint(
        base_url=options["base_url"],
        key_variable=options["key_env"],
        max_in_flight=options["max_in_flight"],
        timeout_seconds=options["timeout"],
        dialect=options["dialect"],
    )


def join_header_lines(headers: list[str]) -> str:
    """Join headers into lines, so that a duplicate is refused."""
    if any("=" not in header for header in headers):
        raise InputRefused("--extra-header: write NAME=VALUE, as in X-Title=judgeweb.")
    return "\n".join(header.replace("=", ": ", 1) for header in headers)
