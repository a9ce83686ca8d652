"""The worker's side of one Celery task a call."""

import os
from functools import cache

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")
django.setup()

from celery import Celery
from django.conf import settings
from openai import OpenAI

from benchmarks.judging.baselines import Plain
from evaluations.models.runs import Run

app = Celery("one_task", broker="filesystem://")
app.conf.broker_transport_options = getattr(settings, "CELERY_BROKER_TRANSPORT_OPTIONS", {})
app.conf.task_ignore_result = True


@cache
def client() -> OpenAI:
    return OpenAI(base_url=os.environ["BENCHMARK_BASE_URL"], api_key="none")


@cache
def plain(run_id: int) -> Plain:
    return Plain(Run.objects.get(pk=run_id))


@app.task
def judge_one(run_id: int, call_id: int) -> None:
    plain_run = plain(run_id)
    call = plain_run.call(call_id)
    plain_run.keep(call, client().chat.completions.create(**plain_run.request(call)).choices[0].message.content or "")
