import { IncomingMessage } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import type { Fiber } from "effect"
import { Effect, Option, Scheduler } from "effect"
import type { HttpServerResponse } from "effect/http"
import { HttpServerRequest } from "effect/http"
import type { IpNetwork } from "effect/net"
import type { Connections } from "../connections/connections.ts"
import { heldBackMs } from "../connections/held-connections.ts"
import { networkOf } from "../connections/network.ts"
import type { RefusalCells } from "../metrics/refused-requests.ts"
import { RefusedRequests } from "../metrics/refused-requests.ts"
import { LiveTokens } from "../operations/tokens/token-store.ts"
import { ArrivalCost } from "../policy/arrival-cost.ts"
import { FairTime } from "../policy/fair-turns.ts"
import { Shares } from "../policy/shares.ts"
import { timers } from "../time/timers.ts"
import { clientAddress } from "./addresses.ts"
import type { InsiderRecord } from "./credential.ts"
import { credentialOf, Insider } from "./credential.ts"
import { problemResponse, unavailableProblem } from "./problems.ts"

/**
 * How long requests are begun without a break, ms. Then what has come meanwhile is looked at: who
 * has used less goes first.
 */
const sliceMs = 1
/** Requests that wait for their turn, of all; one that asks alone has half of them. */
const maxWaiting = 1_024
/**
 * Refusals that wait, of all; one that asks alone has half of them. More are not held back: Node stops
 * to read requests by a connection that does not take its answers, and not while there are none.
 */
const maxRefused = 4_096
/** How long a request waits for its turn before it is refused, ms. */
const waitWithinMs = 5_000

/**
 * How long the event loop comes round without a slice of work while clients connect, ms: Node accepts
 * one connection each time, and whoever connects waits for all that came before. As long as a slice,
 * so that who connects again and again takes half of the time at most.
 */
const acceptMs = 1

/** The key of a tenant's turns; `*` for operators. */
export const turnOfTenant = (tenant: string): string => `tenant ${tenant}`

/** Notes who uses the thread: from where a fiber of a request goes on to the end of the callback. */
class Meter {
  readonly #charge: (key: string, ms: number, now: number) => void
  #key: string | undefined
  #since = 0

  constructor(charge: (key: string, ms: number, now: number) => void) {
    this.#charge = charge
  }

  begin(key: string): void {
    const now = timers.monotonicMs()
    if (this.#key === undefined) queueMicrotask(this.end)
    else this.#charge(this.#key, now - this.#since, now)
    this.#key = key
    this.#since = now
  }

  /** Who uses the thread stops to do so. */
  readonly end = () => {
    const now = timers.monotonicMs()
    if (this.#key !== undefined) this.#charge(this.#key, now - this.#since, now)
    this.#key = undefined
  }
}

/**
 * Schedules the fibers that work for a key. Each time when one is about to go on, it is noted, and may
 * have to wait for its turn first.
 */
class KeyScheduler extends Scheduler.MixedScheduler {
  readonly #mayGoOn: () => boolean

  constructor(mayGoOn: () => boolean, wait: (run: () => void) => () => void) {
    super("async", wait)
    this.#mayGoOn = mayGoOn
  }

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    return fiber.currentOpCount === 1 ? !this.#mayGoOn() : super.shouldYield(fiber)
  }
}

/**
 * Shares the thread that answers requests. A request begins at once while the thread has time; else
 * it waits, and first comes who has used least of the thread lately. All that a request does is
 * counted, with a mean for what Node does for it; large work that yields waits for its turn, too.
 */
export class Turns {
  readonly #line = new FairTime<() => void>()
  readonly #waiting = new Shares(maxWaiting)
  readonly #refusing = new Shares(maxRefused)
  readonly #arrival = new ArrivalCost()
  readonly #meter = new Meter((key, ms, now) => {
    this.#arrival.noteMeasured(ms)
    this.#line.charge(key, ms, now)
  })
  readonly #refused: RefusalCells
  readonly #waitWithinMs: number
  /** True while what waited has its turn. */
  #isInTurn = false
  #isPumping = false
  #began = 0
  #hasAccepted = false
  /** When the loop came round first without a slice of work. */
  #acceptsSince: number | undefined

  /** @param waitWithin how long a request waits for its turn, ms. (Default: 5 s) */
  constructor(refused: RefusalCells, waitWithin = waitWithinMs) {
    this.#refused = refused
    this.#waitWithinMs = waitWithin
  }

  /**
   * Does something in the turn of a key. Returns what `refusal` does, after a second
   * at least, if too much of the key waits, or once it has waited for too long.
   */
  inTurn<A, E, R, B, E2, R2>(
    key: string,
    work: Effect.Effect<A, E, R>,
    refusal: Effect.Effect<B, E2, R2>
  ): Effect.Effect<A | B, E | E2, R | R2> {
    const scheduled = Effect.provideService(work, Scheduler.Scheduler, this.schedulerOf(key))
    const begun = Effect.suspend(() => {
      this.#meter.begin(key)
      return scheduled
    })
    return Effect.suspend((): Effect.Effect<A | B, E | E2, R | R2> => {
      if (this.#mayBegin(key)) return begun
      return Effect.flatMap(
        this.#wait(key),
        (may): Effect.Effect<A | B, E | E2, R | R2> => (may ? begun : refusal)
      )
    })
  }

  /** Makes those of a console, whose refusals are counted with its others. */
  static readonly make = Effect.map(RefusedRequests, (refused) => new Turns(refused))

  /** Notes that a client has connected: others may be waiting to be let in. */
  noteAccepted(): void {
    this.#arrival.note()
    this.#hasAccepted = true
  }

  /**
   * Notes that a request of a key has come, which counts as use of the thread even if it is refused.
   *
   * @param isFirst true if it is the first of its connection, which counts as the key's with it.
   */
  noteRequest(key: string, isFirst: boolean): void {
    this.#arrival.note()
    this.#line.charge(key, (isFirst ? 2 : 1) * this.#arrival.ms, timers.monotonicMs())
  }

  /** Returns what schedules the jobs of a tenant: what they use counts as what its requests use. */
  readonly schedulerOfTenant = (tenant: string): Scheduler.Scheduler =>
    this.schedulerOf(turnOfTenant(tenant))

  /** Returns what schedules the fibers that work for a key. */
  schedulerOf(key: string): Scheduler.Scheduler {
    return new KeyScheduler(
      () => {
        if (!this.#isInTurn && !this.#mayBegin(key)) return false
        this.#meter.begin(key)
        return true
      },
      (run) => {
        this.#line.add(key, run, true)
        this.#pumpSoon()
        return () => this.#line.remove(key, run)
      }
    )
  }

  #mayBegin(key: string): boolean {
    const now = timers.monotonicMs()
    if (this.#line.size > 0) return this.#line.mayPass(key, now)
    this.#pumpSoon()
    return now - this.#began < sliceMs
  }

  /** Returns false if the request is refused. */
  #wait(key: string): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      if (this.#waiting.take(key)) return this.#waitInLine(key)
      this.#refused.note("turns")
      return Effect.as(this.#delayed(key), false)
    })
  }

  #delayed(key: string): Effect.Effect<void> {
    const ms = heldBackMs(this.#refusing.usedBy(key))
    if (!this.#refusing.take(key)) return Effect.void
    return Effect.ensuring(
      Effect.sleep(ms),
      Effect.sync(() => this.#refusing.give(key))
    )
  }

  #waitInLine(key: string): Effect.Effect<boolean> {
    return Effect.callback((resume) => {
      const leave = () => {
        timers.cancel(late)
        this.#waiting.give(key)
        this.#line.remove(key, begin)
      }
      const end = (may: boolean) => {
        leave()
        resume(Effect.succeed(may))
      }
      const begin = () => end(true)
      const late = timers.after(this.#waitWithinMs, () => {
        this.#refused.note("turns")
        end(false)
      })
      this.#line.add(key, begin)
      this.#pumpSoon()
      return Effect.sync(leave)
    })
  }

  #acceptsFirst(): boolean {
    const now = timers.monotonicMs()
    const since = this.#acceptsSince ?? now
    const accepts = this.#hasAccepted && now - since < acceptMs
    this.#acceptsSince = accepts ? since : undefined
    this.#hasAccepted = false
    return accepts
  }

  #pumpSoon(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    this.#began = timers.monotonicMs()
    timers.immediate(this.#pump)
  }

  /** Begins what waits, for a slice of time, each time when the event loop has come round. */
  readonly #pump = () => {
    if (this.#acceptsFirst()) {
      timers.immediate(this.#pump)
      return
    }
    const began = timers.monotonicMs()
    let now = began
    this.#arrival.end(now)
    this.#isInTurn = true
    do {
      this.#line.next(now)?.()
      now = timers.monotonicMs()
    } while (this.#line.size > 0 && now - began < sliceMs)
    this.#isInTurn = false
    this.#isPumping = false
    // Before the next round begins, or its last item would count as measured there.
    this.#meter.end()
    if (this.#line.size === 0) return
    this.#arrival.begin(now)
    this.#pumpSoon()
  }
}

/** Seconds after which a refused request is worth trying again. */
const retryAfter = 2

const noTurn = problemResponse(
  unavailableProblem(
    "the console has more to do than it can handle, and callers who use less of its time come first: try again",
    retryAfter
  )
)

/**
 * Lets requests begin in the turn of their tenant, or of the client's address (with IPv6: its network)
 * where no valid token has come.
 */
export const beginInTurn = Effect.fnUntraced(function* <E, R>(
  answered: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  turns: Turns,
  connections: Connections,
  proxies: ReadonlyArray<IpNetwork.IpNetwork>,
  isSecure: boolean
) {
  const tokens = yield* LiveTokens
  const keyOf = (
    request: HttpServerRequest.HttpServerRequest,
    insider: InsiderRecord | undefined
  ): string => {
    const { headers, remoteAddress } = request
    const { tenant } = insider ?? tokens.find(credentialOf(isSecure, request).token) ?? {}
    if (tenant !== undefined) return turnOfTenant(tenant)
    const peer = Option.getOrElse(remoteAddress, () => "")
    return `address ${networkOf(clientAddress(peer, headers["x-forwarded-for"], proxies) ?? peer)}`
  }
  const refusal = Effect.succeed(noTurn)
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    const begun = Effect.suspend(() => {
      const { source } = request
      if (source instanceof IncomingMessage)
        connections.begin(source.socket, NodeHttpServerRequest.toServerResponse(request))
      return answered
    })
    return Effect.flatMap(Insider, (insider) => {
      const { source } = request
      const key = keyOf(request, insider)
      turns.noteRequest(
        key,
        source instanceof IncomingMessage && connections.isFirst(source.socket)
      )
      return turns.inTurn(key, begun, refusal)
    })
  })
})
