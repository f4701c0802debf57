import { randomBytes } from "node:crypto"
import { Duration, Effect } from "effect"
import { Flag } from "effect/cli"
import type { BrokerOptions } from "../../../broker/connection.ts"
import type { AuditSaying, StandingAuditOptions } from "../../../operations/audit/standing-audit.ts"
import { lastingThread, pauseText, siblingScript } from "../../../projection/lasting-thread.ts"
import { durationFlag } from "../../flags/shared.ts"

/** Pause between two looks at what is new, ms. */
const everyMs = 60_000
/** How long a stop waits for the thread, ms. */
const stopWithinMs = 2_000
/**
 * Most that the heap of an audit's thread may take, MiB: several times what a million open
 * deliveries need. Tables of events and deliveries are outside of it, and are dropped as they settle.
 */
export const maxHeapMb = 512

/** What the audit's thread is started with. */
export interface AuditData extends StandingAuditOptions {
  readonly broker: BrokerOptions
}

export interface ToAudit {
  readonly do: "stop"
}

export type FromAudit =
  | { readonly tells: "saying"; readonly saying: AuditSaying }
  | { readonly tells: "stopped" }

/** How far back a console's audit begins. */
export const auditSinceFlag = durationFlag(
  "audit-since",
  "With the role audit, how far back it begins (default: '3 days')"
).pipe(Flag.withDefault(Duration.days(3)), Flag.map(Duration.toMillis))

const logs = { info: Effect.logInfo, warning: Effect.logWarning, error: Effect.logError }

/**
 * Audits what is new in a thread of its own until the scope ends. One that ends of itself, as for
 * want of memory, is started anew after a pause.
 *
 * @param sinceMs how long ago the oldest events were stored that it begins with.
 */
export const startAudit = Effect.fnUntraced(function* (
  broker: BrokerOptions,
  name: string,
  sinceMs: number
) {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const owner = `${name} ${randomBytes(6).toString("hex")}`
  yield* lastingThread<FromAudit>({
    script: siblingScript(import.meta.url, "audit-thread"),
    data: { broker, owner, sinceMs, everyMs } satisfies AuditData,
    maxHeapMb,
    stop: { message: { do: "stop" } satisfies ToAudit, withinMs: stopWithinMs },
    told: (message) => {
      if (message.tells !== "saying") return
      const { details, level, sentence } = message.saying
      run(logs[level](sentence, details))
    },
    ended: (why, pauseMs) => {
      run(
        Effect.logError(
          `the audit does not continue: its thread has ended (${why}); ${pauseText(pauseMs)}`
        )
      )
    }
  })
})
