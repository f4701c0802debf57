import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients, registerClients } from "../../src/broker/clients.ts"

/** The broker at hand with some of its operations replaced. The clients stay the same. */
export const alteredBroker = (
  alter: (broker: Broker["Service"]) => Partial<Broker["Service"]>
): Effect.Effect<Broker["Service"], never, Broker> =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const { bucket, connection, js, jsm, publisher, wire } = yield* natsClients
    const altered = Broker.of({ ...broker, ...alter(broker) })
    registerClients(altered, { bucket, connection, js, jsm, publisher, wire })
    return altered
  })
