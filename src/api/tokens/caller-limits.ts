import { Context, Effect } from "effect"
import type { Bound } from "../../metrics/refused-requests.ts"
import { RefusedRequests } from "../../metrics/refused-requests.ts"
import type { Caller } from "../../operations/caller.ts"
import { Shares } from "../../policy/shares.ts"
import { timers } from "../../time/timers.ts"
import { tooManyRequests } from "../failures.ts"

/** Requests with a token that are answered at the same time, in all and of one token. */
const maxRequests = 512
const maxOfToken = 128
/** Streams of `/live` at the same time, in all and of one token. */
const maxStreams = 256
const maxStreamsOfToken = 16
/** Of all connections, those that may be streams. */
const streamsShare = 1 / 4

type Owner = Pick<Caller["Service"], "tenant" | "token">

/** Bounds what goes on for callers at the same time: by token, then by tenant, then in all. */
class CallerSlots {
  readonly mostOfToken: number
  readonly #ofTokens: Shares
  readonly #ofTenants: Shares

  constructor(most: number, mostOfToken: number) {
    this.mostOfToken = mostOfToken
    this.#ofTokens = new Shares(Number.POSITIVE_INFINITY, mostOfToken)
    this.#ofTenants = new Shares(most)
  }

  /** Takes a slot. Returns undefined, or whose part is used up. */
  take({ tenant, token }: Owner): "tenant" | "token" | undefined {
    const id = token?.id ?? ""
    if (!this.#ofTokens.take(id)) return "token"
    if (this.#ofTenants.take(tenant)) return undefined
    this.#ofTokens.give(id)
    return "tenant"
  }

  give({ tenant, token }: Owner): void {
    this.#ofTokens.give(token?.id ?? "")
    this.#ofTenants.give(tenant)
  }
}

/**
 * Takes a slot for a caller until the scope of the request closes: it is answered then, or its client
 * has left. Fails with TooManyRequests where the caller has none left.
 *
 * @param of what it is, for people, and what to do where a caller has too many.
 */
export const holdSlot = (
  slots: CallerSlots,
  caller: Owner,
  of: { readonly bound: Bound; readonly things: string; readonly advice: string }
) =>
  Effect.gen(function* () {
    const usedUp = yield* Effect.acquireRelease(
      Effect.sync(() => slots.take(caller)),
      (usedUp) => Effect.sync(() => (usedUp === undefined ? slots.give(caller) : undefined))
    )
    if (usedUp === undefined) return
    ;(yield* RefusedRequests).note(of.bound)
    const whose =
      usedUp === "token"
        ? `the token has ${slots.mostOfToken} ${of.things}`
        : `the tenant has as many ${of.things} as are left for it`
    return yield* tooManyRequests(`${whose}: ${of.advice}`, 1)
  })

/** The slots of one server. */
export class Slots extends Context.Service<
  Slots,
  { readonly requests: CallerSlots; readonly streams: CallerSlots }
>()("petrel/api/Slots") {
  /** @param maxConnections of the server. (Default: enough for all streams) */
  static readonly make = (maxConnections = Number.POSITIVE_INFINITY) => {
    const streams = Math.min(maxStreams, Math.ceil(maxConnections * streamsShare))
    return Slots.of({
      requests: new CallerSlots(maxRequests, maxOfToken),
      streams: new CallerSlots(streams, Math.min(maxStreamsOfToken, Math.ceil(streams / 2)))
    })
  }
}

/** The requests that a token may still make at once, as of a time. */
interface Allowance {
  left: number
  /** ms of the monotonic clock. */
  at: number
}

/** Tokens whose allowance is remembered. Beyond, all begin anew. */
const maxRemembered = 10_000

/** Bounds the requests of each token: so many per second, and as many at once after a pause. */
export class RequestRates {
  readonly #allowances = new Map<string, Allowance>()

  /**
   * Takes one request of a token.
   *
   * @returns how long until it may be made, ms, 0 for now; and how many more may be made now.
   */
  take(id: string, perSecond: number): { readonly waitMs: number; readonly left: number } {
    const now = timers.monotonicMs()
    const known = this.#allowances.get(id)
    const allowance = known ?? { left: perSecond, at: now }
    const grown = allowance.left + ((now - allowance.at) / 1_000) * perSecond
    allowance.left = Math.min(perSecond, grown)
    allowance.at = now
    if (known === undefined) this.#remember(id, allowance)
    if (allowance.left < 1) return { waitMs: ((1 - allowance.left) / perSecond) * 1_000, left: 0 }
    allowance.left--
    return { waitMs: 0, left: Math.floor(allowance.left) }
  }

  #remember(id: string, allowance: Allowance): void {
    if (this.#allowances.size >= maxRemembered) this.#allowances.clear()
    this.#allowances.set(id, allowance)
  }
}

/** What one token may do, by its name in both headers. */
const policy = '"token"'

/**
 * Returns the headers that say how many requests a token may make, and how many more at once, as
 * draft-ietf-httpapi-ratelimit-headers-11 has them: lists of structured fields (RFC 9651).
 *
 * @param perSecond how many the token may make in a second, and at once after a pause.
 * @param left how many of them it may make now.
 * @param afterSeconds when it may make a further one, where none is left.
 */
export const rateHeaders = (
  perSecond: number,
  left: number,
  afterSeconds = 1
): Readonly<Record<string, string>> => ({
  "ratelimit-policy": `${policy};q=${perSecond};w=1`,
  // What is used is there again within a second.
  ratelimit: `${policy};r=${left};t=${afterSeconds}`
})
