import type { ErrorVerdict, RuledStatus, Verdict } from "../domain/outcome.ts"
import { type ErrorClass, errorFamilies } from "../domain/outcome.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"

/** The verdict on an answer, by status or class of statuses, unless a policy overrides it. */
const defaultStatuses: Readonly<Record<string, Verdict>> = {
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
export const defaultErrors: Readonly<Record<ErrorClass, ErrorVerdict>> = {
  timeout: "retry",
  "connect-timeout": "retry",
  refused: "retry",
  reset: "retry",
  unreachable: "retry",
  connection: "retry",
  dns: "retry",
  certificate: "retry",
  handshake: "retry",
  address: "retry",
  protocol: "retry",
  redirect: "fail",
  interrupted: "retry"
}

const familyOf: ReadonlyMap<ErrorClass, string> = new Map(
  Object.entries(errorFamilies).flatMap(([family, members]) =>
    members.map((member): [ErrorClass, string] => [member, family])
  )
)

/** What an attempt means for its delivery. */
interface Classification {
  readonly verdict: Verdict
  /** The receiver refuses all further deliveries: the endpoint must be disabled. */
  readonly gone: boolean
  /** Present if the policy has a rule for the answered status. */
  readonly rule?: RuledStatus
}

const overridden = (
  error: ErrorClass,
  errors: RetryPolicy["errors"] = {}
): ErrorVerdict | undefined => errors[error] ?? errors[familyOf.get(error) ?? error]

/**
 * Returns the verdict on an attempt. A 410 that no override changes is `gone`.
 *
 * An error takes precedence over the status, since an incomplete answer is no answer. The exception
 * is a redirect that is not followed, since the redirect itself is the answer: its status counts,
 * unless the policy names the error.
 *
 * @param policy its overrides. An exact status or error takes precedence over a class or family,
 *   and that over the default table.
 */
export const classify = (
  result: {
    readonly status?: number | undefined
    readonly error?: { readonly class: ErrorClass } | undefined
  },
  { errors, statuses }: Pick<RetryPolicy, "errors" | "statuses"> = {}
): Classification => {
  const { error, status } = result
  if (error !== undefined) {
    const chosen = overridden(error.class, errors)
    if (chosen !== undefined) return { verdict: chosen, gone: false }
    if (status === undefined || error.class !== "redirect")
      return { verdict: defaultErrors[error.class], gone: false }
  }
  if (status === undefined) return { verdict: "retry", gone: false }
  const exact = String(status)
  const family = `${exact.charAt(0)}xx`
  const name = statuses?.[exact] === undefined ? family : exact
  const override = statuses?.[name]
  if (typeof override === "object")
    return { verdict: "retry", gone: false, rule: { status: name, alert: override.alert } }
  // RFC 9110, 15: a status outside 100 to 599 is to be treated as a 5xx.
  const verdict = override ?? defaultStatuses[exact] ?? defaultStatuses[family] ?? "retry"
  return { verdict, gone: status === 410 && verdict === "fail" }
}
