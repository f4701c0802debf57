<?php

use App\Webhooks\Queue;
use Illuminate\Support\Facades\Artisan;
use Illuminate\Support\Facades\DB;

Artisan::command('webhooks:work', function () {
    $isStopped = false;
    pcntl_async_signals(true);
    foreach ([SIGTERM, SIGINT] as $signal) {
        pcntl_signal($signal, function () use (&$isStopped) {
            $isStopped = true;
        });
    }
    while (! $isStopped) {
        try {
            $claimed = Queue::claim();
            if ($claimed !== null) {
                Queue::work(...$claimed);
                continue;
            }
        } catch (\PDOException $error) {
            report($error);
            DB::purge();
        }
        sleep(1);
    }
})->purpose('Work off webhooks that are stored');

Artisan::command('webhooks:dead', function () {
    foreach (DB::table('webhooks')->where('state', 'dead')->orderBy('id')->cursor() as $one) {
        $this->line("$one->id  $one->type  $one->event_key  $one->attempts attempts  $one->error");
    }
})->purpose('Show webhooks that are dead');

Artisan::command('webhooks:retry {id}', function (int $id) {
    if (! Queue::retry($id)) {
        $this->error("There is no dead webhook $id.");

        return 1;
    }
})->purpose('Let a dead webhook be worked off again');

Artisan::command('webhooks:prune {--days=32}', function () {
    $this->line(Queue::prune((int) $this->option('days')).' removed');
})->purpose('Remove webhooks that were done long ago');
