import { Effect, Option, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import type { DeadLetterAttempts } from "../domain/alert.ts"
import type { Fact } from "../domain/fact.ts"
import { present } from "../domain/present.ts"
import { parseFact, readNewestFacts } from "../history/read.ts"
import type { AlertSubject } from "./alert-store.ts"

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
