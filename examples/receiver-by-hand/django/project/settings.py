"""What the example needs of Django. Your project has its own settings: add "inbox" and the four WEBHOOK_ lines to them."""

import os
from urllib.parse import unquote, urlsplit

SECRET_KEY = os.environ.get("SECRET_KEY", "only-for-this-example")
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "project.urls"
INSTALLED_APPS = ["inbox"]
MIDDLEWARE = []
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# postgres://user:password@host:port/name
_database = urlsplit(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _database.path.lstrip("/"),
        "USER": unquote(_database.username or ""),
        "PASSWORD": unquote(_database.password or ""),
        "HOST": _database.hostname or "",
        "PORT": _database.port or "",
        # A database that does not answer must not hold requests until the sender gives up.
        "OPTIONS": {"connect_timeout": 3, "options": "-c statement_timeout=5000"},
    }
}

# While a secret is replaced, both: "whsec_new whsec_old".
WEBHOOK_SECRETS = os.environ["WEBHOOK_SECRETS"].split()
WEBHOOK_MAX_ATTEMPTS = int(os.environ.get("WEBHOOK_MAX_ATTEMPTS", "12"))
# The first pause after a failure. Each further one is twice as long, an hour at most.
WEBHOOK_BACKOFF_SECONDS = float(os.environ.get("WEBHOOK_BACKOFF_SECONDS", "10"))
# Longer than the longest work on one event: then another worker takes it.
WEBHOOK_LEASE_SECONDS = float(os.environ.get("WEBHOOK_LEASE_SECONDS", "300"))
