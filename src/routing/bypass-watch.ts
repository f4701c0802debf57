import { Deferred, Effect, Fiber, Option } from "effect"
import { Broker } from "../broker/broker.ts"
import { keepGoing } from "../broker/keep-going.ts"
import type { Bypass, EventOnWay, Way } from "../policy/bypass.ts"
import { knownForMs, wayOf } from "../policy/bypass.ts"
import { elapsedMs } from "../time/elapsed.ts"
import { readBypass, readBypassFloor } from "./bypass-store.ts"

/** How often it is read which bypass there is, ms. */
const readEveryMs = 1_000
const retryPauseMs = 250

/** Which events pass a flood, as this worker knows it. */
export interface BypassWatch {
  /**
   * Returns the bypass; undefined where there is none. Only to be relied on while `isKnown()`.
   */
  readonly bypass: () => Bypass | undefined
  /** True while a router may rely on it. */
  readonly isKnown: () => boolean
  readonly wayOf: (event: EventOnWay) => Way
  /** True for an event of the bypass that is routed, which it may not know of. */
  readonly isRouted: (seq: number) => boolean
  /**
   * Calls the listener where a bypass is gone that had not ended, as after the loss of its bucket,
   * until the returned function is called.
   */
  readonly onLost: (listener: () => void) => () => void
}

/** Follows which events pass a flood, until the scope closes. Reads it once before it is ready. */
export const watchBypass = Effect.gen(function* () {
  const { onReconnect } = yield* Broker
  const listeners = new Set<() => void>()
  let bypass: Bypass | undefined
  let floor: number | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let epoch = 0
  let reconnected = Deferred.makeUnsafe<void>()
  // A broker that was restarted may have lost the end of a stream, and give its sequences again.
  const stop = onReconnect(() => {
    epoch++
    floor = undefined
    readAt = Number.NEGATIVE_INFINITY
    Deferred.doneUnsafe(reconnected, Effect.void)
    reconnected = Deferred.makeUnsafe()
  })
  yield* Effect.addFinalizer(() => Effect.sync(stop))

  const read = Effect.gen(function* () {
    const begunIn = epoch
    const began = elapsedMs()
    const stored = yield* readBypass
    const { from } = stored.bypass ?? {}
    const routedTo =
      stored.bypass === undefined || from === undefined
        ? undefined
        : yield* readBypassFloor(stored.bypass)
    if (epoch !== begunIn || began < readAt) return
    const isLost =
      bypass?.from !== undefined && bypass.until === undefined && stored.bypass?.from === undefined
    bypass = stored.bypass
    floor = routedTo
    readAt = began
    if (isLost) for (const listener of listeners) listener()
  })
  yield* Effect.ignore(read)
  const scope = yield* Effect.scope
  // A slow broker answers several at a time: what is read one after the other would be out of date.
  const readOrLeave = Effect.gen(function* () {
    const reading = yield* Effect.forkIn(Effect.exit(read), scope, { startImmediately: true })
    const exit = yield* Effect.timeoutOption(Fiber.join(reading), readEveryMs)
    if (Option.isSome(exit)) yield* exit.value
  })
  // Routing waits for this, so it is read as soon as there is a connection again.
  const readNext = Effect.suspend(() => {
    const pauseMs = readAt === Number.NEGATIVE_INFINITY ? 0 : readEveryMs
    const next = Effect.andThen(Effect.sleep(pauseMs), readOrLeave)
    return Effect.raceFirst(next, Deferred.await(reconnected))
  })
  yield* Effect.forkScoped(keepGoing("read which events pass a flood", readNext, retryPauseMs))
  const watch: BypassWatch = {
    bypass: () => bypass,
    isKnown: () => elapsedMs() - readAt < knownForMs,
    wayOf: (event) => wayOf(bypass, event),
    isRouted: (seq) => floor !== undefined && seq <= floor,
    onLost: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    }
  }
  return watch
})
