from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0002_search_tables"),
    ]

    operations = [
        migrations.AddField(
            model_name="lease",
            name="ended_at",
            field=models.DateTimeField(null=True),
        ),
    ]
