from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0040_endpoint_dialects"),
    ]

    operations = [
        migrations.AddField(
            model_name="rubricversion",
            name="layout",
            field=models.PositiveSmallIntegerField(default=1),
        ),
    ]
