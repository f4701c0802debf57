import { Effect } from "effect"
import { Broker } from "../src/broker/connection.ts"
import { watch } from "./machine.ts"
import type { Limit, Publisher, Receiver, Worker } from "./processes.ts"
import { startLimit, startPublisher, startWorker } from "./processes.ts"
import { addEndpoints, type EndpointChoice, startBroker } from "./rig.ts"

/** All processes of a measurement. */
export interface Ground {
  readonly receiver: Receiver
  /** One for each worker, to be fair. */
  readonly limits: ReadonlyArray<Limit>
  readonly broker: { readonly pid: number; readonly url: string }
  readonly workers: ReadonlyArray<Worker>
  readonly publisher: Publisher
}

/** What a worker may have in flight by default, whatever its endpoints may. */
export const workerRoom = 1_024
/** What an endpoint may have in flight by default. */
export const endpointCap = 10

/** One worker with so many endpoints on a broker of its own, a publisher, and a limit. */
export const prepare = Effect.fnUntraced(function* (
  receiver: Receiver,
  endpoints: number,
  choose: (number: number) => EndpointChoice
) {
  const limit = yield* startLimit(receiver)
  const broker = yield* startBroker()
  yield* Effect.provide(addEndpoints(endpoints, choose), Broker.layer(broker))
  const worker = yield* startWorker(broker.url)
  const publisher = yield* startPublisher(broker.url)
  const ground: Ground = { receiver, limits: [limit], broker, workers: [worker], publisher }
  return ground
})

/** Watches Petrel's processes, and those that it is tried with. */
export const watchPetrel = ({ broker, publisher, receiver, workers }: Ground) =>
  watch({
    worker: workers.map(({ pid }) => pid),
    broker: [broker.pid],
    receiver: [receiver.pid],
    publisher: [publisher.pid]
  })

/** Watches the limit's processes. */
export const watchLimit = ({ limits, receiver }: Ground) =>
  watch({ limit: limits.map(({ pid }) => pid), receiver: [receiver.pid] })
