<?php

use App\Http\Controllers\WebhookController;
use Illuminate\Support\Facades\Route;

// Here and not in routes/web.php, whose routes ask for a CSRF token.
Route::post('/webhooks/petrel', WebhookController::class);
