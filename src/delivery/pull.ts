import type { Consumer, JsMsg } from "@nats-io/jetstream"
import { Effect, Option } from "effect"
import { nakFor } from "./held.ts"

/**
 * How long one request for messages stays open, ms. Short, so that a worker that stops leaves
 * none stranded: it waits for the open request to end instead of hanging up on the broker.
 */
const expires = 1_000
const longest = 2_500

/** Where messages come from and go to. */
export interface Pull {
  readonly name: string
  readonly consumer: Effect.Effect<Consumer, { readonly message: string }>
  /** Waits until something may be taken, and says how many messages; 0 to be asked again. */
  readonly room: Effect.Effect<number>
  /** Gets each message at once. Must not throw. */
  readonly take: (message: JsMsg) => void
  /** Called when a request has come to its end. */
  readonly asked?: () => void
  /** Once true, no more is asked for and the loop ends within a second. */
  readonly stopping: () => boolean
}

/**
 * Takes messages in batches no larger than there is room for, for as long as it is not stopped.
 * A broker that does not answer is asked again every second.
 */
export const pull = Effect.fnUntraced(function* (options: Pull) {
  let failing = false
  const once = Effect.gen(function* () {
    const consumer = yield* options.consumer
    while (!options.stopping()) {
      const room = yield* options.room
      if (room === 0) continue
      // Without a broker a request never ends by itself.
      const ended = yield* Effect.timeoutOption(fetch(consumer, room, options.take), longest)
      if (Option.isNone(ended)) continue
      options.asked?.()
      failing = false
    }
  })
  while (!options.stopping()) {
    yield* Effect.catch(once, (error) =>
      Effect.gen(function* () {
        if (!failing)
          yield* Effect.logWarning(`${options.name} gets no messages`, { why: error.message })
        failing = true
        yield* Effect.sleep("1 second")
      })
    )
  }
})

/**
 * What still comes when nobody waits for it any more goes back, until the request has ended: at
 * once it would come here again.
 */
const fetch = (consumer: Consumer, messages: number, take: (message: JsMsg) => void) =>
  Effect.tryPromise({
    try: async (signal) => {
      const batch = await consumer.fetch({ max_messages: messages, expires })
      for await (const message of batch) {
        if (signal.aborted) nakFor(message, expires)
        else take(message)
      }
    },
    catch: (cause) => ({ message: cause instanceof Error ? cause.message : String(cause) })
  })
