import json
import logging

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import Error
from django.db.models import F
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from .models import Webhook
from .verification import is_genuine

log = logging.getLogger(__name__)
SOURCE = "petrel"


def subject_of(body: bytes) -> str | None:
    """Returns what an event is about; None where it does not say. Never fails: what cannot be read is stored, too."""
    try:
        subject = json.loads(body)["customer"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return subject if isinstance(subject, str) and subject.isprintable() else None


@csrf_exempt
@require_POST
def receive(request):
    """Verifies, stores, answers. The work comes later, in `manage.py webhooks work`."""
    # The bytes as they came. What a parser made of them has another signature.
    try:
        body = request.body
    except RequestDataTooBig:
        return HttpResponse("The body is too large.", status=413)
    if not is_genuine(request.headers, body, settings.WEBHOOK_SECRETS):
        return HttpResponse("The signature does not fit.", status=401)
    try:
        # get_or_create looks before it inserts. The unique constraint is what makes that safe.
        webhook, is_new = Webhook.objects.get_or_create(
            source=SOURCE,
            key=request.headers["webhook-id"],
            defaults={
                "type": request.headers.get("webhook-event-type", ""),
                "subject": subject_of(body),
                "body": body,
            },
        )
        if not is_new:
            Webhook.objects.filter(pk=webhook.pk).update(receipts=F("receipts") + 1)
    except Error:
        # To some senders a 4xx says that the event is done with. 503 says: send it again.
        log.exception("a webhook could not be stored")
        return HttpResponse("Not stored: send it again.", status=503, headers={"Retry-After": "30"})
    # A repeat is answered as the first one: the sender repeats because it did not see that answer.
    return HttpResponse(status=200)
