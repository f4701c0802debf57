import { Effect } from "effect"
import { Broker, type BrokerError } from "../broker/connection.ts"
import type { TopologyOptions } from "../broker/topology.ts"

const streamNotFound = 10059
const consumerNotFound = 10014

const ifThere = <A>(effect: Effect.Effect<A, BrokerError>, code: number) =>
  effect.pipe(
    Effect.catchIf(
      (error) => error.code === code,
      () => Effect.succeed(undefined)
    )
  )

const millis = (nanos: number): number => nanos / 1e6

/** How an installation was made, as far as it is there; nothing before the first `petrel init`. */
export const readInstalled = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const stream = (name: string) =>
    ifThere(
      ask(`look at stream ${name}`, () => jsm.streams.info(name)),
      streamNotFound
    )
  const router = ifThere(
    ask(`look at the consumer of ${names.events}`, () =>
      jsm.consumers.info(names.events, names.routerConsumer)
    ),
    consumerNotFound
  )
  const [events, history, dead] = yield* Effect.all(
    [stream(names.events), stream(names.history), stream(names.dead)],
    { concurrency: "unbounded" }
  )
  const partitions = yield* countPartitions
  const consumer = events === undefined ? undefined : yield* router
  const ackWait = consumer?.config.ack_wait
  return {
    ...(partitions === 0 ? {} : { partitions }),
    ...(events === undefined
      ? {}
      : {
          replicas: events.config.num_replicas,
          eventDedupe: millis(events.config.duplicate_window),
          eventAge: millis(events.config.max_age)
        }),
    ...(ackWait === undefined ? {} : { ackWait: millis(ackWait) }),
    ...(history === undefined
      ? {}
      : {
          historyAge: millis(history.config.max_age),
          moveDedupe: millis(history.config.duplicate_window)
        }),
    ...(dead === undefined
      ? {}
      : { deadAge: millis(dead.config.max_age), deadBytes: dead.config.max_bytes })
  } satisfies Partial<TopologyOptions>
})

const countPartitions = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const all = yield* ask("list the streams", async () => {
    const list: Array<string> = []
    for await (const name of jsm.streams.names()) list.push(name)
    return new Set(list)
  })
  let partitions = 0
  while (all.has(names.deliveries(partitions))) partitions++
  return partitions
})
