from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0016_queue_reviewed"),
    ]

    operations = [
        migrations.AddField(model_name="run", name="archived_at", field=models.DateTimeField(null=True)),
    ]
