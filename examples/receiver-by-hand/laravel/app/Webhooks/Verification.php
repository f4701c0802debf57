<?php

namespace App\Webhooks;

class Verification
{
    private const TOLERANCE_SECONDS = 300;

    /** Checks a request by Standard Webhooks. $body is the bytes as they came. */
    public static function isGenuine(string $id, string $timestamp, string $signatures, string $body, array $secrets): bool
    {
        if (! ctype_digit($timestamp) || strlen($timestamp) > 12) {
            return false;
        }
        if (abs(time() - (int) $timestamp) > self::TOLERANCE_SECONDS) {
            return false;
        }
        foreach ($secrets as $secret) {
            $key = base64_decode(preg_replace('/^whsec_/', '', $secret));
            $expected = 'v1,'.base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
            foreach (array_slice(explode(' ', $signatures), 0, 16) as $given) {
                if (hash_equals($expected, $given)) {
                    return true;
                }
            }
        }

        return false;
    }
}
