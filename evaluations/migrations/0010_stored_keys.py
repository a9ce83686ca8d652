from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0009_endpoint_outages"),
    ]

    operations = [
        migrations.AddField(
            model_name="endpoint",
            name="encrypted_key",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("key_variable", ""), ("encrypted_key", ""), _connector="OR"),
                name="endpoint_one_key",
            ),
        ),
    ]
