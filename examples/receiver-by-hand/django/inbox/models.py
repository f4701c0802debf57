from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class Webhook(models.Model):
    """One event of one source, from its receipt until its work is done.

    received -> done, or dead after its last attempt; dead -> received when a person retries it.
    """

    source = models.TextField()
    key = models.TextField()
    type = models.TextField()
    # What the event is about. Events of one subject are worked off one after the other.
    subject = models.TextField(null=True)
    state = models.TextField(default="received")
    attempts = models.IntegerField(default=0)
    next_at = models.DateTimeField(db_default=Now())
    body = models.BinaryField(null=True)
    receipts = models.IntegerField(default=1)
    received_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    error = models.TextField(null=True)

    class Meta:
        constraints = [
            # This takes each event once. A look before the insert does not.
            models.UniqueConstraint(fields=["source", "key"], name="webhook_once"),
        ]
        indexes = [
            models.Index(F("next_at"), F("id"), condition=Q(state="received"), name="webhook_due"),
            models.Index(F("source"), F("subject"), F("id"), condition=Q(state="received"), name="webhook_order"),
            models.Index(F("finished_at"), condition=Q(state="done"), name="webhook_expiry"),
        ]


class Customer(models.Model):
    """The application's own data, which webhooks change."""

    id = models.TextField(primary_key=True)
    email = models.TextField(default="")
    version = models.BigIntegerField(default=0)
    paid_cents = models.BigIntegerField(default=0)
