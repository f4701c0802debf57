import { it } from "@effect/vitest"
import { jetstream } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import type { Scope } from "effect"
import { Effect, Layer } from "effect"
import type { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import type { TopologyOptions } from "../../src/broker/topology.ts"
import { Facts } from "../../src/history/facts.ts"
import { testTopology, worker } from "./engine.ts"
import type { TestServer } from "./nats-server.ts"
import { quiet } from "./scenario.ts"
import { addressFor, startTenantServer } from "./tenant-accounts.ts"

/** Tenants that have an account each. */
export const tenants = ["acme", "globex"]
export const withTenants: TopologyOptions = {
  ...testTopology,
  tenants,
  tenantBytes: 64 * 1024 * 1024
}

const tenantServer = (withhold?: string) =>
  Effect.acquireRelease(
    Effect.promise(() => startTenantServer(tenants, withhold)),
    (server) => Effect.promise(() => server.stop())
  )

const connectedAs = (server: TestServer, user: string) =>
  Layer.fresh(Facts.layer.pipe(Layer.provideMerge(connectTo({ url: addressFor(server, user) }))))

/** A worker with what nats.conf lets a user do. */
export const workerOn = Effect.fnUntraced(function* (
  server: TestServer,
  id = "w1",
  user = "worker"
) {
  const context = yield* Layer.build(connectedAs(server, user))
  return yield* Effect.provide(worker({ id }), context)
})

/** A publisher of a tenant, with what nats.conf lets it do. */
export const publisherOf = Effect.fnUntraced(function* (server: TestServer, tenant: string) {
  const connection = yield* Effect.acquireRelease(
    Effect.promise(() =>
      connect({
        servers: `nats://127.0.0.1:${server.port}`,
        user: tenant,
        pass: `${tenant}-1`,
        inboxPrefix: `_INBOX_${tenant}`
      })
    ),
    (connection) => Effect.promise(() => connection.close())
  )
  const js = jetstream(connection, { timeout: 2_000 })
  const publish = (subject: string, body: string, msgID?: string) =>
    Effect.tryPromise(() => js.publish(subject, body, msgID === undefined ? {} : { msgID }))
  return { connection, publish }
})

/** The number of messages in EVENTS. */
export const messagesInEvents = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  return (yield* ask("count", () => jsm.streams.info(names.events))).state.messages
})

/**
 * A story with the accounts of nats.conf, told by the operator. Logging is disabled.
 *
 * @param withhold lines of the accounts that contain this text are left out.
 */
export const story = <E>(
  name: string,
  tell: (server: TestServer) => Effect.Effect<unknown, E, Broker | Facts | Scope.Scope>,
  topology: TopologyOptions = withTenants,
  withhold?: string
) =>
  it.live(name, () =>
    Effect.gen(function* () {
      const server = yield* tenantServer(withhold)
      yield* Effect.andThen(init(topology), tell(server)).pipe(
        Effect.provide(connectedAs(server, "operator"))
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
