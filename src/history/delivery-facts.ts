import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { seeRest } from "../broker/scan.ts"
import type { Progress } from "../domain/delivery.ts"
import { Fact } from "../domain/fact.ts"
import { DeadReason } from "../domain/outcome.ts"
import type { StoredFact } from "./read.ts"
import { concerning, parseFact } from "./read.ts"

/** Parses a fact; none if the text is not a fact. */
export const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/**
 * Returns the fields of a stored fact, unchecked; none if the text is not JSON. For scans of many
 * facts of which most are passed over: decoding one costs ten times as much.
 */
export const rawFields = (text: string): { readonly [field: string]: unknown } => {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

const eventSeqPattern = /"eventSeq":(\d+)/

/**
 * Returns the sequence of the event that a fact is about, by its text. A quoted text inside the
 * fact would have its quotes escaped.
 */
export const eventSeqIn = (text: string): number =>
  Number(eventSeqPattern.exec(text)?.[1] ?? Number.NaN)

/** Reads the text at a sequence of HISTORY from the stream's leader; undefined if there is none. */
export const readFactText = Effect.fnUntraced(function* (seq: number) {
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage("read a fact", names.history, { seq })
  return message === null ? undefined : message.string()
})

/** Reads the fact at a sequence of HISTORY from the stream's leader; none if there is none. */
export const readFact = (seq: number) =>
  Effect.map(readFactText(seq), (text) => (text === undefined ? Option.none() : decodeFact(text)))

/**
 * Reads all facts about an event and an endpoint, including the plan, in the order of the history.
 * The history has no index by event, so this scans all facts of the tenant. One pass with one
 * filter, and parsing only texts that name the event, keep it affordable.
 *
 * @param event its id, or `evt_` + its sequence, which works for every event.
 * @param after excludes facts up to this sequence of the history.
 */
export const readDeliveryFacts = Effect.fnUntraced(function* (
  tenant: string,
  endpoint: string,
  event: string,
  after = 0
) {
  const { names } = yield* Broker
  const { isAbout, mayBeAbout } = concerning(event)
  const found: Array<StoredFact> = []
  const rest = {
    stream: names.history,
    subject: names.subjects.fact(tenant, "*", "*", "*"),
    fromSeq: after + 1
  }
  yield* seeRest(rest, (message) => {
    const text = message.string()
    if (!mayBeAbout(text)) return false
    const stored = Option.getOrUndefined(parseFact(text, message.seq))
    if (stored === undefined || !isAbout(stored.fact)) return false
    if (stored.fact.endpoint === endpoint || stored.fact.plan !== undefined) found.push(stored)
    return false
  })
  return found
})

const isDeadReason = Schema.is(DeadReason)

/**
 * Returns the progress that the fact of a failed attempt records. A drawn delay is no part of a
 * fact: decorrelated backoff then goes on from its base, which keeps its bounds. Nor is a row of
 * answers with one status: it then begins with the next answer.
 */
export const progressAfter = (fact: Fact): Progress => {
  const { at, attempt = 1, error, nextAttemptAt, reason, status } = fact
  return {
    attempts: attempt,
    ...(attempt === 1 ? { firstAttemptAt: at } : {}),
    lastAttemptAt: at,
    ...(nextAttemptAt === undefined ? {} : { nextAttemptAt }),
    ...(status === undefined ? {} : { lastStatus: status }),
    ...(error === undefined ? {} : { lastErrorClass: error.class, lastError: error.message }),
    ...(isDeadReason(reason) ? { ends: reason } : {})
  }
}

/**
 * Returns the progress that a fact records of a failed direct delivery; undefined for other facts.
 *
 * @param events the stream of events.
 */
export const progressFrom = (fact: Fact, events: string): Progress | undefined => {
  if (fact.kind !== "attempt-failed" || fact.from?.stream !== events) return undefined
  const { at, attempt = 1, probe } = fact
  return {
    ...progressAfter(fact),
    ...(probe === true ? { probes: attempt } : {}),
    firstAttemptAt: at
  }
}
