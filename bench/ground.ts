import { Effect } from "effect"
import { Broker } from "../src/broker/connection.ts"
import { watch } from "./machine.ts"
import type { Limit, Publisher, Receiver, Worker } from "./processes.ts"
import { cpuOf, startLimit, startPublisher, startWorker } from "./processes.ts"
import { addEndpoints, startBroker } from "./rig.ts"

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

/** A broker of its own with what `store` puts there, one worker, a publisher and a limit. */
export const prepare = Effect.fnUntraced(function* <E>(
  receiver: Receiver,
  store: Effect.Effect<unknown, E, Broker>
) {
  const limit = yield* startLimit(receiver)
  const broker = yield* startBroker()
  yield* Effect.provide(store, Broker.layer(broker))
  const worker = yield* startWorker(broker.url)
  const publisher = yield* startPublisher(broker.url)
  return { receiver, limits: [limit], broker, worker, workers: [worker], publisher }
})

/** Endpoints of which each gets events of a type of its own, {@link typeSubjects} in turn. */
export const addTyped = (count: number, urlOf: (number: number) => string) =>
  addEndpoints(count, (number) => ({
    ...{ id: `e${number}`, url: urlOf(number), types: [`type${number}`] }
  }))

/** What a publisher publishes to for them, one after the other. */
export const typeSubjects = "events.bench.type*"

/** Below so much of a core, a process is idle; a worker may look for deadlines for a tenth of its time. */
const atRest = 0.15
/** It must be so for as long, ms. */
const restFor = 1_000
/** And is waited for at most so long, ms. */
const restWithin = 120_000

/** Waits until a process has come to rest, and says after how many ms. */
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
