import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { crashBroker } from "../kit/broker-crash.ts"
import { isClean, quiet } from "../kit/consistency.ts"
import { handOutEventsAgain } from "../kit/consumers.ts"
import { backlogged, endpoint, eventually, history, publishMany, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, outage } from "../kit/scenario.ts"

const { scenario } = onServer()

const hook = { tenant: "acme", endpoint: "hook" }
const count = 20

/** Waits until the router's consumer has handed out so many, and all of them are finished. */
const routedAgain = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  yield* eventually(
    ask("look at the router", () => jsm.consumers.info(names.events, names.routerConsumer)),
    ({ ack_floor }) => ack_floor.stream_seq === count
  )
})

// As after the loss of a consumer's leader, which had not told the others what it had handed out.
describe.concurrent("events that are redelivered as if for the first time", () => {
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

  outage(
    "do not wait for their endpoint where they have ended",
    (_, server) =>
      Effect.gen(function* () {
        const { received, requests, url } = yield* receiver()
        yield* endpoint({ url })
        const facts = yield* history
        yield* worker()
        yield* publishMany(count)
        yield* received(count)
        yield* facts.count("delivered", count)
        yield* routedAgain
        const published = Date.now()
        yield* crashBroker(server)
        // An event is redelivered no sooner than this.
        yield* eventually(
          Effect.sync(() => Date.now()),
          (now) => now - published > 1_500
        )
        yield* pauseEndpoint(hook, undefined, "test")
        yield* handOutEventsAgain
        yield* routedAgain
        assert.strictEqual(yield* backlogged, 0)
        yield* resumeEndpoint(hook, "test")
        yield* quiet
        assert.lengthOf(requests, count)
        assert.deepInclude(yield* isClean, { delivered: count, repeated: 0 })
      }),
    // The broker has forgotten what it stored, and the worker has not.
    { ackWait: 20_000, moveDedupe: 200 }
  )
})
