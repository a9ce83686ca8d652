"""Twenty people at one queue over HTTP, before the running product with its web processes."""

import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import pytest

from tests.helpers.running_product import Product

pytestmark = pytest.mark.worker

PEOPLE, COMPARISONS, WANTED = 20, 200, 3
FIELD = re.compile(r'name="(csrfmiddlewaretoken|version|tab)" value="([^"]*)"')
ASPECT = re.compile(r'data-aspect="([^"]+)"')
ANSWERS = ("A", "B", "tie")

MAKE_PEOPLE = f"""
from evaluations.domain.roles import Role
from evaluations.members.services import create_sign_in_link
from evaluations.members.services import set_role
study = Evaluation.objects.get(slug="crowd")
Evaluation.objects.filter(pk=study.pk).update(reviews_wanted={WANTED})
for number in range({PEOPLE}):
    person = User.objects.create_user(f"reviewer-{{number}}")
    set_role(study, person, Role.REVIEWER, by=None)
    print("token", create_sign_in_link(person, by=None))
"""
COUNT = """
import json
from django.db.models import Count
saved = Review.objects.filter(comparison__evaluation__slug="crowd", state="final")
print(json.dumps({
    "reviews": saved.count(),
    "pairs": saved.values("rater", "comparison").distinct().count(),
    "by_comparison": list(saved.values_list("comparison").annotate(Count("pk")).values_list("pk__count", flat=True)),
    "by_rater": list(saved.values_list("rater").annotate(Count("pk")).values_list("pk__count", flat=True)),
    "verdicts": Verdict.objects.filter(review__in=saved).count(),
    "taken": list(QueueItem.objects.filter(comparison__evaluation__slug="crowd").values_list("taken", flat=True)),
    "picked": sorted(set(saved.values_list("selection_method", flat=True))),
}))
"""


@dataclass
class Reviewer:
    """Somebody with a browser without scripts, who takes what comes until nothing is left."""

    number: int
    address: str
    opener: OpenerDirector
    saved: int = 0

    def sign_in(self, link: str) -> None:
        page = self.get(link)
        self.post(link, fields_of(page))

    def work(self) -> "Reviewer":
        while True:
            with self.opener.open(f"{self.address}/e/crowd/review", timeout=60) as answer:
                where, page = answer.geturl(), answer.read().decode()
            if where.endswith("/review"):
                assert "No comparisons yet" not in page
                return self
            choices = {
                f"choice_{key}": ANSWERS[(self.number + place) % len(ANSWERS)]
                for place, key in enumerate(ASPECT.findall(page))
            }
            self.post(f"{where}/save", fields_of(page) | choices | {"active_ms": "1000"})
            self.saved += 1

    def get(self, address: str) -> str:
        with self.opener.open(address, timeout=60) as answer:
            text: str = answer.read().decode()
            return text

    def post(self, address: str, fields: dict[str, str]) -> None:
        with self.opener.open(address, urlencode(fields).encode(), timeout=60) as answer:
            assert answer.status == 200


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of the first form of the page's main part that has them."""
    main = page[page.index("<main") :]
    found: dict[str, str] = {}
    for name, value in FIELD.findall(main):
        found.setdefault(name, value)
    return found


def make_study(product: Product, folder: Path) -> list[str]:
    """The addresses by which its reviewers sign in."""
    file = folder / "crowd.jsonl"
    rows = (
        {"query_id": f"q{n}", "query": f"Question {n}?", "candidate_a": "x", "response_a": f"One {n}.",
         "candidate_b": "y", "response_b": f"Two {n}."}
        for n in range(COMPARISONS)
    )  # fmt: skip
    file.write_text("\n".join(map(json.dumps, rows)))
    product.manage("create_evaluation", "crowd", "--name", "Crowd", "--rubric", "six-aspect")
    product.manage("import_comparisons", "crowd", str(file))
    said = product.manage("shell", "-c", MAKE_PEOPLE).stdout
    return [f"{product.address}/sign-in/{line.split()[1]}" for line in said.splitlines() if line.startswith("token ")]


def test_twenty_people_make_exactly_the_reviews_that_are_wanted(product: Product, tmp_path: Path) -> None:
    people = []
    for number, link in enumerate(make_study(product, tmp_path)):
        person = Reviewer(number, product.address, build_opener(HTTPCookieProcessor(CookieJar())))
        person.sign_in(link)
        people.append(person)
    with ThreadPoolExecutor(PEOPLE) as pool:
        done = list(pool.map(Reviewer.work, people))
    counted = json.loads(product.manage("shell", "-c", COUNT).stdout.splitlines()[-1])
    assert sum(person.saved for person in done) == COMPARISONS * WANTED
    assert counted["reviews"] == counted["pairs"] == COMPARISONS * WANTED
    assert Counter(counted["by_comparison"]) == {WANTED: COMPARISONS}
    assert Counter(counted["taken"]) == {WANTED: COMPARISONS}
    assert counted["verdicts"] == COMPARISONS * WANTED * 2 * 6
    assert counted["picked"] == ["random"]
    assert len(counted["by_rater"]) == PEOPLE, "somebody was starved"
