import { Effect, Option, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import type { PublishError } from "../broker/publication.ts"
import { publishOnce } from "../broker/publish-once.ts"
import type { DeadLetterAttempts } from "../domain/alert.ts"
import { endpointKey, isOperational } from "../domain/endpoint.ts"
import type { Fact } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"
import { present } from "../domain/record.ts"
import { nobody } from "../domain/token.ts"
import { alertType } from "../domain/type-filter.ts"
import { Directory } from "../endpoints/directory.ts"
import { Facts } from "../history/facts.ts"
import { parseFact, readNewestFacts } from "../history/read.ts"
import type { AlertSubject } from "./alert-store.ts"

/**
 * Records facts of alerts: appends each to the history once, and publishes its event.
 *
 * @param dedupe the history's dedupe window, ms.
 * @param systemAlertsTo returns the tenant whose endpoints get the alerts about the system.
 */
export const makeAlertFacts = Effect.fnUntraced(function* (
  dedupe: number,
  systemAlertsTo: () => string | undefined
) {
  const { names, publish, readMessage } = yield* Broker
  const context = yield* Effect.context<Broker>()
  const facts = yield* Facts
  const directory = yield* Directory

  /** Whether the history has the fact. Only the judge appends to its subject. */
  const isRecorded = (fact: Fact) =>
    readMessage("look for an alert", names.history, {
      last_by_subj: names.subjects.fact(
        fact.tenant,
        fact.endpoint,
        factResult(fact.kind),
        fact.kind
      )
    }).pipe(
      Effect.map((message) => {
        const found = message === null ? undefined : parseFact(message.string(), message.seq)
        return found?._tag === "Some" && factId(found.value.fact) === factId(fact)
      }),
      Effect.provideContext(context)
    )

  /**
   * Publishes an event of the alert if an endpoint of the tenant wants it. A crash may repeat the
   * event, with the same id. An alert about an endpoint that receives such events publishes none:
   * an alert that cannot be delivered would raise the next.
   */
  const publishEvent = (fact: Fact): Effect.Effect<unknown, PublishError> => {
    const { alert, endpoint } = fact
    const tenant = fact.tenant === nobody ? systemAlertsTo() : fact.tenant
    if (alert === undefined || tenant === undefined) return Effect.void
    const type = alertType(alert.name)
    if (directory.match(tenant, type).length === 0) return Effect.void
    const about = directory.find(endpointKey(tenant, endpoint))
    if (about !== undefined && isOperational(about.config)) return Effect.void
    return publish(
      names.subjects.alertEvent(tenant, type),
      JSON.stringify(alertEventBody(fact, type)),
      [
        ["Nats-Msg-Id", `${tenant}.${factId(fact)}`],
        ["content-type", "application/json"]
      ]
    )
  }

  return {
    /**
     * Appends the fact, then publishes its event.
     *
     * @param tried whether the fact may have been appended before.
     */
    record: (fact: Fact, tried: boolean) =>
      publishOnce(facts.appendWithin(dedupe / 2, fact, factId(fact)), isRecorded(fact), {
        tried
      }).pipe(Effect.andThen(publishEvent(fact)))
  }
})

/**
 * Message id of an alert's fact: equal for each try, so the history stores it once, and another for
 * each change of an alert.
 */
const factId = ({ alert, at, kind }: Fact): string => `${alert?.id}.${stateOf(kind)}.${at}`

const stateOf = (kind: Fact["kind"]) => (kind === "alert-raised" ? "raised" : "cleared")

/** Returns the body of the event of an alert that was raised or cleared. */
export const alertEventBody = (
  { alert, at, endpoint, kind, reason, tenant }: Fact,
  type: string
) => ({
  type,
  timestamp: new Date(at).toISOString(),
  data: {
    state: stateOf(kind),
    ...(tenant === nobody ? {} : { tenant }),
    ...(endpoint === nobody ? {} : { endpoint }),
    ...alert,
    ...(reason === undefined ? {} : { reason })
  }
})

/** Attempts that an alert carries: those of the default policy. */
const maxAttempts = 16
/** For an endpoint with very many failed attempts the alert does not wait, ms. */
const maxReadingMs = 3_000

/**
 * Returns an endpoint's last dead letter with its last attempts, as an alert carries them; undefined
 * where there is none. Without attempts where reading them takes too long.
 */
export const lastDeadLetter = Effect.fnUntraced(function* ({
  endpoint,
  tenant
}: AlertSubject): Effect.fn.Return<DeadLetterAttempts | undefined, BrokerError, Broker> {
  const { names, readMessage } = yield* Broker
  const last_by_subj = names.subjects.fact(tenant, endpoint, "failure", "dead-lettered")
  const message = yield* readMessage("look at the last dead letter", names.history, {
    last_by_subj
  })
  const dead =
    message === null ? undefined : Option.getOrUndefined(parseFact(message.string(), message.seq))
  if (dead?.fact.eventSeq === undefined || dead.fact.eventAt === undefined) return undefined
  const { fact } = dead
  const attempts = yield* readNewestFacts(
    {
      endpoint: { tenant, id: endpoint },
      event: `evt_${fact.eventSeq}`,
      kinds: ["attempt-failed"],
      since: fact.eventAt
    },
    Math.min(maxAttempts, fact.attempt ?? maxAttempts)
  ).pipe(
    Stream.filter((it) => it.fact.eventAt === fact.eventAt && it.fact.round === fact.round),
    Stream.map((it) => attemptOf(it.fact)),
    Stream.runCollect,
    Effect.timeoutOption(maxReadingMs),
    Effect.map(Option.getOrElse(() => []))
  )
  return {
    delivery: fact.delivery ?? "",
    ...(fact.type === undefined ? {} : { type: fact.type }),
    ...(fact.reason === undefined ? {} : { reason: fact.reason }),
    attempts: [...attempts]
  }
})

const attemptOf = ({ at, attempt = 0, durationMs, error, status }: Fact) => ({
  attempt,
  at,
  ...present({ durationMs, status }),
  ...(error === undefined ? {} : { error: error.class })
})
