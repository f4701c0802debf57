import { Effect, Option } from "effect"
import type { Event } from "../domain/event.ts"
import type { Fact, Plan, Planned } from "../domain/fact.ts"
import { correlationOf } from "../domain/header-names.ts"
import { nobody } from "../domain/token.ts"
import type { RoutableEndpoint } from "../endpoints/directory.ts"
import { windowFor } from "../endpoints/live-endpoint.ts"
import { readFact } from "../history/delivery-facts.ts"

/** Maximum endpoints in one part of a plan. */
const maxEndpointsPerPart = 1_000
/** Upper bound of the size of one endpoint in a part, with an id of maximum length, bytes. */
const endpointBytes = 256
/** Upper bound of the size of the rest of the fact and its headers, bytes. */
const factBytes = 4 * 1024

/**
 * Returns how many endpoints one part of a plan may have, so that the broker accepts its fact.
 *
 * @param largest maximum size of a message that the broker accepts, bytes.
 */
export const partSize = (largest: number): number =>
  Math.max(1, Math.min(maxEndpointsPerPart, Math.floor((largest - factBytes) / endpointBytes)))

/** A part of a plan as the history holds it, and its sequence there. */
export interface StoredPart {
  readonly plan: Plan
  readonly seq: number
}

/** All endpoints that an event may go to. */
export interface EndpointChoice {
  /** Sorted by id. */
  readonly all: ReadonlyArray<Candidate>
  /** Revision of the endpoints bucket from which they were taken. */
  readonly directory: number
}

/**
 * An endpoint that an event may go to; without `endpoint` where its configuration is unreadable.
 */
interface Candidate {
  readonly id: string
  readonly endpoint?: RoutableEndpoint
}

/**
 * Returns all endpoints that an event may go to, sorted by id.
 *
 * @param matching endpoints that subscribe to the event.
 * @param unreadable ids of endpoints whose configuration, and so whose subscription, is unreadable.
 */
export const candidates = (
  matching: ReadonlyArray<RoutableEndpoint>,
  unreadable: ReadonlyArray<string>
): ReadonlyArray<Candidate> =>
  [
    ...matching.map((endpoint) => ({ id: endpoint.id, endpoint })),
    ...unreadable.map((id) => ({ id }))
  ].sort((a, b) => (a.id < b.id ? -1 : 1))

/** A part of a plan, just made. */
interface Part {
  readonly plan: Plan
  /**
   * Endpoint keys, in the order of the plan. They are the directory's own string objects: equal
   * copies make each later lookup slower.
   */
  readonly keys: ReadonlyArray<string>
}

/**
 * Returns the next part of an event's plan: the candidates whose ids come after `after`, in order.
 *
 * @param most maximum endpoints in the part: {@link partSize}.
 */
export const nextPart = (
  event: Event,
  { all, directory }: EndpointChoice,
  part: number,
  after: string,
  most: number
): Part => {
  const rest = after === "" ? all : all.filter(({ id }) => id > after)
  const now = rest.length <= most ? rest : rest.slice(0, most)
  const endpoints: Array<Planned> = []
  const keys: Array<string> = []
  const skipped: Array<{ readonly id: string; readonly reason: string }> = []
  for (const { endpoint, id } of now) {
    if (endpoint === undefined) skipped.push({ id, reason: "endpoint-unreadable" })
    else if (endpoint.isDisabled) skipped.push({ id, reason: "endpoint-disabled" })
    else {
      const { generation, key, revision } = endpoint
      const deadline = event.at + windowFor(endpoint, event.type)
      endpoints.push({ id, generation, revision, deadline })
      keys.push(key)
    }
  }
  return {
    plan: {
      ...{ part, last: now.length === rest.length, endpoints, skipped, directory },
      ...(event.channel === undefined ? {} : { channel: event.channel })
    },
    keys
  }
}

/** True where the plan has one endpoint and skips none. */
export const isSole = ({ endpoints, last, part, skipped }: Plan): boolean =>
  last && part === 0 && endpoints.length === 1 && skipped.length === 0

/** Returns the id after which the next part begins. */
export const endOf = (plan: Plan): string =>
  [...plan.endpoints, ...plan.skipped].reduce((last, { id }) => (id > last ? id : last), "")

/** Returns the `routed` fact that stores a part. */
export const routedFact = (event: Event, plan: Plan, at: number, worker: string): Fact => ({
  v: 1,
  kind: "routed",
  at,
  tenant: event.tenant,
  endpoint: nobody,
  event: event.id,
  eventSeq: event.seq,
  eventAt: event.at,
  type: event.type,
  plan,
  worker,
  trace: event.content.traceparent,
  correlation: correlationOf(event.content.forwarded)
})

/**
 * Reads, from the leader, the part of the event's plan at a sequence of the history. None where the
 * fact there belongs to another event.
 */
export const readPart = Effect.fnUntraced(function* (seq: number, event: Event) {
  return Option.flatMap(yield* readFact(seq), ({ eventAt, eventSeq, plan }) =>
    plan === undefined || eventSeq !== event.seq || eventAt !== event.at
      ? Option.none()
      : Option.some<StoredPart>({ plan, seq })
  )
})
