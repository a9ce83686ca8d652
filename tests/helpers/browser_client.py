"""A Django test client in which somebody is signed in."""

from django.test import Client

from evaluations.models.users import User


def sign_in_client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
