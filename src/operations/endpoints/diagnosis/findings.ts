import type { EndpointNow } from "../../../delivery/introspection/endpoint-activity.ts"
import type { ConnectionCheck } from "../../../domain/connection-check.ts"
import type { Endpoint } from "../../../domain/endpoint.ts"
import type { Fact } from "../../../domain/fact.ts"
import type { Health } from "../../../domain/health.ts"

/** The latest attempts of an endpoint. Times in ms since the epoch. */
export interface RecentAttempts {
  /** Failed ones, oldest first, at most `maxFailures` of the reading. */
  readonly failures: ReadonlyArray<Fact>
  /** The failures were looked for since then. */
  readonly since: number
  readonly deliveredAt: number | undefined
}

/** Requests to an endpoint before it answered 429. */
export interface RequestRate {
  /** In the minute before. */
  readonly inMinute: number
  /** In the second before. */
  readonly inSecond: number
  /** When the 429 came, ms since the epoch. */
  readonly at: number
}

/** Events of one type that are stored now. */
export interface TypeCount {
  readonly type: string
  readonly count: number
  readonly isMatched: boolean
}

/** What a tenant publishes, and what of it an endpoint's filters match. */
export interface Subscription {
  readonly types: ReadonlyArray<TypeCount>
  /** When the latest event that matches was stored, ms since the epoch. */
  readonly matchedAt: number | undefined
}

/** All that a diagnosis is made from. */
export interface Findings {
  readonly endpoint: Endpoint
  readonly health: Health
  readonly activity: EndpointNow
  readonly attempts: RecentAttempts
  /** Undefined without a 429 among the failures. */
  readonly rate: RequestRate | undefined
  readonly subscription: Subscription
  /** Dead letters that are kept, those that were sent again included. */
  readonly deadLetters: number
  /** From the worker that owns the endpoint. Undefined where none answers. */
  readonly connection: ConnectionCheck | undefined
}
