import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { seeStream } from "../broker/scan.ts"
import { originStreams, referencesIn } from "../domain/backlog-message.ts"
import { neededMs } from "../policy/event-outlasts.ts"

/**
 * Returns how long events must be kept for what waits in backlogs without a body, ms; 0 where nothing
 * does. Reads all backlogs.
 */
export const readNeededEventAge = Effect.fnUntraced(function* (partitions: number) {
  const { names } = yield* Broker
  let needed = 0
  for (let index = 0; index < partitions; index++) {
    const streams = originStreams(names, index)
    yield* seeStream(
      { stream: names.backlog(index), subjects: [">"], headersOnly: true },
      ({ headers, subject }) => {
        const get = (name: string) => headers?.get(name) || undefined
        for (const reference of referencesIn(subject, get, streams) ?? [])
          needed = Math.max(needed, neededMs(reference))
        return false
      }
    )
  }
  return needed
})
