from django.db import migrations, models
from django.db.models import F, Value
from django.db.models.functions import Replace

KINDS = ["run.finished", "run.stopped", "queue.reviewed", "disagreement.opened", "test"]
CHOICES = [(kind, kind) for kind in KINDS]


def rename_kind(apps, schema_editor):
    """The event of a reviewed queue was called round.reviewed: in subscriptions, messages and those not yet sent."""
    webhooks = apps.get_model("evaluations", "Webhook").objects.filter(kinds__contains="round.reviewed")
    webhooks.update(kinds=replaced("kinds", "round.reviewed", "queue.reviewed"))
    apps.get_model("evaluations", "OutboxEntry").objects.filter(kind="round.reviewed").update(kind="queue.reviewed")
    deliveries = apps.get_model("evaluations", "Delivery").objects.filter(kind="round.reviewed")
    with_type = replaced("body", '"type": "round.reviewed"', '"type": "queue.reviewed"')
    # Each row once: PostgreSQL would alter no table after a second change of a row in one transaction.
    body = Replace(with_type, Value('"round": '), Value('"queue": '))
    deliveries.filter(state="waiting").update(kind="queue.reviewed", body=body)
    deliveries.update(kind="queue.reviewed")


def replaced(column, before, after):
    return Replace(F(column), Value(before), Value(after))


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0015_name_reveal"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="delivery", name="delivery_kind"),
        migrations.RemoveConstraint(model_name="outboxentry", name="outbox_entry_kind"),
        migrations.RunPython(rename_kind, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="delivery", name="kind", field=models.CharField(choices=CHOICES, max_length=20)
        ),
        migrations.AlterField(
            model_name="outboxentry", name="kind", field=models.CharField(choices=CHOICES, max_length=20)
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name="delivery_kind"),
        ),
        migrations.AddConstraint(
            model_name="outboxentry",
            constraint=models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name="outbox_entry_kind"),
        ),
    ]
