<?php

/*
 * The frame of an application, small enough to run the example on Laravel as Debian packages it (php-laravel-framework).
 * Your application has its own frame: it needs nothing of this file, of artisan, and of public/index.php.
 */

require_once 'Illuminate/autoload.php';

spl_autoload_register(function (string $class): void {
    $file = dirname(__DIR__).'/app/'.str_replace('\\', '/', substr($class, 4)).'.php';
    if (str_starts_with($class, 'App\\') && is_file($file)) {
        require $file;
    }
});

class ConsoleKernel extends Illuminate\Foundation\Console\Kernel
{
    protected function commands(): void
    {
        require base_path('routes/console.php');
    }
}

@mkdir(__DIR__.'/cache');

$app = new Illuminate\Foundation\Application(dirname(__DIR__));
$app->singleton(Illuminate\Contracts\Http\Kernel::class, Illuminate\Foundation\Http\Kernel::class);
$app->singleton(Illuminate\Contracts\Console\Kernel::class, ConsoleKernel::class);
$app->singleton(Illuminate\Contracts\Debug\ExceptionHandler::class, Illuminate\Foundation\Exceptions\Handler::class);
$app->booted(function (): void {
    Illuminate\Support\Facades\Route::prefix('api')->group(base_path('routes/api.php'));
});

return $app;
