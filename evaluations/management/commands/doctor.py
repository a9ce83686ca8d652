"""``manage.py doctor``: how every part of the product stands, and what to do where it does not."""

import json
from argparse import ArgumentParser
from collections import Counter
from dataclasses import asdict

from django.core.management.base import BaseCommand, CommandError

from evaluations.jobs.nudges import reach_broker
from evaluations.operations.doctor import run_checks
from evaluations.operations.findings import Finding, Health


class Command(BaseCommand):
    help = "Check settings, disk, broker, database, workers and endpoints, and print what to fix."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: object, **options: object) -> None:
        findings = []
        for finding in run_checks(reach_broker):
            findings.append(finding)
            if not options["json"]:
                self.stdout.write(finding_line(finding))
        if options["json"]:
            self.stdout.write(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False, indent=2))
        counts = Counter(finding.health for finding in findings)
        if problems := counts[Health.PROBLEM]:
            raise CommandError("1 problem needs fixing." if problems == 1 else f"{problems} problems need fixing.")


def finding_line(finding: Finding) -> str:
    mark = {Health.OK: "ok     ", Health.WARNING: "warning", Health.PROBLEM: "PROBLEM"}[finding.health]
    line = f"{mark}  {finding.part}: {finding.summary}"
    return f"{line}\n         → {finding.advice}" if finding.advice else line
