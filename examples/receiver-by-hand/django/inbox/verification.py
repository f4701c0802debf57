import base64
import hashlib
import hmac
import time

TOLERANCE_SECONDS = 300


def key_of(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"))


def is_genuine(headers, body: bytes, secrets: list[str]) -> bool:
    """Checks a request by Standard Webhooks. `body` is the bytes as they came."""
    event_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 12:
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = f"{event_id}.{timestamp}.".encode() + body
    expected = [
        b"v1," + base64.b64encode(hmac.new(key_of(secret), signed, hashlib.sha256).digest())
        for secret in secrets
    ]
    given = headers.get("webhook-signature", "").encode().split(b" ")[:16]
    return any(hmac.compare_digest(one, other) for one in given for other in expected)
