import { Effect, Option } from "effect"
import type { Event } from "../domain/event.ts"
import type { Fact, Plan, Planned } from "../domain/fact.ts"
import { nobody } from "../domain/token.ts"
import type { ListedEndpoint } from "../endpoints/directory.ts"
import { readFact } from "../history/fact-at.ts"

/** Endpoints in one part of a plan at most. */
const maxEndpointsPerPart = 1_000
/** More than one endpoint takes in a part, with a name of full length, bytes. */
const endpointBytes = 256
/** More than a fact and its headers take besides, bytes. */
const factRoom = 4 * 1024

/**
 * Endpoints in one part of a plan: so many that the fact which tells it is surely taken.
 *
 * @param largest message that the broker takes, bytes.
 */
export const partSize = (largest: number): number =>
  Math.max(1, Math.min(maxEndpointsPerPart, Math.floor((largest - factRoom) / endpointBytes)))

/** A part of a plan as the history holds it: what it says, and its sequence there. */
export interface StoredPart {
  readonly plan: Plan
  readonly seq: number
}

/** All that an event may go to. */
export interface Choice {
  /** In the order of their ids. */
  readonly all: ReadonlyArray<Candidate>
  /** Revision of the endpoints bucket that they were taken from. */
  readonly directory: number
}

/** One that an event may go to: by its id, and without an endpoint where nobody can read it. */
export interface Candidate {
  readonly id: string
  readonly endpoint?: ListedEndpoint
}

/**
 * All that an event may go to, in the order of their ids.
 *
 * @param matching endpoints that want the event.
 * @param unreadable ids of endpoints of which nobody knows what they want.
 */
export const candidates = (
  matching: ReadonlyArray<ListedEndpoint>,
  unreadable: ReadonlyArray<string>
): ReadonlyArray<Candidate> =>
  [
    ...matching.map((endpoint) => ({ id: endpoint.id, endpoint })),
    ...unreadable.map((id) => ({ id }))
  ].sort((a, b) => (a.id < b.id ? -1 : 1))

/** A part of a plan that was made now. */
export interface Part {
  readonly plan: Plan
  /**
   * Of its endpoints, one after the other. They are the very texts that the directory has: others
   * that say the same take longer wherever they are looked up.
   */
  readonly keys: ReadonlyArray<string>
}

/**
 * The next part of an event's plan: candidates whose ids come after `after`, in their order.
 *
 * @param most endpoints that it may have: `partSize`.
 */
export const nextPart = (
  event: Event,
  { all, directory }: Choice,
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
      const { generation, key, revision, window } = endpoint
      endpoints.push({ id, generation, revision, deadline: event.at + window })
      keys.push(key)
    }
  }
  return {
    plan: { part, last: now.length === rest.length, endpoints, skipped, directory },
    keys
  }
}

/** True where it is about one endpoint and nobody else. */
export const isSole = ({ endpoints, last, part, skipped }: Plan): boolean =>
  last && part === 0 && endpoints.length === 1 && skipped.length === 0

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
  eventAt: event.at,
  type: event.type,
  plan,
  worker,
  trace: event.content.traceparent
})

/** The part of an event's plan that the history holds at a sequence, from its leader; none where that is another's. */
export const readPart = Effect.fnUntraced(function* (seq: number, event: Event) {
  return Option.flatMap(yield* readFact(seq), ({ eventAt, eventSeq, plan }) =>
    plan === undefined || eventSeq !== event.seq || eventAt !== event.at
      ? Option.none()
      : Option.some<StoredPart>({ plan, seq })
  )
})
