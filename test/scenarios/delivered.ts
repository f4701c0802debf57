import { Effect } from "effect"
import { endpoint, history, publishMany, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"

/** So many events were delivered, by a worker that has left since; one or two facts for each. */
export const delivered = Effect.fnUntraced(function* (count: number) {
  const hook = yield* receiver()
  const told = yield* history
  yield* endpoint({ url: hook.url })
  yield* Effect.scoped(
    Effect.gen(function* () {
      yield* worker()
      yield* publishMany(count)
      yield* told.count("delivered", count)
    })
  )
})
