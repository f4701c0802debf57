import { Result, Schema } from "effect"
import type { Verdict } from "../domain/outcome.ts"
import type { StatusRule } from "../domain/retry-policy.ts"
import { RetryPolicy, type RetryPolicyJson } from "../domain/retry-policy.ts"
import { nearestName } from "./nearest-name.ts"

/** A named retry policy, modelled on the sender that it is named after. */
export interface Preset {
  readonly name: string
  /** The published guide that the values come from, and the values that are our choice. */
  readonly source: string
  readonly policy: RetryPolicy
}

/** The guides that a preset's `source` names by their numbers. */
export const guides: ReadonlyMap<string, string> = new Map([
  ["1", "Webhook Retry Patterns That Actually Work in Production, Recuro"],
  ["2", "a guide to the retry logic of webhook providers, without a title or an owner"],
  ["3", "Webhook Retries: Backoff & Jitter, SendPromptly"],
  ["4", "Webhook retry strategies: exponential backoff explained, Florian Wartner, Formspring"],
  ["5", "Retries and backoff, a chapter of a book on webhooks without a named owner"]
])

/** Guide 1: of the 4xx, only 408 and 429 are retried. */
const guide1: Record<string, Verdict> = { "404": "fail", "425": "fail" }
/** Guide 2 (in a column) and guide 4 (in its text): no 4xx is retried, not even 429. */
const no4xx: Record<string, Verdict> = { "4xx": "fail" }

/**
 * Few attempts within hours, and an alert: a wrong path and a wrong secret are often repaired, and
 * each try costs the receiver a request.
 */
const withCare: typeof StatusRule.Encoded = { retry: { attempts: 5, window: "6 hours" }, alert: 3 }

/** Guide 1 counts retries, so its numbers are one lower than `maxAttempts`. */
const table: Record<string, RetryPolicyJson & { readonly source: string }> = {
  default: {
    source:
      "guide 5: 16 attempts, 72 h, 1 min doubling, cap 1 h, equal jitter, 404 retried with care; ours: how often, and that 401 and 403 are, too",
    backoff: { kind: "exponential", base: "1 minute", factor: 2, cap: "1 hour" },
    jitter: "equal",
    maxAttempts: 16,
    window: "72 hours",
    statuses: { "401": withCare, "403": withCare, "404": withCare }
  },
  stripe: {
    source: "guide 1: ~15 retries, 72 h, 30 s; guide 2: cap 12 h; ours: base, jitter",
    backoff: { kind: "exponential", base: "30 seconds", factor: 2, cap: "12 hours" },
    jitter: "equal",
    maxAttempts: 16,
    window: "72 hours",
    timeout: "30 seconds",
    statuses: guide1
  },
  "stripe-25": {
    source: "guide 2: ~25 attempts, 3 d, exponential, cap 12 h, no 4xx; ours: base, factor, jitter",
    backoff: { kind: "exponential", base: "40 seconds", factor: 1.4, cap: "12 hours" },
    jitter: "equal",
    maxAttempts: 25,
    window: "3 days",
    statuses: no4xx
  },
  github: {
    source: "guide 1: 3 retries at fixed intervals, ~4 h, 10 s; ours: interval, jitter",
    backoff: { kind: "fixed", delay: "75 minutes" },
    jitter: "equal",
    maxAttempts: 4,
    window: "4 hours",
    timeout: "10 seconds",
    statuses: guide1
  },
  "github-linear": {
    source: "guide 2: 3 attempts, 1 h, linear by 5 min, no 4xx; ours: cap, jitter",
    backoff: { kind: "linear", step: "5 minutes", cap: "1 hour" },
    jitter: "equal",
    maxAttempts: 3,
    window: "1 hour",
    statuses: no4xx
  },
  shopify: {
    source: "guide 1: 19 retries, 48 h, 5 s; guide 2: cap 12 h; ours: base, factor, jitter",
    backoff: { kind: "exponential", base: "40 seconds", factor: 1.5, cap: "12 hours" },
    jitter: "equal",
    maxAttempts: 20,
    window: "48 hours",
    timeout: "5 seconds",
    statuses: guide1
  },
  twilio: {
    source:
      "guide 1: a single retry, ~15 s, 15 s; ours: delay, jitter, a window that is longer than a time-out",
    backoff: { kind: "fixed", delay: "5 seconds" },
    jitter: "equal",
    maxAttempts: 2,
    window: "1 minute",
    timeout: "15 seconds",
    statuses: guide1
  },
  "twilio-24h": {
    source: "guide 2: 3 attempts, 24 h, exponential, no 4xx; ours: base, cap, jitter",
    backoff: { kind: "exponential", base: "7 hours", factor: 2, cap: "24 hours" },
    jitter: "equal",
    maxAttempts: 3,
    window: "24 hours",
    statuses: no4xx
  },
  sendgrid: {
    source: "guide 1: several retries, 72 h, 10 s; ours: attempts, base, cap, jitter",
    backoff: { kind: "exponential", base: "1 minute", factor: 2, cap: "10 hours" },
    jitter: "equal",
    maxAttempts: 16,
    window: "72 hours",
    timeout: "10 seconds",
    statuses: guide1
  },
  slack: {
    source: "guide 1: 3 retries, ~30 min, 5 s; ours: base, cap, jitter",
    backoff: { kind: "exponential", base: "4 minutes", factor: 2, cap: "30 minutes" },
    jitter: "equal",
    maxAttempts: 4,
    window: "30 minutes",
    timeout: "5 seconds",
    statuses: guide1
  },
  "slack-1h": {
    source: "guide 2: 3 attempts, 1 h, exponential, no 4xx; ours: base, cap, jitter",
    backoff: { kind: "exponential", base: "18 minutes", factor: 2, cap: "1 hour" },
    jitter: "equal",
    maxAttempts: 3,
    window: "1 hour",
    statuses: no4xx
  },
  paypal: {
    source:
      "guide 1: several retries, 4 d, 20 s; guide 2: ~8 attempts; ours: base, factor, cap, jitter",
    backoff: { kind: "exponential", base: "20 minutes", factor: 3, cap: "24 hours" },
    jitter: "equal",
    maxAttempts: 8,
    window: "4 days",
    timeout: "20 seconds",
    statuses: guide1
  },
  discord: {
    source: "guide 1: 5 retries, ~30 min, 10 s; ours: base, cap, jitter",
    backoff: { kind: "exponential", base: "50 seconds", factor: 2, cap: "30 minutes" },
    jitter: "equal",
    maxAttempts: 6,
    window: "30 minutes",
    timeout: "10 seconds",
    statuses: guide1
  },
  square: {
    source: "guide 2: 10 attempts, 3 d, no 4xx; ours: base, cap, jitter",
    backoff: { kind: "exponential", base: "10 minutes", factor: 2, cap: "24 hours" },
    jitter: "equal",
    maxAttempts: 10,
    window: "3 days",
    statuses: no4xx
  },
  mailgun: {
    source: "guide 2: 5 attempts, 8 h, linear, no 4xx; ours: step, cap, jitter",
    backoff: { kind: "linear", step: "45 minutes", cap: "8 hours" },
    jitter: "equal",
    maxAttempts: 5,
    window: "8 hours",
    statuses: no4xx
  },
  "doubling-1s": {
    source:
      "guide 2: its own schedule, 1 s doubling, 3 to 10 attempts, 1 to 3 d, no 4xx; ours: the most of both, cap, jitter",
    backoff: { kind: "exponential", base: "1 second", factor: 2, cap: "1 hour" },
    jitter: "equal",
    maxAttempts: 10,
    window: "3 days",
    statuses: no4xx
  },
  recuro: {
    source:
      "guide 1: 8 retries, 30 s doubling, full jitter, 30 s; its ~2 h are the sum; ours: window",
    backoff: { kind: "exponential", base: "30 seconds", factor: 2, cap: "64 minutes" },
    jitter: "full",
    maxAttempts: 9,
    window: "150 minutes",
    timeout: "30 seconds",
    statuses: guide1
  },
  "recuro-list": {
    source: "guide 1: its list of 8 delays (34.7 h), jitter 0.5 to 1; ours: window",
    backoff: {
      kind: "list",
      delays: [
        "10 seconds",
        "30 seconds",
        "2 minutes",
        "10 minutes",
        "30 minutes",
        "2 hours",
        "8 hours",
        "24 hours"
      ]
    },
    jitter: "equal",
    maxAttempts: 9,
    window: "36 hours",
    statuses: guide1
  },
  sendpromptly: {
    source:
      "guide 3: 1 min doubling, cap 15 min, full jitter, all but 2xx retried; ours: attempts, window",
    backoff: { kind: "exponential", base: "1 minute", factor: 2, cap: "15 minutes" },
    jitter: "full",
    maxAttempts: 16,
    window: "72 hours",
    statuses: { "3xx": "retry", "4xx": "retry" }
  },
  formspring: {
    source:
      "guide 4: 8 attempts, its 7 delays (9 h), 24 h, jitter 0.5 to 1.5, only 5xx and network errors, 30 s to connect + 30 s to read (ours: 60 s in all)",
    backoff: {
      kind: "list",
      delays: [
        "30 seconds",
        "90 seconds",
        "270 seconds",
        "810 seconds",
        "2430 seconds",
        "7290 seconds",
        "21600 seconds"
      ]
    },
    jitter: "scaled",
    maxAttempts: 8,
    window: "24 hours",
    timeout: "60 seconds",
    connectTimeout: "30 seconds",
    statuses: no4xx
  }
}

const decode = Schema.decodeSync(RetryPolicy)

/** All presets by name. */
export const presets: ReadonlyMap<string, Preset> = new Map(
  Object.entries(table).map(([name, { source, ...policy }]) => [
    name,
    { name, source, policy: decode(policy) }
  ])
)

export const presetNames: ReadonlyArray<string> = [...presets.keys()]

export const findPreset = (name: string): Preset | undefined => presets.get(name)

/** How much of a preset's name is repeated that there is not, characters. */
const maxShownName = 64

/** An endpoint names a preset that does not exist. */
export class UnknownPreset extends Schema.TaggedError<UnknownPreset>()("UnknownPreset", {
  name: Schema.String
}) {
  override get message() {
    const nearest = nearestName(this.name, presetNames)
    const none = `there is no retry preset ${JSON.stringify(this.name.slice(0, maxShownName))}`
    const meant = nearest === undefined ? ". " : `; did you mean ${JSON.stringify(nearest)}? `
    return `${none}${meant}There are: ${presetNames.join(", ")}`
  }
}

/** Returns the policy for an endpoint's `retry`. */
export const resolveRetry = (
  retry: string | RetryPolicy
): Result.Result<RetryPolicy, UnknownPreset> => {
  if (typeof retry !== "string") return Result.succeed(retry)
  const preset = findPreset(retry)
  return preset === undefined
    ? Result.fail(new UnknownPreset({ name: retry }))
    : Result.succeed(preset.policy)
}
