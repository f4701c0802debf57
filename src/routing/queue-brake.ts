import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { readWaitingSpace, resumeBelowShare } from "../broker/storage-limits.ts"
import { elapsedMs } from "../time/elapsed.ts"

/** Size of a stored delivery besides its body: headers and subject, bytes. */
const envelope = 512
/**
 * Bytes that may be routed between two checks where streams have no limit, or the broker does not
 * answer.
 */
const withoutBound = 256 * 1024 ** 2
/**
 * Share of the free space that is routed before the next check: other routers route at the same
 * time.
 */
const part = 1 / 4
/** Minimum bytes to route before the next check. */
const minShareBytes = 256 * 1024
/** Pause between checks while there is no space, ms: most events in flight end soon. */
const pauseMs = 50
/** Pause between checks once the log says that routing is held back, ms. */
const heldPauseMs = 250
/** How long there must be no space until the log says so, ms. */
const heldAfterMs = 1_000

/**
 * Holds routing back while the queues are full: nobody delivers what is in them, as where no worker
 * owns their partitions. An event that is not routed takes no additional space, while each of its
 * deliveries that cannot be attempted directly is copied into a queue. Queues have no limit of their
 * own: if they fill the store, the history accepts no facts, and without facts no delivery leaves
 * them.
 *
 * No endpoint and no tenant fills them: what they may let wait there is less
 * (`delivery/retry/queue-space.ts`), and what waits in backlogs does not count here.
 *
 * The deliveries of events in flight count in full, wherever they are: a direct delivery that fails
 * is copied too, and endpoints may fail all at once.
 *
 * The streams are checked again only when as many bytes were routed as there may be space for, so
 * an event costs no request.
 *
 * @param inFlightBytes returns the bytes of all deliveries of the events in flight.
 */
export const makeQueueBrake = Effect.fnUntraced(function* (
  partitions: number,
  inFlightBytes: () => number
) {
  const { names, streamInfo } = yield* Broker
  let left = 0
  /** Since when there has been no space, ms of the monotonic clock. */
  let since: number | undefined
  /** True while routing is held back and the log says so. */
  let said = false

  const queues = Array.from({ length: partitions }, (_, index) => names.deliveries(index))
  const look = Effect.gen(function* () {
    // A delivery may be stored while the streams are read, and its event end: it counts here.
    const before = inFlightBytes()
    const { queues: most } = yield* readWaitingSpace
    if (most === undefined) return withoutBound
    const held = yield* Effect.forEach(
      queues,
      (name) => streamInfo(`look at stream ${name}`, name),
      { concurrency: 16 }
    )
    const free = most - held.reduce((sum, { state }) => sum + state.bytes, 0)
    const unclaimed = free - before
    return unclaimed <= (said ? most * (1 - resumeBelowShare) : 0)
      ? 0
      : Math.max(minShareBytes, unclaimed * part)
  })

  const tell = Effect.fnUntraced(function* (isHeld: boolean) {
    if (said === isHeld) return
    said = isHeld
    yield* isHeld
      ? Effect.logWarning(
          "queues are full: events are not routed until some of what is in them is delivered; see `petrel status`"
        )
      : Effect.logInfo("there is space in the queues again: events are routed")
  })

  return {
    /** Counts deliveries as routed. */
    routed: (bodyBytes: number, deliveries: number): void => {
      left -= (bodyBytes + envelope) * deliveries
    },
    /**
     * Returns how many bytes of deliveries may be routed now. Where there is no space, returns
     * undefined after a pause.
     */
    budget: Effect.gen(function* () {
      if (left > 0) return left
      left = yield* Effect.orElseSucceed(look, () => withoutBound)
      if (left > 0) {
        since = undefined
        yield* tell(false)
        return left
      }
      since ??= elapsedMs()
      const isLong = elapsedMs() - since >= heldAfterMs
      if (isLong) yield* tell(true)
      yield* Effect.sleep(isLong ? heldPauseMs : pauseMs)
      return
    })
  }
})
