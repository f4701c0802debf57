import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { isClean, quiet } from "../kit/consistency.ts"
import { deliveryCount } from "../kit/consumers.ts"
import { endpoint, eventually, history, publish, worker } from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { rival } from "../kit/rival.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** A broker that loses the first acknowledgements of each delivery in its queues. */
const losingAcks = (times: number) =>
  alteredBroker(({ names, pull }) => ({
    pull: (options) =>
      pull({
        ...options,
        take: (message, header) => {
          const isLost =
            options.consumer === names.deliverConsumer && message.deliveryCount <= times
          options.take(isLost ? Object.assign(message, { ack: () => undefined }) : message, header)
        }
      })
  }))

/** More redeliveries than the owner's memory of what has ended lasts without them. */
const many = 10

const redelivered = eventually(deliveryCount, (count) => count > many)

describe.concurrent("a delivery whose acknowledgements are lost again and again", () => {
  for (const origin of ["its queue", "its event"] as const)
    for (const owner of ["its owner", "the next owner"] as const)
      scenario(
        `is not sent again by ${owner}, from ${origin}`,
        () =>
          Effect.gen(function* () {
            const hook = yield* gate
            yield* endpoint({ url: hook.url })
            const facts = yield* history
            const lossy = yield* losingAcks(owner === "its owner" ? many : Number.POSITIVE_INFINITY)
            if (origin === "its queue") yield* worker({ id: "routes", roles: ["router"] })
            const first = yield* worker({
              roles: origin === "its queue" ? ["deliver"] : ["router", "deliver"]
            }).pipe(Effect.provideService(Broker, lossy))
            yield* publish("invoice.paid")
            yield* hook.received(1)
            // Another router queues what is already attempted.
            if (origin === "its event") yield* rival
            yield* hook.open
            yield* facts.count("delivered", 1)
            yield* redelivered
            if (owner === "the next owner") {
              yield* first.stop
              yield* worker({ id: "second", roles: ["deliver"] })
            }
            yield* quiet
            assert.lengthOf(hook.requests, 1)
            assert.deepInclude(yield* isClean, { delivered: 1, repeated: 0 })
          }),
        { ackWait: 300 }
      )
})
