import { Effect } from "effect"
import { everQueued, handOutEventsAgain } from "./consumers.ts"
import { eventually, worker } from "./engine.ts"

/** Lets a router that owns nothing have the event, and waits until the owner has seen what it stored. */
export const rival = Effect.gen(function* () {
  yield* worker({ id: "routes", roles: ["router"] })
  // The one that attempts it may be given it again, too, and knows it.
  yield* eventually(
    Effect.andThen(handOutEventsAgain, Effect.delay(everQueued, "500 millis")),
    (count) => count === 1
  )
})
