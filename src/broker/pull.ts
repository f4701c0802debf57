import { Effect } from "effect"
import { Broker } from "./connection.ts"
import type { Ended, Take, Wanted } from "./puller.ts"
import { Puller } from "./puller.ts"

/**
 * How long one request for messages stays open, ms. Short, so that a worker that stops leaves
 * none stranded: it waits for the open request to end instead of hanging up on the broker.
 */
const requestExpiryMs = 1_000
/** How long its end is waited for: at first, and at most where the broker is slow, ms. */
const maxRequestMs = 2_500
const maxSlowRequestMs = 20_000
const retryPauseMs = 1_000

/** Where messages come from and go to. */
export interface Pull {
  /** Who gets messages, as a log line says it. */
  readonly name: string
  readonly stream: string
  readonly consumer: string
  /** Waits until something may be taken, and says how much; undefined to be asked again. */
  readonly room: Effect.Effect<Wanted | undefined>
  readonly take: Take
  /** Called when a request has come to its end. */
  readonly asked?: () => void
  /** Called when the next message is larger than what was wanted. */
  readonly tooLarge: (wanted: Wanted) => void
  /** Once true, no more is asked for and the loop ends within a second. */
  readonly stopping: () => boolean
}

/**
 * Takes messages in batches no larger than there is room for, for as long as it is not stopped.
 * A broker that does not answer is asked again every second.
 */
export const pull = Effect.fnUntraced(function* (options: Pull) {
  const { connection, onReconnect, publisher } = yield* Broker
  const puller = yield* Effect.acquireRelease(
    Effect.sync(
      () => new Puller(connection, publisher.outbound, options, options.take, requestExpiryMs)
    ),
    (puller) => Effect.sync(() => puller.close())
  )
  let failing = false
  let patience = maxRequestMs
  // What was asked for on a connection that is gone has no end.
  let hangUp: (() => void) | undefined
  const forget = onReconnect(() => {
    patience = maxRequestMs
    hangUp?.()
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  while (!options.stopping()) {
    const wanted = yield* options.room
    if (wanted === undefined) continue
    const began = performance.now()
    const ended = yield* request(puller, wanted, patience, (late) => {
      hangUp = () => {
        if (performance.now() - began > maxRequestMs) late()
      }
    })
    hangUp = undefined
    if (ended === undefined) {
      // Else what a slow broker hands out would never be waited for.
      if (publisher.outbound.isConnected) patience = Math.min(2 * patience, maxSlowRequestMs)
      continue
    }
    if (typeof ended === "object") {
      if (!failing)
        yield* Effect.logWarning(`${options.name} gets no messages`, { why: ended.message })
      failing = true
      yield* Effect.sleep(retryPauseMs)
      continue
    }
    if (ended === "too-large") options.tooLarge(wanted)
    options.asked?.()
    failing = false
  }
}, Effect.scoped)

/**
 * How it came to its end; undefined where it did not, as without a broker. With a timer of its own:
 * there is a request for every hundred deliveries, and Effect's way takes two fibers each.
 */
const request = (
  puller: Puller,
  wanted: Wanted,
  patience: number,
  begun: (late: () => void) => void
) =>
  Effect.callback<Ended | undefined>((resume) => {
    const abandon = () => {
      clearTimeout(timer)
      puller.abandon()
    }
    puller.request(wanted, (how) => {
      clearTimeout(timer)
      resume(Effect.succeed(how))
    })
    const late = () => {
      abandon()
      resume(Effect.succeed(undefined))
    }
    const timer = setTimeout(late, patience)
    begun(late)
    return Effect.sync(abandon)
  })
