import json
import logging
import random
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from .handlers import PermanentError, handlers
from .models import Webhook

log = logging.getLogger(__name__)

# One statement, and so a transaction of its own: an event that kills its worker has its attempt counted.
# Only the oldest open event of a subject is taken. next_at is the end of the lease.
CLAIM = """
update inbox_webhook set attempts = attempts + 1, next_at = now() + make_interval(secs => %s)
where id = (
  select w.id from inbox_webhook w
  where w.state = 'received' and w.next_at <= now()
    and (w.subject is null or not exists (
      select 1 from inbox_webhook earlier
      where earlier.source = w.source and earlier.subject = w.subject
        and earlier.state = 'received' and earlier.id < w.id))
  order by w.next_at, w.id for update skip locked limit 1)
returning id, attempts
"""


def claim() -> tuple[int, int] | None:
    """Takes the next event that is due. Returns its id and the number of this attempt."""
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, [settings.WEBHOOK_LEASE_SECONDS])
        return cursor.fetchone()


def work(pk: int, attempt: int) -> None:
    """Does the work of a claimed event, and marks it as done in the same transaction."""
    mine = Webhook.objects.filter(pk=pk, state="received", attempts=attempt)
    if attempt > settings.WEBHOOK_MAX_ATTEMPTS:
        mine.update(state="dead", finished_at=Now(), error="Its last attempt ended with its worker.")
        return
    try:
        with transaction.atomic():
            # Nobody else has claimed it since, and nobody can while this transaction runs.
            webhook = mine.select_for_update(skip_locked=True).first()
            if webhook is None:
                return
            handler = handlers.get(webhook.type)
            if handler is not None:
                handler(read(webhook.body))
            mine.update(state="done", finished_at=Now(), error=None, body=None)
    except Exception as error:
        fail(mine, pk, attempt, error)


def read(body: bytes):
    try:
        return json.loads(bytes(body))
    except ValueError as error:
        raise PermanentError("The body is not JSON.") from error


def fail(mine, pk: int, attempt: int, error: Exception) -> None:
    text = f"{type(error).__name__}: {error}"[:1000].replace("\0", "")
    if isinstance(error, PermanentError) or attempt >= settings.WEBHOOK_MAX_ATTEMPTS:
        log.error("webhook %s is dead: %s", pk, text)
        mine.update(state="dead", finished_at=Now(), error=text)
        return
    seconds = min(settings.WEBHOOK_BACKOFF_SECONDS * 2 ** (attempt - 1), 3600) * random.uniform(0.5, 1)
    log.warning("webhook %s is tried again in %.0f s: %s", pk, seconds, text)
    mine.update(next_at=Now() + timedelta(seconds=seconds), error=text)


def retry(pk: int) -> bool:
    """Lets a dead event be worked off again. Returns whether there is one."""
    dead = Webhook.objects.filter(pk=pk, state="dead")
    return dead.update(state="received", attempts=0, next_at=Now(), finished_at=None) == 1


def prune(days: int, batch: int = 1000) -> int:
    """Removes what was done that many days ago. Keep it for longer than the sender may repeat an event."""
    removed = 0
    while True:
        old = Webhook.objects.filter(state="done", finished_at__lt=Now() - timedelta(days=days))
        count, _ = Webhook.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:batch])).delete()
        removed += count
        if count < batch:
            return removed
