import { Effect } from "effect"
import { everQueued, handOutEventsAgain } from "./consumers.ts"
import { eventually, worker } from "./engine.ts"

/** Lets a router without partitions route the event, and waits until it has queued the delivery. */
export const rival = Effect.gen(function* () {
  yield* worker({ id: "routes", roles: ["router"] })
  // The worker that attempts the event may receive it again, too, and recognizes it.
  yield* eventually(
    Effect.andThen(handOutEventsAgain, Effect.delay(everQueued, "500 millis")),
    (count) => count === 1
  )
})
