import { Effect } from "effect"
import { Broker } from "../broker/connection.ts"
import { resumeBelowShare, waitingBytes } from "../broker/room.ts"

/** What a stored delivery has beside its body: headers and subject, bytes. */
const envelope = 512
/** Routed between two looks where nothing is bounded, or nobody answers, bytes. */
const withoutBound = 256 * 1024 ** 2
/** Of what is left, the part that is routed before the next look: other routers route, too. */
const part = 1 / 4
/** Less than this is not worth a look, bytes. */
const minShareBytes = 256 * 1024
/** Pause between looks while there is no room, ms. */
const retryPauseMs = 250

/**
 * Holds routing back while what waits for endpoints takes all the room that the event stream leaves
 * for it. An event that is not routed takes no more room than it has; routed, it may be copied for
 * each endpoint, and queues and backlogs have no bound of their own. A store that they fill takes no
 * facts, and without facts nothing leaves them.
 *
 * It looks again when as much was routed as there may be room for, so it costs nothing per event.
 */
export const makeWaitingRoom = Effect.fnUntraced(function* (partitions: number) {
  const { ask, jsm, names } = yield* Broker
  let left = 0
  /** Routing is held back, and that was said. */
  let said = false

  const info = (name: string) => ask(`look at stream ${name}`, () => jsm.streams.info(name))
  const bound = (name: string) => Effect.map(info(name), ({ config }) => config.max_bytes)
  const waiting = Array.from({ length: partitions }, (_, index) => index).flatMap((index) => [
    names.deliveries(index),
    names.backlog(index)
  ])
  const look = Effect.gen(function* () {
    const [eventBytes, historyBytes, deadBytes] = yield* Effect.all(
      [bound(names.events), bound(names.history), bound(names.dead)],
      { concurrency: 3 }
    )
    const most = waitingBytes({ eventBytes, historyBytes, deadBytes })
    if (most === undefined) return withoutBound
    const held = yield* Effect.forEach(waiting, info, { concurrency: 16 })
    const free = most - held.reduce((sum, { state }) => sum + state.bytes, 0)
    return free <= (said ? most * (1 - resumeBelowShare) : 0)
      ? 0
      : Math.max(minShareBytes, free * part)
  })

  const tell = Effect.fnUntraced(function* (isHeld: boolean) {
    if (said === isHeld) return
    said = isHeld
    yield* isHeld
      ? Effect.logWarning(
          "what waits for endpoints takes all the room there is for it: events are not routed until some has gone out; see `petrel status`"
        )
      : Effect.logInfo("there is room again: events are routed")
  })

  return {
    /** Says that something was taken to be routed. */
    routed: (bodyBytes: number, deliveries: number): void => {
      left -= (bodyBytes + envelope) * deliveries
    },
    /** Whether events may be routed; where not, it takes a moment to say so. */
    hasRoom: Effect.gen(function* () {
      if (left > 0) return true
      left = yield* Effect.orElseSucceed(look, () => withoutBound)
      yield* tell(left <= 0)
      if (left > 0) return true
      yield* Effect.sleep(retryPauseMs)
      return false
    })
  }
})
