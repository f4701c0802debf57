"""What the application does with events. Each function runs in the transaction that marks the event as done."""

from django.db.models import F

from .models import Customer


class PermanentError(Exception):
    """Another attempt would fail the same way."""


def invoice_paid(event):
    Customer.objects.get_or_create(id=event["customer"])
    Customer.objects.filter(id=event["customer"]).update(paid_cents=F("paid_cents") + event["cents"])


def customer_updated(event):
    Customer.objects.get_or_create(id=event["customer"])
    # Senders do not keep order: of two versions the newer one stays, whichever comes last.
    Customer.objects.filter(id=event["customer"], version__lt=event["version"]).update(
        email=event["email"], version=event["version"]
    )


handlers = {"invoice.paid": invoice_paid, "customer.updated": customer_updated}
