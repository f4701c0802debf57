import { Effect } from "effect"
import { timers } from "../time/timers.ts"
import type { Outbound } from "./outbound.ts"
import type { PullDemand, PullEnd, PullError, Take } from "./puller.ts"
import { Puller } from "./puller.ts"
import type { TakeTurns } from "./take-turns.ts"
import type { Wire } from "./wire.ts"

/**
 * How long one request for messages stays open, ms. It is short, so that a worker that stops
 * strands no messages: it waits for the open request to end instead of abandoning it.
 */
const requestExpiryMs = 1_000
/**
 * After a consumer was found to hand out bodies, messages without one are taken for so long, ms: until
 * those that were returned have come back, whichever request they answer.
 */
const trustedMs = 2 * requestExpiryMs
/** How long the end of a request is waited for: at first, and at most if the broker is slow, ms. */
const maxRequestMs = 2_500
const maxSlowRequestMs = 20_000
const retryPauseMs = 1_000

/** What consumers give. */
type PulledKind = "deliveries" | "events"

/** The turns in which messages of each kind are taken. */
export type TurnsByKind = Readonly<Record<PulledKind, TakeTurns>>

/** A consumer to pull from, and what handles its messages. */
export interface Pull {
  /** Name of the receiver in log lines. */
  readonly name: string
  readonly stream: string
  readonly consumer: string
  /** What it gives: either kind is taken in turns of its own, so that neither waits for the other. */
  readonly kind: PulledKind
  /**
   * Waits for capacity and returns how much to request. If it returns undefined, it is called
   * again.
   */
  readonly demand: Effect.Effect<PullDemand | undefined>
  readonly take: Take
  /** Called when a request has ended normally. */
  readonly asked?: () => void
  /**
   * Called when the end of a request was waited for in vain. The broker may still get the request,
   * and give messages to it, until a later one has ended.
   */
  readonly abandoned?: () => void
  /** Called when the next message is larger than the request allows. */
  readonly tooLarge: (wanted: PullDemand) => void
  /** Called while the consumer may be missing, to make it again. */
  readonly remake: Effect.Effect<void>
  /** Once true, no more requests are made, and the loop ends within a second. */
  readonly stopping: () => boolean
}

/**
 * Pulls messages in batches that fit the free capacity, until stopped. If the broker answers with
 * an error, it is asked again every second.
 *
 * @param failed has those to which the broker has answered so, or nothing, more than once in a row.
 * @param isHeadersOnly true if a consumer hands out no bodies, or if that cannot be known now.
 */
export const pullWith = Effect.fnUntraced(function* (
  wire: Wire,
  outbound: Outbound,
  turns: TurnsByKind,
  onReconnect: (listener: () => void) => () => void,
  failed: Set<Pull>,
  isHeadersOnly: (of: Pull) => Effect.Effect<boolean>,
  options: Pull
) {
  const puller = yield* Effect.acquireRelease(
    Effect.sync(
      () => new Puller(wire, outbound, turns[options.kind], options, options.take, requestExpiryMs)
    ),
    (puller) => Effect.sync(() => puller.close())
  )
  let failing = false
  let silent = false
  let trustedUntil = 0
  let requestMs = maxRequestMs
  // A request that was sent on a lost connection never ends.
  let hangUp: (() => void) | undefined
  const forget = onReconnect(() => {
    requestMs = maxRequestMs
    hangUp?.()
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      forget()
      failed.delete(options)
    })
  )
  while (!options.stopping()) {
    const wanted = yield* options.demand
    if (wanted === undefined || options.stopping()) continue
    if (puller.sawHeadersOnly) {
      if (yield* isHeadersOnly(options)) {
        yield* failedPull(options, withoutBodies, failing ? failed : undefined)
        failing = true
        continue
      }
      trustedUntil = timers.monotonicMs() + trustedMs
    }
    const began = timers.monotonicMs()
    const ended = yield* request(puller, wanted, requestMs, began < trustedUntil, (late) => {
      hangUp = () => {
        if (timers.monotonicMs() - began > maxRequestMs) late()
      }
    })
    hangUp = undefined
    if (ended === "late" || ended === "silent") {
      options.abandoned?.()
      const isSilent = ended === "silent"
      if (isSilent && silent) failed.add(options)
      silent = isSilent
      // Otherwise the messages of a slow broker would never be waited for.
      if (outbound.isConnected) requestMs = Math.min(2 * requestMs, maxSlowRequestMs)
      continue
    }
    if (typeof ended === "object") {
      yield* failedPull(options, ended, failing ? failed : undefined)
      failing = true
      continue
    }
    if (ended === "too-large") options.tooLarge(wanted)
    options.asked?.()
    failing = false
    silent = false
    failed.delete(options)
  }
}, Effect.scoped)

const withoutBodies = {
  message: "the consumer hands out headers only (headers_only): `petrel init` changes this back",
  isMissing: false
} as const

/**
 * Logs that a consumer gives nothing; after the first such answer notes it, and has the consumer
 * made again where it may be missing. Pauses.
 *
 * @param failed undefined for the first answer: most often it has no leader for a moment.
 */
const failedPull = Effect.fnUntraced(function* (
  options: Pull,
  { isMissing, message }: PullError,
  failed: Set<Pull> | undefined
) {
  failed?.add(options)
  if (failed === undefined)
    yield* Effect.logWarning(`${options.name} gets no messages`, { why: message })
  else if (isMissing) yield* options.remake
  yield* Effect.sleep(retryPauseMs)
})

/**
 * Runs one request and returns how it ended: `late` if it did not end in time, and `silent` if no
 * message came for it either, as without a broker, or where this user may not ask. It uses a plain
 * timer: there is a request for every hundred deliveries, and a time-out of Effect takes two fibers
 * each.
 */
const request = (
  puller: Puller,
  wanted: PullDemand,
  requestMs: number,
  takesHeadersOnly: boolean,
  begun: (late: () => void) => void
) =>
  Effect.callback<PullEnd | "late" | "silent">((resume) => {
    const abandon = () => {
      timers.cancel(timer)
      return puller.abandon()
    }
    puller.request(
      wanted,
      (how) => {
        timers.cancel(timer)
        resume(Effect.succeed(how))
      },
      takesHeadersOnly
    )
    const late = () => resume(Effect.succeed(abandon() ? "silent" : "late"))
    const timer = timers.after(requestMs, late)
    begun(late)
    return Effect.asVoid(Effect.sync(abandon))
  })
