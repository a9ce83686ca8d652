"""What plots cost: the script that draws them, a page of them in a browser, and their files.

    python benchmarks/plots.py [--plots 4] [--times 5]

Prints as JSON: bytes of the script as it is and as it is sent, and the seconds to make it; the
milliseconds to specify the plots; milliseconds from opening a page of them to the last one drawn,
with the script fetched and with it kept, by medians; how often the content security policy was
broken; seconds and megabytes of a picture in a process of its own, and of more in one process.
Needs Chromium.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn
from statistics import median
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from csp.utils import build_policy
from django.conf import settings
from django.core.management import call_command
from django.template import engines
from playwright.sync_api import BrowserContext, sync_playwright
from whitenoise import WhiteNoise

from evaluations.charts.browser_bundle import build_browser_bundle
from evaluations.charts.chart import Chart
from evaluations.charts.image_renderer import render_image
from evaluations.charts.themes import PAGE_THEME, PAPER_THEME
from tests.browser.conftest import FLAGS, chromium
from tests.helpers.chart_samples import make_every_chart

PAGE_OF_PLOTS = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Plots</title>
<link rel="stylesheet" href="{% static 'css/app.css' %}"></head><body><main>
{% for plot in plots %}{% include "_plot.html" %}{% endfor %}
</main><script type="module" src="{% static 'js/plots.js' %}"></script></body></html>"""
# When the last plot came, and every refusal of the policy.
WATCH = """window.drawn = []; window.refused = [];
document.addEventListener("securitypolicyviolation", (event) => refused.push(event.violatedDirective));
new MutationObserver((changes) => {
  for (const change of changes) for (const node of change.addedNodes)
    if (node.matches?.("svg.marks")) drawn.push(performance.now());
}).observe(document, { childList: true, subtree: true });"""


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Silent(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plots", type=int, default=4)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    figures = {**script(), **specified(options.times), **pictures(options.times)}
    call_command("collectstatic", interactive=False, verbosity=0)
    with served(make_every_chart(PAGE_THEME)[: options.plots]) as address:
        figures |= drawn_in_a_browser(address, options.plots, options.times)
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")


def script() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        seconds, path = timed(build_browser_bundle, Path(folder) / "vega.js")
        sent = subprocess.run(["gzip", "-9", "-c", str(path)], capture_output=True, check=True).stdout
        return {"script_bytes": path.stat().st_size, "script_sent_bytes": len(sent), "script_made_seconds": seconds}


def timed(call: Any, *arguments: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = call(*arguments)
    return round(time.perf_counter() - began, 3), result


def specified(times: int) -> dict[str, float]:
    return {"specify_8_plots_ms": round(1000 * median(timed(make_every_chart, PAGE_THEME)[0] for _ in range(times)), 1)}


def pictures(times: int) -> dict[str, float]:
    spec = make_every_chart(PAPER_THEME)[0].spec
    assert spec is not None
    own_process = median(timed(render_image, spec, "svg")[0] for _ in range(times))
    in_one = (
        "import json, resource, sys, time; from evaluations.charts.image_renderer import "
        "render_in_this_process; spec = json.load(sys.stdin);"
        "times = []\n"
        "for _ in range(6): began = time.perf_counter(); render_in_this_process(spec, 'svg'); "
        "times.append(time.perf_counter() - began)\n"
        "print(json.dumps([times[0], sorted(times[1:])[2], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))"
    )
    process_options = {"input": json.dumps(spec), "capture_output": True, "text": True, "cwd": ROOT, "check": True}
    first, later, megabytes = json.loads(subprocess.run([sys.executable, "-c", in_one], **process_options).stdout)
    return {
        "picture_in_own_process_seconds": round(own_process, 2),
        "picture_first_seconds": round(first, 2),
        "picture_later_seconds": round(later, 3),
        "picture_peak_megabytes": round(megabytes),
    }


@contextmanager
def served(plots: list[Chart]) -> Iterator[str]:
    html = engines["django"].from_string(PAGE_OF_PLOTS).render({"plots": plots}).encode()
    headers = [("Content-Type", "text/html"), ("Content-Security-Policy", build_policy())]

    def page(_: dict[str, Any], start: Any) -> list[bytes]:
        start("200 OK", headers)
        return [html]

    files = WhiteNoise(page, root=settings.STATIC_ROOT, prefix="/static/", max_age=600)
    with make_server("127.0.0.1", 0, files, Server, Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def drawn_in_a_browser(address: str, plots: int, times: int) -> dict[str, float]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        fresh, kept, refused = [], [], 0
        for _ in range(times):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            for drawings in (fresh, kept):
                milliseconds, broken = last_drawn(context, address, plots)
                drawings.append(milliseconds)
                refused += broken
            context.close()
        browser.close()
    return {
        f"page_of_{plots}_first_ms": round(median(fresh)),
        f"page_of_{plots}_again_ms": round(median(kept)),
        "refused_by_policy": refused,
    }


def last_drawn(context: BrowserContext, address: str, plots: int) -> tuple[float, int]:
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(address)
    page.locator("svg.marks").nth(plots - 1).wait_for(timeout=30_000)
    milliseconds, refused = page.evaluate("[drawn.at(-1), refused.length]")
    page.close()
    return milliseconds, refused


if __name__ == "__main__":
    main()
