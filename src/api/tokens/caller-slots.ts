import { Context, Effect } from "effect"
import { type Bound, RefusedRequests } from "../../metrics/refused-requests.ts"
import type { Caller } from "../../operations/caller.ts"
import { Shares } from "../../policy/shares.ts"
import { tooManyRequests } from "../failures.ts"

/** Requests with a token that are answered at the same time, in all and of one token. */
const maxRequests = 512
const maxOfToken = 128
/** Streams of `/live` at the same time, in all and of one token. */
const maxStreams = 256
const maxStreamsOfToken = 16

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
  static readonly make = () =>
    Slots.of({
      requests: new CallerSlots(maxRequests, maxOfToken),
      streams: new CallerSlots(maxStreams, maxStreamsOfToken)
    })
}
