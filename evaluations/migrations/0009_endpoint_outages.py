from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0008_served_reports"),
    ]

    operations = [
        migrations.AddField(
            model_name="endpoint",
            name="down_reason",
            field=models.CharField(blank=True, max_length=500),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="down_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="failed_probes",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="next_probe_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="probed_up_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(condition=models.Q(("outcome", "lost")), fields=["created_at"], name="attempt_lost"),
        ),
    ]
