import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/connection.ts"
import { isClean } from "../books.ts"
import { handOutEventsAgain } from "../consumers.ts"
import { endpoint, eventually, history, publishMany, worker } from "../engine.ts"
import { receiver } from "../receiver.ts"
import { onServer } from "../scenario.ts"

const { scenario } = onServer()

const count = 20

/** Waits until the router's consumer has handed out so many, and all of them are finished. */
const routedAgain = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  yield* eventually(
    ask("look at the router", () => jsm.consumers.info(names.events, names.routerConsumer)),
    ({ ack_floor }) => ack_floor.stream_seq === count
  )
})

// As after the loss of a consumer's leader, which had not told the others what it had handed out.
describe.concurrent("events that are handed out again as if for the first time", () => {
  for (const workers of [1, 2])
    scenario(`are not attempted again by ${workers === 1 ? "their worker" : "either worker"}`, () =>
      Effect.gen(function* () {
        const { received, requests, url } = yield* receiver()
        for (const id of ["hook", "other"]) yield* endpoint({ id, url, types: [`${id}.>`] })
        const facts = yield* history
        for (let n = 1; n <= workers; n++) yield* worker({ id: `w${n}` })
        yield* publishMany(count / 2, "hook.a")
        yield* publishMany(count / 2, "other.a")
        yield* received(count)
        yield* facts.count("delivered", count)
        yield* routedAgain
        yield* handOutEventsAgain
        yield* routedAgain
        assert.lengthOf(requests, count)
        assert.deepInclude(yield* isClean, { delivered: count, repeated: 0 })
      })
    )
})
