import { Effect, Fiber } from "effect"
import { publish } from "./engine.ts"

/**
 * Publishes one event of acme after the other until it is stopped, or the scope closes. Each has an id
 * of its own, which is its body too: an event whose acknowledgement got lost is published again.
 *
 * @param pauseMs between two events.
 */
export const steadyPublisher = Effect.fnUntraced(function* (type: string, pauseMs: number) {
  let published = 0
  let isOver = false
  const publisher = yield* Effect.forkScoped(
    Effect.gen(function* () {
      while (!isOver) {
        const id = `acme-${published + 1}`
        yield* publish(type, id, { "Nats-Msg-Id": id }).pipe(Effect.eventually)
        published++
        yield* Effect.sleep(pauseMs)
      }
    })
  )
  return {
    /** Number of events that the broker has acknowledged. */
    count: () => published,
    /** Publishes no more. Returns the number of events that it has published. */
    stop: Effect.suspend(() => {
      isOver = true
      return Effect.map(Fiber.join(publisher), () => published)
    })
  }
})
