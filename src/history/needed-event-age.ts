import { Effect, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { scanQueue, seeStream } from "../broker/scan.ts"
import { originStreams, referencesIn } from "../domain/backlog-message.ts"
import { deliveryIn } from "../domain/delivery.ts"
import { neededMs } from "../policy/event-outlasts.ts"

/**
 * Returns how long events must be kept for what waits without its body in backlogs and queues, ms; 0
 * where nothing does. Reads all of them.
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
    yield* Stream.runForEach(scanQueue(names.deliveries(index), ">"), (message) =>
      Effect.sync(() => {
        const delivery = deliveryIn(message)
        if (delivery?.leftBytes !== undefined) needed = Math.max(needed, neededMs(delivery))
      })
    )
  }
  return needed
})
