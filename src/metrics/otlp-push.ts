import { Effect } from "effect"
import { timers } from "../time/timers.ts"
import type { Family, Labels } from "./family.ts"
import { otlpMetrics } from "./otlp-json.ts"
import type { OtlpTarget } from "./otlp-post.ts"
import { makeOtlpPost } from "./otlp-post.ts"

export interface OtlpOptions extends OtlpTarget {
  readonly families: () => ReadonlyArray<Family>
  readonly resource: Labels
  readonly version: string
  /** When the counters began, ms since the epoch. */
  readonly startedAt: number
  /** Pause between two exports, ms. (Default: 15 s) */
  readonly every?: number | undefined
  /** How long an export may take, ms. (Default: 10 s) */
  readonly timeoutMs?: number | undefined
}

const defaultEveryMs = 15_000
const defaultTimeoutMs = 10_000
/** How long a stop waits for the last export, ms. */
const lastExportMs = 2_000

/**
 * Pushes metrics to an OTLP/HTTP endpoint at an interval, until the scope closes, and once more
 * then. The sums are cumulative: what could not be sent is in the next export, so nothing is kept
 * meanwhile. Logs once when exports begin to fail, and once when they work again.
 */
export const pushOtlp = Effect.fnUntraced(function* (options: OtlpOptions) {
  const { families, resource, startedAt, version } = options
  const { every = defaultEveryMs, timeoutMs = defaultTimeoutMs } = options
  const post = makeOtlpPost({ ...options, what: "metrics", meanwhile: "delivering goes on" })
  const body = () => otlpMetrics(families(), { resource, version, startedAt, at: timers.wallMs() })
  yield* Effect.addFinalizer(() => post(body, lastExportMs))
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.sleep(every), post(body, timeoutMs)))
  )
})
