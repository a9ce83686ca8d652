"""People with a browser."""

from django.test import Client

from evaluations.models import User


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
