import type { Clock } from "effect"
import { Cause, Effect, Schedule } from "effect"
import { Failpoint } from "../broker/failpoint.ts"
import type { AlertName } from "../domain/alert.ts"
import type { Fact } from "../domain/fact.ts"
import { nobody } from "../domain/token.ts"
import type { ChangeMaker, SubjectReadings } from "./alert-change.ts"
import { changeFor, renewalFor } from "./alert-change.ts"
import type { AlertEntry } from "./alert-entries.ts"
import { makeAlertEntries } from "./alert-entries.ts"
import { makeAlertFacts } from "./alert-facts.ts"
import type { AlertRecord, AlertSubject } from "./alert-store.ts"
import type { Thresholds } from "./thresholds.ts"

/** Looks between two refreshes from the bucket. */
const refreshEvery = 12

interface RegisterOptions extends ChangeMaker {
  /** Keys of the bucket as a subject filter, and a predicate on the subjects among them. */
  readonly keys: string
  readonly isMine: (subject: AlertSubject) => boolean
  /** True while this worker is the one to judge. */
  readonly holds: () => boolean
  /** The history's dedupe window, ms. */
  readonly dedupe: number
  readonly thresholds: Pick<Thresholds, "systemAlertsTo">
}

/** What the judges of endpoints and of the system need alike. */
export interface JudgeOptions extends Omit<RegisterOptions, "isMine" | "keys"> {
  readonly partitions: number
  readonly clock: Clock.Clock
  /** Interval of looks, ms. */
  readonly every: number
  readonly thresholds: Thresholds
}

/**
 * Raises and clears alerts, each once, even if the judge changes. A change is written to the bucket
 * by compare-and-set, together with its fact, before the fact is appended. The next judge appends
 * the fact if the former one has not.
 */
export const makeAlertRegister = Effect.fnUntraced(function* (options: RegisterOptions) {
  const facts = yield* makeAlertFacts(options.dedupe, options.thresholds.systemAlertsTo)
  const reached = yield* Failpoint
  const entries = yield* makeAlertEntries(options.keys, options.isMine)
  let looks = 0

  /** @param tried whether the fact may have been appended before. */
  const record = Effect.fnUntraced(function* (entry: AlertEntry, tried: boolean) {
    const { unrecorded, ...rest } = entry.record
    if (unrecorded === undefined) return
    const recorded = yield* Effect.result(facts.record(unrecorded, tried))
    if (recorded._tag === "Failure") {
      yield* Effect.logDebug("an alert could not be recorded yet", {
        why: recorded.failure.message
      })
      return
    }
    reached("alert-stored")
    yield* logChange(unrecorded)
    yield* entries.write(entry, rest)
  })

  /** Applies the change that readings ask for, to the other's record if a write conflicts. */
  const judge = Effect.fnUntraced(function* (subject: AlertSubject, found: SubjectReadings) {
    const entry = entries.of(subject)
    for (let tries = 0; tries < 2 && options.holds(); tries++) {
      const changed = changeFor(entry, found, options)
      if (changed === undefined) return yield* renew(subject, found)
      if (!(yield* entries.write(entry, changed))) continue
      reached("alert-decided")
      return yield* record(entry, false)
    }
  })

  /** Stores the present value of an alert that stays raised. */
  const renew = Effect.fnUntraced(function* (
    subject: AlertSubject,
    found: Pick<SubjectReadings, "at" | "readings">
  ) {
    const entry = entries.of(subject)
    const renewal = options.holds() ? renewalFor(entry, found) : undefined
    if (renewal === undefined) return
    entry.renewedAt = found.at
    yield* entries.write(entry, renewal)
  })

  return {
    renew,
    /** Loads the alerts that are raised already. */
    load: entries.load,
    judge,
    /**
     * Called at the beginning of each look. Appends the facts of changes that this judge or a
     * former one has stored and not yet recorded in the history.
     */
    resume: Effect.gen(function* () {
      if (looks++ % refreshEvery === refreshEvery - 1) yield* entries.refresh
      for (const entry of entries.all()) {
        if (!options.holds()) return
        if (entry.uncertain) yield* Effect.ignore(entries.readAgain(entry))
        if (entry.record.unrecorded !== undefined) yield* record(entry, true)
      }
    }),
    /** The subjects with a raised alert, or with a change that is not in the history yet. */
    entries: (): ReadonlyArray<AlertEntry> => entries.all(),
    raised: (subject: AlertSubject): AlertRecord => entries.of(subject).record
  }
})

export type AlertRegister = Effect.Success<ReturnType<typeof makeAlertRegister>>

const logChange = ({ alert, endpoint, kind, reason, tenant }: Fact) =>
  Effect.logInfo(kind, {
    alert: alert?.name,
    ...(tenant === nobody ? {} : { tenant }),
    ...(endpoint === nobody ? {} : { endpoint }),
    ...(alert?.value === undefined ? {} : { value: alert.value, unit: alert.unit }),
    ...(reason === undefined ? {} : { reason })
  })

/** Whether the alert of this name is raised. */
export const isRaised = ({ raised }: AlertRecord, name: AlertName): boolean =>
  raised.some((alert) => alert.name === name)

/** Pause between tries to load the raised alerts, ms. */
const retryPauseMs = 1_000

/**
 * Looks at an interval (ms) once `load` has succeeded, for as long as the scope lives. Logs a look
 * that fails, and continues with the next.
 */
export const lookAgainAndAgain = <E1, E2, R1, R2>(
  load: Effect.Effect<void, E1, R1>,
  look: Effect.Effect<void, E2, R2>,
  every: number
) => {
  const guarded = look.pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) => Effect.logWarning("alerts could not be judged; trying again", cause)
    )
  )
  return load.pipe(
    Effect.retry(Schedule.spaced(retryPauseMs)),
    Effect.andThen(Effect.forever(Effect.andThen(guarded, Effect.sleep(every)))),
    Effect.forkScoped
  )
}
