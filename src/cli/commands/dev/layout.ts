import { Effect } from "effect"
import { Broker } from "../../../broker/broker.ts"
import { ifFound, streamNotFound } from "../../../broker/broker-error.ts"
import { init } from "../../../broker/init.ts"
import { readInstalled } from "../../../broker/installed.ts"
import { boundAfterResize, sharesOf } from "../../../broker/storage-limits.ts"
import { defaultTopology } from "../../../broker/topology.ts"
import type { StoreSize } from "./store.ts"

/** Returns the bytes of a stream; 0 if it does not exist. */
const heldIn = Effect.fnUntraced(function* (stream: string) {
  const { streamInfo } = yield* Broker
  const info = yield* ifFound(streamInfo(`look at stream ${stream}`, stream), streamNotFound)
  return info?.state.bytes ?? 0
})

/**
 * Creates missing streams with sizes that fit the store. Keeps the sizes that `petrel init` was
 * given.
 */
export const initDevStore = Effect.fnUntraced(function* ({ former, store }: StoreSize) {
  const { names } = yield* Broker
  const installed = yield* readInstalled
  const next = sharesOf(store)
  const before = former === undefined ? undefined : sharesOf(former)
  const bound = Effect.fnUntraced(function* (field: "eventBytes" | "historyBytes", stream: string) {
    const there = { bound: installed[field], held: yield* heldIn(stream) }
    return boundAfterResize(there, next[field], before?.[field])
  })
  const eventBytes = yield* bound("eventBytes", names.events)
  const historyBytes = yield* bound("historyBytes", names.history)
  yield* init({
    ...defaultTopology,
    deadBytes: next.deadBytes,
    ...installed,
    eventBytes,
    historyBytes
  })
  return { eventBytes }
})
