"""Settings, all from the environment. One that cannot be used stops the start and is named without its value: that may
be a key or a password in the wrong place.

The default needs nothing: SQLite and a file broker in ``var/``. `.env.example` lists every name;
a file ``.env`` beside it is read too, and what the environment says itself wins.
"""

import os
import tomllib
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import dj_database_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from judgeweb.environment import (
    close_to_others,
    find_shared_folder,
    load_or_create_secret,
    read_broker_url,
    read_contact,
    read_encryption_keys,
    read_env_file,
    read_flag,
    read_names,
    read_networks,
    read_ollama_url,
    read_queue_prefix,
    read_site_address,
    read_whole_number,
)

# Before numpy is imported: the matrices of a report are small, and threads that wait for each other on a machine with
# other work to do took twelve times as long as one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]

if (env_file := Path(os.environ.get("JUDGEWEB_ENV_FILE", "") or BASE_DIR / ".env")).is_file():
    read_env_file(env_file)

# Nobody else on this machine reads what any process of the product writes.
os.umask(0o077)

# Where all state lies: database, broker, secret key, uploads, exports, backups, logs.
DATA_DIR = Path(os.environ.get("JUDGEWEB_DATA_DIR", "") or BASE_DIR / "var").resolve()
try:
    DATA_DIR.mkdir(parents=True, exist_ok=True)
    close_to_others(DATA_DIR)
    SECRET_KEY = os.environ.get("JUDGEWEB_SECRET_KEY", "") or load_or_create_secret(DATA_DIR / "secret_key")
except OSError as error:
    raise ImproperlyConfigured(f"JUDGEWEB_DATA_DIR is not writable ({error.strerror}).") from None

DEBUG = read_flag("JUDGEWEB_DEBUG")
# Where the web server listens, and the address that people type: the same unless a proxy stands before it.
HOST = os.environ.get("JUDGEWEB_HOST", "") or "127.0.0.1"
PORT = read_whole_number("PORT", 8000, 1, 65535)
WEB_PROCESSES = read_whole_number("JUDGEWEB_WEB_PROCESSES", 1, 1, 64)
WEB_THREADS = read_whole_number("JUDGEWEB_WEB_THREADS", 8, 1, 128)
ADDRESS = read_site_address("JUDGEWEB_ADDRESS", f"http://{'127.0.0.1' if HOST == '0.0.0.0' else HOST}:{PORT}")
BEHIND_HTTPS = ADDRESS.startswith("https://")
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", urlsplit(ADDRESS).hostname, *read_names("JUDGEWEB_ALLOWED_HOSTS")]

INSTALLED_APPS = [
    "evaluations",  # first: one of its commands takes the place of Django's
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",  # its table is emptied by a migration: sessions are in ours
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "ninja",
]

MIDDLEWARE = [
    "evaluations.operations.middleware.MetricsMiddleware",
    "evaluations.api.middleware.ProblemMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "evaluations.web.middleware.PrivateResponseMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "evaluations.web.middleware.HtmxRedirectMiddleware",
    "evaluations.web.middleware.UploadLimitMiddleware",
    "evaluations.web.sessions.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "evaluations.web.sessions.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "evaluations.web.middleware.TimezoneMiddleware",
    "evaluations.web.middleware.RightRefusalMiddleware",
]

ROOT_URLCONF = "judgeweb.urls"
WSGI_APPLICATION = "judgeweb.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "evaluations.context_processors.site_context",
            ],
            "builtins": [
                "django.templatetags.static",
                "django_htmx.templatetags.django_htmx",
                "evaluations.templatetags.times",
            ],
        },
    }
]

# ---- database ------------------------------------------------------------------------------
DATABASE_URL = os.environ.get("DATABASE_URL", "") or f"sqlite:///{DATA_DIR / 'judgeweb.sqlite3'}"
try:
    # The first request on a new PostgreSQL connection takes about 30 ms longer, until its caches are filled.
    database = dj_database_url.parse(DATABASE_URL, conn_max_age=600, conn_health_checks=True)
except (dj_database_url.ParseError, dj_database_url.UnknownSchemeError, ValueError):
    # The value itself may hold a password: it is not repeated.
    raise ImproperlyConfigured(
        "DATABASE_URL cannot be read: it must look like sqlite:///path or postgres://user@host/name."
    ) from None
USES_SQLITE = database["ENGINE"] == "django.db.backends.sqlite3"
if USES_SQLITE:
    # Writers wait for each other instead of failing; readers never wait. A test database is a
    # file too: threads cannot share an in-memory one. The log is copied into the file every 8,000
    # pages, not 1,000: an import writes the same pages of its indexes many times in between.
    database["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 30,
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; "
            "PRAGMA wal_autocheckpoint=8000;"
        ),
    }
    database["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
elif database["ENGINE"] != "django.db.backends.postgresql":
    raise ImproperlyConfigured("DATABASE_URL names another database: only sqlite and postgres are supported.")
if not USES_SQLITE:
    # Compiling a statement takes PostgreSQL a hundred times as long as running one of ours. A process that stands still
    # in a transaction, or whose machine is gone, must not keep its locks. A server that is gone must not keep ours
    # waiting: without limits a connection that is being made waits for two minutes, and others for hours.
    # The address may differ.
    database["OPTIONS"] = {
        "options": "-c jit=off -c idle_in_transaction_session_timeout=60s "
        "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
        "connect_timeout": 5,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
        **database.get("OPTIONS", {}),
    }
DATABASES = {"default": database}
# Whoever starts a new version has made a copy of the PostgreSQL database.
MIGRATE_WITHOUT_COPY = read_flag("JUDGEWEB_MIGRATE_WITHOUT_COPY")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ---- background work -----------------------------------------------------------------------
CELERY_BROKER_URL = read_broker_url("CELERY_BROKER_URL")
# All that this site has at the broker begins with this name, so that others may use the broker too.
QUEUE = "judgeweb" + (f".{prefix}" if (prefix := read_queue_prefix("JUDGEWEB_QUEUE_PREFIX")) else "")
if urlsplit(CELERY_BROKER_URL).scheme == "filesystem":
    BROKER_DIR = DATA_DIR / "broker"
    BROKER_DIR.mkdir(exist_ok=True)
    CELERY_BROKER_TRANSPORT = "judgeweb.broker:Transport"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(BROKER_DIR),
        "data_folder_out": str(BROKER_DIR),
        "control_folder": str(BROKER_DIR / "control"),
        "polling_interval": 0.1,
    }
elif CELERY_BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "global_keyprefix": f"{QUEUE}:",
        "socket_connect_timeout": 4,
        "socket_timeout": 10,
        "health_check_interval": 5,
    }
else:
    # Without the broker's word for each message, one that went into a cut connection is lost in silence.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"confirm_publish": True}
CELERY_TASK_DEFAULT_QUEUE = CELERY_TASK_DEFAULT_EXCHANGE = CELERY_TASK_DEFAULT_ROUTING_KEY = QUEUE
CELERY_CONTROL_EXCHANGE, CELERY_EVENT_EXCHANGE = f"{QUEUE}.control", f"{QUEUE}.events"
CELERY_EVENT_QUEUE_PREFIX = f"{QUEUE}.events"
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_CONSUMER = "judgeweb.consumer:LastingConsumer"
CELERY_BROKER_HEARTBEAT = 10
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # for ever: workers go on by the database meanwhile
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# After a lost connection Celery would raise the reduced count again in the threads of tasks: several of them read one
# connection to RabbitMQ then, and each waits for the answer that another one has read.
CELERY_WORKER_ENABLE_PREFETCH_COUNT_REDUCTION = False
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = read_whole_number("JUDGEWEB_WORKER_THREADS", 4, 1, 64)
# Workers use what pages leave of the processors: 0 lets them compete.
WORKER_NICENESS = read_whole_number("JUDGEWEB_WORKER_NICENESS", 10, 0, 19)
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True  # of those acknowledged late: there is none
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"

# ---- judges --------------------------------------------------------------------------------
# How long one request may take, and how long a dead worker's calls stay its own.
REQUEST_TIMEOUT_SECONDS = read_whole_number("JUDGEWEB_REQUEST_TIMEOUT_SECONDS", 120, 1, 3600)
LEASE_SECONDS = read_whole_number("JUDGEWEB_LEASE_SECONDS", 20, 2, 3600)
BATCH_POLL_SECONDS = read_whole_number("JUDGEWEB_BATCH_POLL_SECONDS", 60, 1, 3600)
# A run is paused after so many equal failures without a success between them; 0: never.
PAUSE_AFTER_FAILURES = read_whole_number("JUDGEWEB_PAUSE_AFTER_FAILURES", 12, 0, 1_000_000)
OLLAMA_URL = read_ollama_url()
# What encrypts the API keys that are stored: the first one encrypts, all decrypt. Without any, a file that the first
# stored key creates.
ENCRYPTION_KEYS = read_encryption_keys("JUDGEWEB_ENCRYPTION_KEYS")
ENCRYPTION_KEY_FILE = DATA_DIR / "encryption_keys"

# Networks besides the public internet that webhooks may reach.
WEBHOOK_NETWORKS = read_networks("JUDGEWEB_WEBHOOK_NETWORKS")

# ---- people --------------------------------------------------------------------------------
AUTH_USER_MODEL = "evaluations.User"
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "evaluations"
LOGOUT_REDIRECT_URL = "sign_in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
API_REQUESTS_PER_MINUTE = read_whole_number("JUDGEWEB_API_REQUESTS_PER_MINUTE", 600, 1, 1_000_000)
SIGN_IN_LINK_HOURS = read_whole_number("JUDGEWEB_SIGN_IN_LINK_HOURS", 24, 1, 24 * 30)
SESSION_COOKIE_NAME = f"judgeweb_{PORT}"
CSRF_COOKIE_NAME = f"judgeweb_csrf_{PORT}"
# A session ends when it is this old, or was not used for so long.
SESSION_ENGINE = "evaluations.web.sessions"
SESSION_COOKIE_AGE = 60 * 60 * 24 * 30
SESSION_IDLE_HOURS = read_whole_number("JUDGEWEB_SESSION_IDLE_HOURS", 24 * 7, 1, 24 * 30)
# By this cookie a browser is known that signed in before: strangers who guess do not make it wait.
DEVICE_COOKIE_NAME = f"judgeweb_device_{PORT}"
# Proxies whose X-Forwarded-For is believed.
TRUSTED_PROXIES = read_networks("JUDGEWEB_TRUSTED_PROXIES")
SECURITY_EVENT_DAYS = read_whole_number("JUDGEWEB_SECURITY_EVENT_DAYS", 180, 1, 3650)
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "evaluations.web.error_views.csrf_failure"

# Where finders of a weakness write to, mailto:… or https://…: /.well-known/security.txt names it.
SECURITY_CONTACT = read_contact("JUDGEWEB_SECURITY_CONTACT")

# ---- what the browser is told --------------------------------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "manifest-src": [SELF],
    }
}
# What monitors ask: over plain http too, and their 503 is not logged.
MONITOR_PATHS = ("/healthz", "/readyz", "/workz", "/metrics")
if BEHIND_HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 60 * 60 * 24 * 365
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [f"^{path[1:]}$" for path in MONITOR_PATHS]
# The owner of the domain decides about subdomains and browsers' preload lists.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

# ---- files ---------------------------------------------------------------------------------
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "judgeweb.made_files.MadeFilesFinder",
]
MEDIA_ROOT = DATA_DIR / "files"
STORAGES = {
    "default": {"BACKEND": "judgeweb.file_storage.WholeFiles"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "judgeweb.static_files.HashedFiles"
    },
}
# Whatever lies here can be made again: reports that nothing has changed since, and what they are made of.
CACHE_DIR = DATA_DIR / "cache"
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "reports": {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": CACHE_DIR / "reports",
        "OPTIONS": {"MAX_ENTRIES": 500},
    },
}
MAX_UPLOAD_BYTES = read_whole_number("JUDGEWEB_MAX_UPLOAD_MB", 512, 1, 4096) * 1024 * 1024
# What a compressed file may become, and how many rows are read of any.
MAX_UNPACKED_BYTES = read_whole_number("JUDGEWEB_MAX_UNPACKED_MB", 16_384, 1, 1_048_576) * 1024 * 1024
# What is left free on the disk of the data folder: the database needs some to go on.
DISK_RESERVE_BYTES = read_whole_number("JUDGEWEB_DISK_RESERVE_MB", 500, 0, 1_048_576) * 1024 * 1024
# An export of no more comparisons is sent while it is written; a longer one is written by a worker.
EXPORT_SENT_ROWS = read_whole_number("JUDGEWEB_EXPORT_SENT_ROWS", 20_000, 0, 1_000_000_000)
MAX_ROWS = read_whole_number("JUDGEWEB_MAX_ROWS", 10_000_000, 1, 1_000_000_000)
# Beside the files that are kept: what has come in whole is then renamed, not copied, and /tmp may be memory.
SCRATCH_DIR = DATA_DIR / "scratch"
SCRATCH_DIR.mkdir(exist_ok=True)
FILE_UPLOAD_TEMP_DIR = SCRATCH_DIR
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

# ---- monitors ------------------------------------------------------------------------------
METRICS_TOKEN = os.environ.get("JUDGEWEB_METRICS_TOKEN", "")
# Where several web processes add up their requests. In memory where possible: on a full disk they would be killed.
METRICS_DIR = find_shared_folder(DATA_DIR) if WEB_PROCESSES > 1 else None
if METRICS_DIR is not None:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(METRICS_DIR)

# ---- words and times -----------------------------------------------------------------------
LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = os.environ.get("JUDGEWEB_TIME_ZONE", "") or "UTC"
try:
    ZoneInfo(TIME_ZONE)
except (ZoneInfoNotFoundError, ValueError):
    raise ImproperlyConfigured("JUDGEWEB_TIME_ZONE is no time zone that is known (try Europe/Berlin).") from None

# ---- logs ----------------------------------------------------------------------------------
# Everything goes to stderr; `make run` keeps what its children say there in LOG_DIR.
LOG_DIR = DATA_DIR / "logs"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "known_failures": {"()": "evaluations.web.failure_log.KnownFailures"},
        "monitor_answers": {"()": "evaluations.web.failure_log.MonitorAnswers", "paths": MONITOR_PATHS},
    },
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["known_failures"]},
    },
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "evaluations": {"level": "INFO"},
        "judgeweb": {"level": "INFO"},
        "celery": {"level": "WARNING"},
        # In this order: a monitor that asks while the database is away has had its answer.
        "django.request": {"level": "ERROR", "filters": ["known_failures", "monitor_answers"]},
    },
}
