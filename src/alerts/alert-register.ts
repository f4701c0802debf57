import { Effect } from "effect"
import { Broker } from "../broker/connection.ts"
import { Failpoint } from "../broker/failpoint.ts"
import { publishOnce } from "../broker/publish-once.ts"
import type { PublishError } from "../broker/publisher.ts"
import type { Alert, AlertName } from "../domain/alert.ts"
import { endpointKey, isOperational } from "../domain/endpoint.ts"
import type { Fact } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"
import { nobody } from "../domain/token.ts"
import { alertType } from "../domain/type-filter.ts"
import { Directory } from "../endpoints/directory.ts"
import { Facts } from "../history/facts.ts"
import { parseFact } from "../history/read.ts"
import type { Reading } from "../policy/alerts.ts"
import { transitionOf } from "../policy/alerts.ts"
import type { AlertEntry } from "./alert-entries.ts"
import { makeAlertEntries } from "./alert-entries.ts"
import type { AlertRecord, AlertSubject } from "./alert-store.ts"
import { aboutOf } from "./alert-store.ts"

/** Looks from one taking in of what others have written to the next. */
const refreshEvery = 12

export interface RegisterOptions {
  readonly worker: string
  /** Of which subjects, as keys of the bucket, and which among them. */
  readonly keys: string
  readonly isMine: (subject: AlertSubject) => boolean
  /** A new id for each alert. */
  readonly nextId: () => string
  /** True while this worker is the one to judge. */
  readonly holds: () => boolean
  /** The history's dedupe window, ms. */
  readonly dedupe: number
}

/** What a reading is about, and what else its alert tells. */
export interface Found {
  readonly reading: Reading
  readonly at: number
  /** Whether somebody has watched for a whole window. */
  readonly watched: boolean
  readonly window: number
  /** Of the endpoint that is meant. */
  readonly generation?: string
  /** Why it is cleared, where the reading does not say it. */
  readonly reason?: string
  readonly more: Pick<Alert, "contact" | "failuresInRow" | "lastError" | "lastStatus">
}

/**
 * Raises and clears alerts, each once, even if the judge changes. A change is written to the bucket
 * by compare-and-set, together with its fact, before the fact is appended. The next judge appends
 * the fact if the former one has not.
 */
export const makeAlertRegister = Effect.fnUntraced(function* (options: RegisterOptions) {
  const { ask, jsm, names, publisher } = yield* Broker
  const context = yield* Effect.context<Broker>()
  const facts = yield* Facts
  const directory = yield* Directory
  const reached = yield* Failpoint
  const entries = yield* makeAlertEntries(options.keys, options.isMine)
  let looks = 0

  /** Whether the history has the latest fact of an entry. Only the judge appends to its subject. */
  const isTold = ({ alert, endpoint, kind, tenant }: Fact) =>
    ask("look for an alert", () =>
      jsm.streams.getMessage(names.history, {
        last_by_subj: names.subjects.fact(tenant, endpoint, factResult(kind), kind)
      })
    ).pipe(
      Effect.map((message) => {
        const found = message === null ? undefined : parseFact(message.string(), message.seq)
        return found?._tag === "Some" && found.value.fact.alert?.id === alert?.id
      })
    )

  /**
   * Publishes an event of the alert if an endpoint of the tenant wants it. A crash may repeat the
   * event, with the same id. An alert about an endpoint that receives such events publishes none:
   * an alert that cannot be delivered would raise the next.
   */
  const publish = (fact: Fact): Effect.Effect<unknown, PublishError> => {
    const { alert, at, endpoint, kind, tenant } = fact
    if (alert === undefined || tenant === nobody) return Effect.void
    const type = alertType(alert.name)
    if (directory.match(tenant, type).length === 0) return Effect.void
    const about = directory.find(endpointKey(tenant, endpoint))
    if (about !== undefined && isOperational(about.config)) return Effect.void
    const state = kind === "alert-raised" ? "raised" : "cleared"
    const { reason } = fact
    const body = {
      type,
      timestamp: new Date(at).toISOString(),
      data: {
        state,
        tenant,
        ...(endpoint === nobody ? {} : { endpoint }),
        ...alert,
        ...(reason === undefined ? {} : { reason })
      }
    }
    return publisher.publish(names.subjects.alertEvent(tenant, type), JSON.stringify(body), [
      ["Nats-Msg-Id", `${tenant}.${factId(fact)}`],
      ["content-type", "application/json"]
    ])
  }

  /** @param tried whether the fact may have been appended before. */
  const tell = Effect.fnUntraced(function* (entry: AlertEntry, tried: boolean) {
    const { untold, ...rest } = entry.record
    if (untold === undefined) return
    const append = facts.appendWithin(options.dedupe / 2, untold, factId(untold))
    const find = Effect.provideContext(isTold(untold), context)
    const told = yield* Effect.result(
      Effect.andThen(publishOnce(append, find, { tried: tried }), publish(untold))
    )
    if (told._tag === "Failure") {
      yield* Effect.logDebug("an alert could not be told yet", { why: told.failure.message })
      return
    }
    reached("alert-stored")
    const { alert, endpoint, kind, reason, tenant } = untold
    yield* Effect.logInfo(kind, {
      alert: alert?.name,
      ...(tenant === nobody ? {} : { tenant }),
      ...(endpoint === nobody ? {} : { endpoint }),
      ...(alert?.value === undefined ? {} : { value: alert.value, unit: alert.unit }),
      ...(reason === undefined ? {} : { reason })
    })
    yield* entries.write(entry, rest)
  })

  const raise = (entry: AlertEntry, found: Found) => {
    const { at, generation, more, reading, window } = found
    const alert: Alert = {
      id: `alert_${options.nextId()}`,
      name: reading.name,
      about: aboutOf(entry),
      level: reading.level,
      ...measured(reading),
      windowMs: window,
      raisedAt: at,
      ...more
    }
    return {
      kind: "alert-raised",
      alert,
      record: {
        ...entry.record,
        ...(generation === undefined ? {} : { generation }),
        raised: [...entry.record.raised, alert]
      }
    } as const
  }

  const clear = (entry: AlertEntry, before: Alert, { more, reading }: Found) => {
    const { value: _, ...kept } = before
    return {
      kind: "alert-cleared",
      alert: { ...kept, ...measured(reading), ...more },
      record: {
        ...entry.record,
        raised: entry.record.raised.filter(({ name }) => name !== reading.name)
      }
    } as const
  }

  /** What a reading asks for, if anything. */
  const changeFor = (entry: AlertEntry, found: Found) => {
    const { at, reading, watched } = found
    const before = entry.record.raised.find(({ name }) => name === reading.name)
    const transition = transitionOf(before !== undefined, reading, watched)
    if (transition === undefined || entry.uncertain || entry.record.untold !== undefined)
      return undefined
    const { alert, kind, record } =
      before === undefined ? raise(entry, found) : clear(entry, before, found)
    const reason = kind === "alert-cleared" ? (found.reason ?? reasonOf(reading)) : undefined
    const { endpoint, tenant } = entry
    const untold: Fact = {
      v: 1,
      kind,
      at,
      tenant,
      endpoint,
      alert,
      worker: options.worker,
      reason
    }
    return { ...record, untold } satisfies AlertRecord
  }

  /** Applies the change that a reading asks for, to the other's record if a write conflicts. */
  const judge = Effect.fnUntraced(function* (subject: AlertSubject, found: Found) {
    const entry = entries.of(subject)
    for (let tries = 0; tries < 2 && options.holds(); tries++) {
      const record = changeFor(entry, found)
      if (record === undefined) return
      if (!(yield* entries.write(entry, record))) continue
      reached("alert-decided")
      return yield* tell(entry, false)
    }
  })

  return {
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
        if (entry.record.untold !== undefined) yield* tell(entry, true)
      }
    }),
    /** What something is raised about. */
    entries: (): ReadonlyArray<AlertEntry> => entries.all(),
    raised: (subject: AlertSubject): AlertRecord => entries.of(subject).record
  }
})

export type AlertRegister = Effect.Success<ReturnType<typeof makeAlertRegister>>

/** Message id of an alert's fact: equal for each try, so the history stores it once. */
const factId = ({ alert, kind }: Fact): string =>
  `${alert?.id}.${kind === "alert-raised" ? "raised" : "cleared"}`

const measured = ({
  threshold,
  unit,
  value
}: Reading): Pick<Alert, "threshold" | "unit" | "value"> => ({
  threshold,
  unit,
  ...(value === undefined ? {} : { value: Math.round(value * 100) / 100 })
})

const reasonOf = ({ state }: Reading): string => {
  if (state === "off") return "nobody wants to know any more"
  return state === "good" ? "it is well again" : "nothing of that kind for a whole window"
}

/** Only those raised that have this name. */
export const isRaised = ({ raised }: AlertRecord, name: AlertName): boolean =>
  raised.some((alert) => alert.name === name)
