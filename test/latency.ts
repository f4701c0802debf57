import { Effect } from "effect"
import { publish } from "./engine.ts"
import type { Receiver } from "./receiver.ts"

/**
 * Publishes so many events of a type, one after the other, and waits until they have come.
 *
 * @returns the time each took from before it was published until its body was there, ms, the longest last.
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

/** The value that so many of all are below. */
export const quantile = (sorted: ReadonlyArray<number>, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN
