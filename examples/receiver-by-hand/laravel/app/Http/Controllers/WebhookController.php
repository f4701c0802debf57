<?php

namespace App\Http\Controllers;

use App\Webhooks\Verification;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\DB;

class WebhookController
{
    private const SOURCE = 'petrel';

    private const MAX_BYTES = 2_097_152;

    /** Verifies, stores, answers. The work comes later, in `php artisan webhooks:work`. */
    public function __invoke(Request $request)
    {
        // The bytes as they came. What a parser made of them has another signature.
        $body = $request->getContent();
        if (strlen($body) > self::MAX_BYTES) {
            return response('The body is too large.', 413);
        }
        $id = (string) $request->header('webhook-id');
        $isGenuine = Verification::isGenuine(
            $id,
            (string) $request->header('webhook-timestamp'),
            (string) $request->header('webhook-signature'),
            $body,
            config('webhooks.secrets')
        );
        if (! $isGenuine) {
            return response('The signature does not fit.', 401);
        }
        try {
            // Not insertOrIgnore: on MySQL it also cuts what is too long and stores that.
            DB::table('webhooks')->upsert(
                [[
                    'source' => self::SOURCE,
                    'event_key' => $id,
                    'type' => (string) $request->header('webhook-event-type'),
                    'subject' => $this->subjectOf($body),
                    'body' => $body,
                ]],
                ['source', 'event_key'],
                ['receipts' => DB::raw('receipts + 1')]
            );
        } catch (\PDOException $error) {
            // To some senders a 4xx says that the event is done with. 503 says: send it again.
            report($error);

            return response('Not stored: send it again.', 503, ['Retry-After' => 30]);
        }

        // A repeat is answered as the first one: the sender repeats because it did not see that answer.
        return response('', 200);
    }

    /** Returns what an event is about; null where it does not say. Never fails: what cannot be read is stored, too. */
    private function subjectOf(string $body): ?string
    {
        $event = json_decode($body, true);
        $subject = is_array($event) ? $event['customer'] ?? null : null;

        return is_string($subject) && mb_strlen($subject) <= 255 ? $subject : null;
    }
}
