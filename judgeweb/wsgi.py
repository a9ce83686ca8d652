import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")

application = get_wsgi_application()
# All pages are imported before a process accepts connections: its first requests would wait for seconds, while
# other processes are free.
get_resolver().url_patterns  # noqa: B018 - read for its effect
