import { Duration, Result } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import type { RetryPolicy } from "../domain/retry-policy.ts"
import { commonType, TypeIndex } from "../domain/type-filter.ts"
import type { UnknownPreset } from "./presets.ts"
import { resolveRetry } from "./presets.ts"

/** The retry policy of all an endpoint's events, or of some event types. */
export interface EndpointPolicy {
  /** A type filter; undefined for all types that no filter matches. */
  readonly types: string | undefined
  readonly policy: RetryPolicy
}

/** The fields of an endpoint that name its policies. */
export type RetryChoices = Pick<Endpoint, "retry" | "retryFor">

/** Returns an endpoint's retry policies, that of `retry` first. */
export const policiesOf = ({
  retry,
  retryFor
}: RetryChoices): Result.Result<
  readonly [EndpointPolicy, ...ReadonlyArray<EndpointPolicy>],
  UnknownPreset
> =>
  Result.gen(function* () {
    const first: EndpointPolicy = { types: undefined, policy: yield* resolveRetry(retry) }
    const others: Array<EndpointPolicy> = []
    for (const [types, chosen] of Object.entries(retryFor ?? {}))
      others.push({ types, policy: yield* resolveRetry(chosen) })
    return [first, ...others]
  })

/** Returns the time from the start of a round to its give-up deadline, ms. */
export const windowMs = ({ window }: Pick<RetryPolicy, "window">): number =>
  Duration.toMillis(window)

/**
 * Maximum event types whose choice is cached, 100 bytes each: a publisher may use any number of
 * types.
 */
const maxCachedTypes = 1_000

/**
 * Returns how exact a filter is, as text whose order is that of exactness: `1` for a literal token,
 * `0` for a wildcard, without the wildcards at its end. So `a.*.c` is `101`, and `a.>` and `a.*` are
 * both `1`.
 */
const exactness = (filter: string): string =>
  filter
    .split(".")
    .map((token) => (token === "*" || token === ">" ? "0" : "1"))
    .join("")
    .replace(/0+$/, "")

/** Two filters of which neither wins, and an event type that both match. */
interface EqualFilters {
  readonly filters: readonly [string, string]
  readonly type: string
}

/** Finds two filters that are equally exact and match the same event type. */
export const equalFilters = (filters: ReadonlyArray<string>): EqualFilters | undefined => {
  for (const [at, one] of filters.entries())
    for (const other of filters.slice(at + 1)) {
      const type = exactness(one) === exactness(other) ? commonType(one, other) : undefined
      if (type !== undefined) return { filters: [one, other], type }
    }
  return undefined
}

/**
 * Chooses a value by event type. Of the filters that match the type the most exact one wins: they
 * are compared token by token from the left, and a literal token beats a wildcard. Of two that win
 * equally ({@link equalFilters}), the first one given wins.
 */
export class TypeChoice<A> {
  readonly #index = new TypeIndex<number>()
  /** The values, those of the most exact filters first; last the fallback. */
  readonly #values: ReadonlyArray<A>
  readonly #chosen = new Map<string, A>()
  readonly #fallback: A

  /** @param fallback for event types that no filter matches. */
  constructor(byFilter: ReadonlyArray<readonly [filter: string, value: A]>, fallback: A) {
    const sorted = byFilter.toSorted(([one], [other]) =>
      exactness(one) === exactness(other) ? 0 : exactness(one) > exactness(other) ? -1 : 1
    )
    for (const [rank, [filter]] of sorted.entries()) this.#index.add([filter], rank)
    this.#values = sorted.map(([, value]) => value)
    this.#fallback = fallback
  }

  for(type: string): A {
    return this.#chosen.get(type) ?? this.#choose(type)
  }

  #choose(type: string): A {
    const ranks = this.#index.match(type)
    const best = ranks.size === 0 ? undefined : this.#values[Math.min(...ranks)]
    const chosen = best ?? this.#fallback
    if (this.#chosen.size >= maxCachedTypes) this.#chosen.clear()
    this.#chosen.set(type, chosen)
    return chosen
  }
}
