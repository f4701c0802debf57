<?php

return [
    'default' => 'mysql',
    'migrations' => 'migrations',
    'connections' => [
        'mysql' => [
            'driver' => 'mysql',
            'url' => env('DATABASE_URL'),
            'charset' => 'utf8mb4',
            'collation' => 'utf8mb4_unicode_ci',
            'prefix' => '',
            'strict' => true,
            // When a local clock is put back, now() repeats an hour, and what came before waits for it.
            'timezone' => '+00:00',
            // REPEATABLE READ, the default, also locks what the claim passed over.
            'isolation_level' => 'READ COMMITTED',
            // A database that does not answer must not hold requests until the sender gives up.
            'options' => [PDO::ATTR_TIMEOUT => 3],
        ],
    ],
];
