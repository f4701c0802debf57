import { Deferred, Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import type { TestServer } from "./nats-server.ts"

/** Kills the broker and starts it again. Waits until this process has reconnected. */
export const crashBroker = (server: TestServer) =>
  Effect.gen(function* () {
    const { onReconnect } = yield* Broker
    const back = yield* Deferred.make<void>()
    const forget = onReconnect(() => Deferred.doneUnsafe(back, Effect.void))
    yield* Effect.promise(server.kill9)
    yield* Effect.promise(server.restart)
    yield* Deferred.await(back)
    forget()
  })
