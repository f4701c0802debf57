<?php

return [
    // While a secret is replaced, both: "whsec_new whsec_old".
    'secrets' => explode(' ', env('WEBHOOK_SECRETS', '')),
    'max_attempts' => (int) env('WEBHOOK_MAX_ATTEMPTS', 12),
    // The first pause after a failure. Each further one is twice as long, an hour at most.
    'backoff_seconds' => (float) env('WEBHOOK_BACKOFF_SECONDS', 10),
    // Longer than the longest work on one event: then another worker takes it.
    'lease_seconds' => (float) env('WEBHOOK_LEASE_SECONDS', 300),
];
