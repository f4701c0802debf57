import { Effect, Option } from "effect"
import { Broker } from "../../broker/broker.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { Fact } from "../../domain/fact.ts"
import { factResult } from "../../domain/fact.ts"
import { readStory } from "../../history/configuration-story.ts"
import { decodeFact } from "../../history/fact-at.ts"

/** Endpoints that are remembered; beyond, all are forgotten. */
const maxEndpoints = 10_000
/** Changes of an endpoint that are remembered. */
const maxChanges = 20

/** The origin that an endpoint's URL has from a time on, ms since the epoch. */
interface OriginSince {
  readonly at: number
  readonly origin: string | undefined
}

interface KnownOrigins {
  /** Oldest first. */
  readonly origins: ReadonlyArray<OriginSince>
  /** True if there are no older ones. */
  readonly isWhole: boolean
}

const kind = "endpoint-changed"

const changeIn = ({ at, change }: Fact): OriginSince => ({ at, origin: change?.now?.origin })

/** Reads the last change of an endpoint that is recorded; undefined if there is none. */
const readLast = Effect.fnUntraced(function* (tenant: string, endpoint: string) {
  const { names, readMessage } = yield* Broker
  const last_by_subj = names.subjects.fact(tenant, endpoint, factResult(kind), kind)
  const message = yield* readMessage(`look at ${tenant}/${endpoint}`, names.configuration, {
    last_by_subj
  })
  return Option.getOrUndefined(
    Option.map(decodeFact(message?.string() ?? ""), (fact): OriginSince => changeIn(fact))
  )
})

/** The scheme, host and port of endpoints, as they were at a time. Remembers them. */
export class EndpointOrigins {
  readonly #known = new Map<string, KnownOrigins>()

  /** Takes an `endpoint-changed` fact. */
  note(fact: Fact): void {
    const key = endpointKey(fact.tenant, fact.endpoint)
    const { isWhole = false, origins = [] } = this.#known.get(key) ?? {}
    const next = [...origins, changeIn(fact)].toSorted((a, b) => a.at - b.at)
    const kept = next.slice(-maxChanges)
    this.#remember(key, { isWhole: isWhole && kept.length === next.length, origins: kept })
  }

  /** @param at ms since the epoch. */
  readonly of = Effect.fnUntraced(
    { self: this },
    function* (tenant: string, endpoint: string, at: number) {
      const key = endpointKey(tenant, endpoint)
      const inForce = (origins: ReadonlyArray<OriginSince>) =>
        origins.findLast((one) => one.at <= at)
      const known = this.#known.get(key)
      const found = inForce(known?.origins ?? [])
      if (found !== undefined) return found.origin
      if (known?.isWhole === true) return known.origins[0]?.origin
      const last = known === undefined ? yield* readLast(tenant, endpoint) : undefined
      if (last !== undefined && last.at <= at) {
        this.#remember(key, { origins: [last], isWhole: false })
        return last.origin
      }
      const story = yield* readStory(tenant, endpoint)
      const origins = story.map(({ at, configuration }) => ({ at, origin: configuration?.origin }))
      this.#remember(key, { origins, isWhole: true })
      return (inForce(origins) ?? origins[0])?.origin
    }
  )

  #remember(key: string, known: KnownOrigins): void {
    if (this.#known.size >= maxEndpoints && !this.#known.has(key)) this.#known.clear()
    this.#known.set(key, known)
  }
}
