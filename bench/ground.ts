import { Effect } from "effect"
import type { Broker } from "../src/broker/broker.ts"
import { connectTo } from "../src/broker/connection.ts"
import { watch } from "./machine.ts"
import type { Limit, Publisher, Receiver, Worker } from "./processes.ts"
import { cpuOf, startLimit, startPublisher, startWorker } from "./processes.ts"
import { addEndpoints, startBroker } from "./rig.ts"

/** All processes of a measurement. */
export interface Ground {
  readonly receiver: Receiver
  /** One for each worker, for a fair comparison. */
  readonly limits: ReadonlyArray<Limit>
  readonly broker: { readonly pid: number; readonly url: string }
  readonly workers: ReadonlyArray<Worker>
  readonly publisher: Publisher
}

/** The default in-flight limit of a worker, for all its endpoints. */
export const workerRoom = 1_024
/** The default in-flight limit of an endpoint. */
export const endpointCap = 10

/** Starts a broker with what `store` stores there, one worker, a publisher and a limit. */
export const prepare = Effect.fnUntraced(function* <E>(
  receiver: Receiver,
  store: Effect.Effect<unknown, E, Broker>
) {
  const limit = yield* startLimit(receiver)
  const broker = yield* startBroker()
  yield* Effect.provide(store, connectTo(broker))
  const worker = yield* startWorker(broker.url)
  const publisher = yield* startPublisher(broker.url)
  return { receiver, limits: [limit], broker, worker, workers: [worker], publisher }
})

/**
 * Adds endpoints that each subscribe to an event type of their own. {@link typeSubjects} covers all
 * of them.
 */
export const addTyped = (count: number, urlOf: (number: number) => string) =>
  addEndpoints(count, (number) => ({
    ...{ id: `e${number}`, url: urlOf(number), types: [`type${number}`] }
  }))

/** The subject pattern for these endpoints in turn. */
export const typeSubjects = "events.bench.type*"

/**
 * A process that uses less than this share of a core is idle. A worker may use a tenth of its time
 * for sweeping deadlines.
 */
const atRest = 0.15
/** How long the process must be idle, ms. */
const restFor = 1_000
/** Maximum wait for an idle process, ms. */
const restWithin = 120_000

/** Waits until a process is idle. Returns the time it took, ms. */
export const untilIdle = (pid: number) =>
  Effect.promise(async () => {
    const begun = performance.now()
    for (;;) {
      const before = { cpu: cpuOf(pid), at: performance.now() }
      await new Promise((resolve) => setTimeout(resolve, restFor))
      const share = (cpuOf(pid) - before.cpu) / 1000 / (performance.now() - before.at)
      if (share < atRest || before.at - begun > restWithin) return before.at - begun
    }
  })

/** Measures Petrel's processes, and those that generate its load. */
export const watchPetrel = ({ broker, publisher, receiver, workers }: Ground) =>
  watch({
    worker: workers.map(({ pid }) => pid),
    broker: [broker.pid],
    receiver: [receiver.pid],
    publisher: [publisher.pid]
  })

/** Measures the limit's processes. */
export const watchLimit = ({ limits, receiver }: Ground) =>
  watch({ limit: limits.map(({ pid }) => pid), receiver: [receiver.pid] })
