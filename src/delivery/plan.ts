import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/connection.ts"
import type { Event } from "../domain/event.ts"
import type { Plan } from "../domain/fact.ts"
import { Fact } from "../domain/fact.ts"
import { nobody } from "../domain/token.ts"
import type { LiveEndpoint } from "./directory.ts"

/**
 * Endpoints in one part of a plan: with names of full length, a part stays under 256 KiB.
 */
export const partSize = 1_000

/** A part of a plan as the history holds it: what it says, and its sequence there. */
export interface StoredPart {
  readonly plan: Plan
  readonly seq: number
}

/**
 * The next part of an event's plan: endpoints whose ids come after `after`, in their order.
 *
 * @param matching all that want the event, sorted by id.
 */
export const nextPart = (
  event: Event,
  matching: ReadonlyArray<LiveEndpoint>,
  part: number,
  after: string
): Plan => {
  const rest = matching.filter(({ config }) => config.id > after)
  const now = rest.slice(0, partSize)
  return {
    part,
    last: now.length === rest.length,
    endpoints: now
      .filter(({ config }) => config.disabled === undefined)
      .map(({ config, revision, window }) => ({
        id: config.id,
        generation: config.generation,
        revision,
        deadline: event.at + window
      })),
    skipped: now
      .filter(({ config }) => config.disabled !== undefined)
      .map(({ config }) => ({ id: config.id, reason: "endpoint-disabled" }))
  }
}

/** Where the part after this one begins. */
export const endOf = (plan: Plan): string =>
  [...plan.endpoints, ...plan.skipped].reduce((last, { id }) => (id > last ? id : last), "")

/** The `routed` fact that stores a part. */
export const routedFact = (event: Event, plan: Plan, at: number, worker: string): Fact => ({
  v: 1,
  kind: "routed",
  at,
  tenant: event.tenant,
  endpoint: nobody,
  event: event.id,
  eventSeq: event.seq,
  type: event.type,
  plan,
  worker,
  ...(event.content.traceparent === undefined ? {} : { trace: event.content.traceparent })
})

export const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/** The part that the history holds at a sequence, from its leader. */
export const readPart = Effect.fnUntraced(function* (seq: number) {
  const { ask, jsm, names } = yield* Broker
  const message = yield* ask("read a plan", () => jsm.streams.getMessage(names.history, { seq }))
  const fact = message === null ? Option.none() : decodeFact(message.string())
  return Option.flatMap(fact, ({ plan }) =>
    plan === undefined ? Option.none() : Option.some<StoredPart>({ plan, seq })
  )
})
