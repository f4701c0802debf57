import type { ErrorClass } from "../domain/outcome.ts"
import type { Verdict } from "../domain/retry-policy.ts"

/** The verdict on an answer, by status or class of statuses, unless a policy overrides it. */
export const defaultStatuses: Readonly<Record<string, Verdict>> = {
  "1xx": "retry",
  "2xx": "delivered",
  "3xx": "fail",
  "404": "retry",
  "408": "retry",
  "410": "fail",
  "425": "retry",
  "429": "retry",
  "4xx": "fail",
  "5xx": "retry"
}

/** The verdict on an attempt without a usable answer. */
export const defaultErrors: Readonly<Record<ErrorClass, Verdict>> = {
  timeout: "retry",
  "connect-timeout": "retry",
  connection: "retry",
  dns: "retry",
  tls: "retry",
  address: "retry",
  protocol: "retry",
  redirect: "fail"
}

const ofStatus = (status: number, statuses: Readonly<Record<string, Verdict>>): Verdict => {
  const exact = String(status)
  const family = `${exact.charAt(0)}xx`
  return (
    statuses[exact] ??
    statuses[family] ??
    defaultStatuses[exact] ??
    defaultStatuses[family] ??
    // RFC 9110, 15: a status outside 100 to 599 is to be treated as a 5xx.
    "retry"
  )
}

/**
 * Returns the verdict on an attempt. `gone` means that the receiver refuses all further deliveries
 * (a 410 that no override changes): the endpoint must be disabled.
 *
 * An error takes precedence over the status, since an incomplete answer is no answer. The exception
 * is a redirect that is not followed, since the redirect itself is the answer.
 *
 * @param statuses the policy's overrides. An exact status takes precedence over a class, and a
 *   class over the default table.
 */
export const classify = (
  result: {
    readonly status?: number | undefined
    readonly error?: { readonly class: ErrorClass } | undefined
  },
  statuses: Readonly<Record<string, Verdict>> = {}
): { readonly verdict: Verdict; readonly gone: boolean } => {
  const { error, status } = result
  if (status === undefined || (error !== undefined && error.class !== "redirect"))
    return { verdict: error === undefined ? "retry" : defaultErrors[error.class], gone: false }
  const verdict = ofStatus(status, statuses)
  return { verdict, gone: status === 410 && verdict === "fail" }
}
