import { Effect } from "effect"
import type { Broker } from "../broker/broker.ts"
import { circuitOf } from "../domain/endpoint.ts"
import type { Fact, FactKind } from "../domain/fact.ts"
import { Facts } from "../history/facts.ts"
import type { LiveEndpoint } from "./directory.ts"
import { giveUpEndpoint } from "./endpoint-state.ts"

export interface EndpointEventsOptions {
  readonly worker: string
  /** Returns a new id for a fact. */
  readonly nextId: () => string
  /**
   * True while this worker is the partition's owner: a former owner's view of an endpoint is not
   * recorded.
   */
  readonly holds: () => boolean
  /** Runs work until the partition is released. */
  readonly run: (work: Effect.Effect<void, never, Broker | Facts>) => void
}

/** Records events of endpoints as facts, and gives endpoints up. */
export const makeEndpointEvents = Effect.fnUntraced(function* (options: EndpointEventsOptions) {
  const { holds, nextId, run, worker } = options
  const facts = yield* Facts
  /** Facts from while ownership was uncertain. */
  const waiting: Array<Fact> = []

  /**
   * Appends the waiting facts if this worker is owner. Otherwise they wait: a new owner has its own
   * view.
   */
  const appendWaiting = () => {
    if (!holds()) return
    for (const fact of waiting.splice(0)) {
      const { endpoint, kind, nextAttemptAt, reason, tenant } = fact
      const next = nextAttemptAt === undefined ? undefined : new Date(nextAttemptAt).toISOString()
      run(
        Effect.gen(function* () {
          yield* facts.append(fact, nextId())
          yield* Effect.logInfo(kind, { tenant, endpoint, next, reason })
        })
      )
    }
  }

  return {
    appendWaiting,
    /** Records an event of an endpoint. `at` in ms since the epoch. */
    append: (endpoint: LiveEndpoint, kind: FactKind, at: number, more: Partial<Fact>) => {
      const { id, tenant } = endpoint.config
      waiting.push({ v: 1, kind, at, tenant, endpoint: id, worker, ...more })
      appendWaiting()
    },
    /** Disables or suspends an endpoint that only fails. */
    giveUp: (endpoint: LiveEndpoint, reason: string) => {
      if (!holds()) return
      const { generation, id, tenant } = endpoint.config
      const named = { tenant, endpoint: id, generation }
      run(giveUpEndpoint(named, circuitOf(endpoint.config).onGiveUp, reason, worker))
    }
  }
})

export type EndpointEvents = Effect.Success<ReturnType<typeof makeEndpointEvents>>
