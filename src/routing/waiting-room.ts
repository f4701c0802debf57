import { Effect } from "effect"
import { Broker } from "../broker/connection.ts"
import { resumeBelowShare, waitingBytes } from "../broker/room.ts"

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
/** Pause between checks while there is no space, ms. */
const retryPauseMs = 250

/**
 * Holds routing back while deliveries that wait for endpoints fill the space that the event
 * stream's limit leaves for them. An event that is not routed takes no additional space. A routed
 * event may be copied for each endpoint, and queues and backlogs have no limits of their own. If
 * they fill the store, the history accepts no facts, and without facts no delivery leaves them.
 *
 * The streams are checked again only when as many bytes were routed as there may be space for, so
 * an event costs no request.
 */
export const makeWaitingRoom = Effect.fnUntraced(function* (partitions: number) {
  const { ask, jsm, names } = yield* Broker
  let left = 0
  /** True while routing is held back and the log says so. */
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
    /** Counts deliveries as routed. */
    routed: (bodyBytes: number, deliveries: number): void => {
      left -= (bodyBytes + envelope) * deliveries
    },
    /**
     * Returns true where events may be routed; else waits for {@link retryPauseMs} and returns
     * false.
     */
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
