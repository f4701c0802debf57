/* The clients of the NATS libraries. Private to this room, and to tests. */
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream"
import type { KV } from "@nats-io/kv"
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import { Broker } from "./broker.ts"
import type { BrokerError } from "./broker-error.ts"
import { ask } from "./broker-error.ts"
import type { Publisher } from "./publisher.ts"
import type { Wire } from "./wire.ts"

/** A connection to NATS, and the clients made from it. */
export interface Clients {
  readonly connection: NatsConnection
  readonly wire: Wire
  readonly js: JetStreamClient
  readonly jsm: JetStreamManager
  readonly publisher: Publisher
  readonly bucket: (name: string) => Effect.Effect<KV, BrokerError>
}

const clientsOf = new WeakMap<Broker["Service"], Clients>()

/** Notes the clients that a broker was made from. */
export const registerClients = (broker: Broker["Service"], clients: Clients): void => {
  clientsOf.set(broker, clients)
}

/** The clients of the broker at hand, for what only an operator does: streams are made, changed. */
export const natsClients = Effect.flatMap(Broker, (broker) => {
  const clients = clientsOf.get(broker)
  return clients === undefined
    ? Effect.die(new Error("this needs a NATS server, which the broker is not"))
    : Effect.succeed({ ...broker, ...clients, ask })
})
