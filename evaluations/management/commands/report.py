"""``manage.py report SLUG [--json] …``: the numbers of an evaluation, as JSON or as a table."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import replace
from datetime import date
from math import isfinite, nan
from typing import Any

from evaluations.comparisons.selectors import get_saved_filter
from evaluations.domain.errors import InputRefused
from evaluations.domain.reports import FailedRule, ReportPart, ReportRules, SeenRule, SideCoding, SplitRule
from evaluations.domain.splits import SplitPart
from evaluations.management.product_command import (
    CommandOptions,
    ProductCommand,
    accept_negative_keys,
    add_where_argument,
    find_evaluation,
    parse_key_value,
)
from evaluations.management.report_lines import flatten_text, report_lines
from evaluations.reports.selectors import ALL_PARTS, get_full_report
from evaluations.stats.full_report import Report

TEXT_PARTS = (ReportPart.DECISIONS, ReportPart.AGREEMENT, ReportPart.SCORES)


class Command(ProductCommand):
    help = "Print the agreement of judges with reviewers, and of reviewers with each other."

    def add_arguments(self, parser: ArgumentParser) -> None:
        accept_negative_keys(parser)
        parser.add_argument("slug", help="URL name of the evaluation")
        parser.add_argument("--json", action="store_true", help="print every number as JSON")
        parser.add_argument(
            "--raters", default="*", metavar="GLOB", help="only raters whose name matches; * matches anything"
        )
        add_where_argument(parser)
        parser.add_argument("--saved-filter", metavar="NAME", help="only comparisons that match this saved filter")
        parser.add_argument(
            "--part", choices=list(SplitPart), type=SplitPart, help="only this part of the evaluation's split"
        )
        parser.add_argument("--judge", nargs="+", action="extend", default=[], metavar="NAME", help="only these judges")
        parser.add_argument(
            "--reviewer", nargs="+", action="extend", default=[], metavar="NAME", help="only these reviewers"
        )
        parser.add_argument("--with-excluded", action="store_true", help="count reviewers whom the owner excluded, too")
        parser.add_argument(
            "--seen", choices=list(SeenRule), default=SeenRule.NOTHING, help="what reviewers had seen of the judge"
        )
        parser.add_argument("--since", type=parse_day, metavar="DAY", help="first day of votes, such as 2026-01-31")
        parser.add_argument("--until", type=parse_day, metavar="DAY", help="last day of votes")
        parser.add_argument("--coding", choices=list(SideCoding), default=SideCoding.CANDIDATE)
        parser.add_argument("--split-rule", choices=list(SplitRule), default=SplitRule.TIE)
        parser.add_argument(
            "--pass-from",
            type=parse_score,
            metavar="SCORE",
            help="score from which a single response passes; default: the better score of two",
        )
        parser.add_argument("--all-pairs", action="store_true", help="every pair of reviewers, even above 30 reviewers")
        parser.add_argument("--failed", choices=list(FailedRule), default=FailedRule.EXCLUDE)

    def handle(self, *args: object, slug: str, **options: Any) -> None:
        report = compute_report(slug, parse_report_rules(options), options["saved_filter"], everything=options["json"])
        if options["json"]:
            # Indentation would be half of it: estimates are nested deeply.
            compact = json.dumps(report.as_json(), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            self.stdout.write(compact)
        else:
            self.stdout.write("\n".join(map(flatten_text, report_lines(report))))


def parse_report_rules(options: CommandOptions) -> ReportRules:
    since, until = options["since"], options["until"]
    if since and until and since > until:
        raise InputRefused(f"--until {until} is before --since {since}.")
    return ReportRules(
        raters=options["raters"],
        judges=tuple(options["judge"]),
        reviewers=tuple(options["reviewer"]),
        seen=SeenRule(options["seen"]),
        since=since,
        until=until,
        where=tuple(parse_key_value(pair) for pair in options["where"]),
        part=options["part"],
        coding=SideCoding(options["coding"]),
        split_rule=SplitRule(options["split_rule"]),
        failed=FailedRule(options["failed"]),
        all_pairs=options["all_pairs"],
        with_excluded=options["with_excluded"],
        pass_from=options["pass_from"],
    )


def parse_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"“{text}” is not a date. Use the form 2026-01-31") from None


def parse_score(text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = nan
    if not isfinite(score):
        raise ArgumentTypeError(f"“{text}” is not a score. Use a number, such as 4")
    return score


def compute_report(slug: str, rules: ReportRules, saved_filter_name: str | None, *, everything: bool) -> Report:
    evaluation = find_evaluation(slug)
    if saved_filter_name:
        rules = replace(rules, saved_filter=get_saved_filter(evaluation, saved_filter_name).named)
    return get_full_report(evaluation, rules, parts=ALL_PARTS if everything else TEXT_PARTS)
