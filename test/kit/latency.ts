import { Effect } from "effect"
import { publish } from "./engine.ts"
import type { Receiver } from "./receiver.ts"

/**
 * Publishes `count` events of a type, one after the other, and waits until all have arrived.
 *
 * @returns the time of each from before its publish until its body arrived, ms, ascending.
 */
export const latencies = Effect.fnUntraced(function* (hook: Receiver, type: string, count: number) {
  const before = hook.requests.length
  for (let n = 0; n < count; n++) yield* publish(type, `${Date.now()}`)
  yield* hook.received(before + count)
  return hook.requests
    .slice(before)
    .map(({ at, body }) => at - Number(body.toString()))
    .sort((a, b) => a - b)
})

/** Returns a quantile of sorted values. */
export const quantile = (sorted: ReadonlyArray<number>, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN
