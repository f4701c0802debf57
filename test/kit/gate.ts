import { Effect } from "effect"
import { latency, receiver } from "./receiver.ts"

/**
 * A receiver that holds all requests until it is opened, and then answers every request at once.
 * Counts its concurrent requests.
 */
export const gate = Effect.gen(function* () {
  let open = false
  let waiting: Array<() => void> = []
  const now = { count: 0, most: 0 }
  const hook = yield* receiver({
    answer: async () => {
      now.count++
      now.most = Math.max(now.most, now.count)
      if (!open) await new Promise<void>((resolve) => waiting.push(resolve))
      else await latency(2)
      now.count--
      return { status: 200 }
    }
  })
  return {
    ...hook,
    now,
    open: Effect.sync(() => {
      open = true
      for (const resolve of waiting) resolve()
      waiting = []
    })
  }
})
