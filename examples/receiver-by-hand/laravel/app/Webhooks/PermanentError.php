<?php

namespace App\Webhooks;

/** Another attempt would fail the same way. */
class PermanentError extends \Exception
{
}
