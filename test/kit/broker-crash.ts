import { Deferred, Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import type { TestServer } from "./nats-server.ts"

export interface CrashOptions {
  /** How long the broker is down, ms. (Default: 0) */
  readonly downFor?: number
  /** Called while the broker is down. (Default: nothing) */
  readonly meanwhile?: () => void
}

/** Kills a broker, starts it again, and waits until the connection is re-established. */
export const crashBroker = Effect.fnUntraced(function* (
  server: TestServer,
  { downFor = 0, meanwhile }: CrashOptions = {}
) {
  const { onReconnect } = yield* Broker
  const back = yield* Deferred.make<void>()
  const forget = onReconnect(() => Deferred.doneUnsafe(back, Effect.void))
  yield* Effect.promise(server.kill9)
  meanwhile?.()
  yield* Effect.sleep(downFor)
  yield* Effect.promise(server.restart)
  yield* Deferred.await(back)
  forget()
})
