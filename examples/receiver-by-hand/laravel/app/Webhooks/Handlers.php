<?php

namespace App\Webhooks;

use Illuminate\Support\Facades\DB;

/** What the application does with events. Each function runs in the transaction that marks the event as done. */
class Handlers
{
    public static function handle(string $type, array $event): void
    {
        match ($type) {
            'invoice.paid' => self::invoicePaid($event),
            'customer.updated' => self::customerUpdated($event),
            default => null,
        };
    }

    private static function invoicePaid(array $event): void
    {
        DB::table('customers')->upsert([['id' => $event['customer']]], ['id'], ['id']);
        DB::table('customers')->where('id', $event['customer'])->increment('paid_cents', $event['cents']);
    }

    private static function customerUpdated(array $event): void
    {
        DB::table('customers')->upsert([['id' => $event['customer']]], ['id'], ['id']);
        // Senders do not keep order: of two versions the newer one stays, whichever comes last.
        DB::table('customers')
            ->where('id', $event['customer'])
            ->where('version', '<', $event['version'])
            ->update(['email' => $event['email'], 'version' => $event['version']]);
    }
}
