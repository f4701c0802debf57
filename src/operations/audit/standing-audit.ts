import { Clock, Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { WorkLease } from "../../cluster/work-lease.ts"
import { keepLease, leaseMs, takeLease } from "../../cluster/work-lease.ts"
import { present } from "../../domain/record.ts"
import type { Judgement } from "../../history/audit/judgement.ts"
import type { Raised } from "../../history/audit/watch.ts"
import { watch } from "../../history/audit/watch.ts"
import { noteAudit } from "./run-audit.ts"

/** Key of the lease in the bucket of jobs: of all consoles, one audits. */
const leaseKey = "lease.audit"
/** Pause before it is looked again whether another console audits, or the audit begins anew. */
const lookEvery = "5 seconds"

export interface StandingAuditOptions {
  /** The console, and what tells it from others. */
  readonly owner: string
  /** How long ago the oldest events were stored that it begins with, ms. */
  readonly sinceMs: number
  /** Pause between two looks at what is new, ms. */
  readonly everyMs: number
}

/** What a standing audit says. */
export interface AuditSaying {
  readonly level: "info" | "warning" | "error"
  readonly sentence: string
  readonly details: Readonly<Record<string, string | number>>
}

/**
 * Takes the lease again once a lost one has expired; returns undefined where another console has it.
 */
const takeAgain = (owner: string): Effect.Effect<WorkLease | undefined, never, Broker> =>
  Effect.sleep(leaseMs).pipe(
    Effect.andThen(takeLease(leaseKey, owner)),
    Effect.catch(() => Effect.suspend(() => takeAgain(owner)))
  )

/**
 * Audits what is new, again and again, without end, unless another console does. What is missing
 * becomes a fact, and so an alert. The verdict of each look is noted for the metrics.
 */
export const standingAudit = (
  { everyMs, owner, sinceMs }: StandingAuditOptions,
  say: (saying: AuditSaying) => void
) => {
  let isFailing = false
  const failed = (why: string) =>
    Effect.sync(() => {
      const sentence = "could not audit; trying again"
      if (!isFailing) say({ level: "warning", sentence, details: { why } })
      isFailing = true
    })
  const raised = ({ endpoint, event, reason, tenant }: Raised) =>
    Effect.sync(() => {
      const sentence = "the audit has found something missing"
      say({ level: "error", sentence, details: { event, tenant, endpoint, reason } })
    })
  let last: Judgement["verdict"] | undefined
  const tell = (verdict: Judgement["verdict"], problems: number, lost: string | undefined) =>
    Effect.sync(() => {
      isFailing = false
      if (verdict === last) return
      last = verdict
      const level = problems === 0 ? "info" : "warning"
      const sentence =
        problems === 0
          ? "the audit continues: nothing is missing so far"
          : lost === undefined
            ? "the audit has found problems: `petrel audit` names them"
            : "the audit has found problems, among them what `petrel audit` cannot see, as the broker lost it before"
      say({ level, sentence, details: { verdict, problems, ...present({ lost }) } })
    })
  const audits = Effect.gen(function* () {
    const since = (yield* Clock.currentTimeMillis) - sinceMs
    return yield* watch({ since }, everyMs, {
      raised,
      failed,
      looked: ({ lost, problems, verdict }) =>
        Effect.andThen(noteAudit(verdict, problems), tell(verdict, problems, lost))
    })
  })
  const once = Effect.gen(function* () {
    let lease = yield* takeLease(leaseKey, owner)
    if (lease === undefined) return
    // After an outage of the broker nobody has taken it, and what was read need not be read again.
    const untilTaken = Effect.gen(function* () {
      while (lease !== undefined) {
        yield* keepLease(lease, Effect.undefined)
        lease = yield* takeAgain(owner)
      }
    })
    yield* Effect.raceFirst(audits, untilTaken).pipe(
      Effect.ensuring(Effect.suspend(() => lease?.giveBack ?? Effect.void))
    )
  })
  return once.pipe(
    Effect.catch(({ message }) => failed(message)),
    Effect.andThen(Effect.sleep(lookEvery)),
    Effect.forever
  )
}
