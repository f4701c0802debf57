<?php

namespace App\Webhooks;

use Illuminate\Database\Query\Builder;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Log;

class Queue
{
    // Only the oldest open event of a subject is taken.
    private const DUE = <<<'SQL'
        select w.id, w.attempts from webhooks w
        where w.state = 'received' and w.next_at <= now(3)
          and (w.subject is null or not exists (
            select 1 from webhooks earlier
            where earlier.source = w.source and earlier.subject = w.subject
              and earlier.state = 'received' and earlier.id < w.id))
        order by w.next_at, w.id limit 1 for update skip locked
        SQL;

    /**
     * Takes the next event that is due. Returns its id and the number of this attempt, or null.
     * The transaction is its own: an event that kills its worker has its attempt counted.
     */
    public static function claim(): ?array
    {
        return DB::transaction(function () {
            $due = DB::selectOne(self::DUE);
            if ($due === null) {
                return null;
            }
            // next_at is the end of the lease.
            DB::table('webhooks')->where('id', $due->id)->update([
                'attempts' => $due->attempts + 1,
                'next_at' => self::in(config('webhooks.lease_seconds')),
            ]);

            return [$due->id, $due->attempts + 1];
        }, 3);
    }

    /** Does the work of a claimed event, and marks it as done in the same transaction. */
    public static function work(int $id, int $attempt): void
    {
        $mine = fn (): Builder => DB::table('webhooks')
            ->where(['id' => $id, 'state' => 'received', 'attempts' => $attempt]);
        if ($attempt > config('webhooks.max_attempts')) {
            self::bury($mine(), 'Its last attempt ended with its worker.');

            return;
        }
        try {
            // A deadlock is no failure of the event: the transaction runs again, three times in all.
            DB::transaction(function () use ($mine) {
                // Nobody else has claimed it since, and nobody can while this transaction runs.
                $webhook = $mine()->lock('for update skip locked')->first();
                if ($webhook === null) {
                    return;
                }
                Handlers::handle($webhook->type, self::read($webhook->body));
                $mine()->update(['state' => 'done', 'finished_at' => DB::raw('now(3)'), 'error' => null, 'body' => null]);
            }, 3);
        } catch (\Throwable $error) {
            self::fail($mine(), $id, $attempt, $error);
        }
    }

    private static function read(string $body): array
    {
        $event = json_decode($body, true);
        if (! is_array($event)) {
            throw new PermanentError('The body is not JSON of an object.');
        }

        return $event;
    }

    private static function fail(Builder $mine, int $id, int $attempt, \Throwable $error): void
    {
        $text = mb_substr(mb_scrub(get_class($error).': '.$error->getMessage()), 0, 1000);
        if ($error instanceof PermanentError || $attempt >= config('webhooks.max_attempts')) {
            Log::error("webhook $id is dead: $text");
            self::bury($mine, $text);

            return;
        }
        $seconds = min(config('webhooks.backoff_seconds') * 2 ** ($attempt - 1), 3600) * random_int(500, 1000) / 1000;
        Log::warning("webhook $id is tried again in $seconds s: $text");
        $mine->update(['next_at' => self::in($seconds), 'error' => $text]);
    }

    private static function bury(Builder $mine, string $error): void
    {
        $mine->update(['state' => 'dead', 'finished_at' => DB::raw('now(3)'), 'error' => $error]);
    }

    private static function in(float $seconds)
    {
        return DB::raw(sprintf('now(3) + interval %d microsecond', $seconds * 1_000_000));
    }

    /** Lets a dead event be worked off again. Returns whether there is one. */
    public static function retry(int $id): bool
    {
        return DB::table('webhooks')->where(['id' => $id, 'state' => 'dead'])->update([
            'state' => 'received', 'attempts' => 0, 'next_at' => DB::raw('now(3)'), 'finished_at' => null,
        ]) === 1;
    }

    /** Removes what was done that many days ago. Keep it for longer than the sender may repeat an event. */
    public static function prune(int $days, int $batch = 1000): int
    {
        $removed = 0;
        do {
            $count = DB::table('webhooks')->where('state', 'done')
                ->where('finished_at', '<', DB::raw("now(3) - interval $days day"))
                ->limit($batch)->delete();
            $removed += $count;
        } while ($count === $batch);

        return $removed;
    }
}
