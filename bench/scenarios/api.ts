import { Effect, Schema } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { watch } from "../machine.ts"
import {
  cpuOf,
  memoryOf,
  runPetrelCommand,
  startApiLoad,
  startConsole,
  startPublisher
} from "../processes.ts"
import { addEndpoints, startBroker } from "../rig.ts"
import type { Row, Scenario } from "../scenario.ts"

const bytes = 1024

const cases = [
  { of: "in batches of 100, 8 connections", batch: 100, connections: 8, share: 1 },
  { of: "one by one, 64 connections", batch: 1, connections: 64, share: 0.2 }
] as const

const Made = Schema.fromJsonString(Schema.Struct({ token: Schema.String }))
const rate = { unit: "/s", digits: 0, panel: "events a second" }

const manyEndpoints = 100_000
const restingCase = "at rest with 100,000 endpoints, scraped once a second"
const scrapes = 10

/** Another console with many endpoints, of which nobody asks anything but its numbers. */
const atRest = Effect.fnUntraced(function* (
  broker: { readonly url: string },
  row: (row: Row) => void
) {
  const many = addEndpoints(manyEndpoints, (number) => ({
    ...{ id: `e${number}`, url: `https://example.com/${number}`, types: [`type${number}`] }
  }))
  yield* Effect.provide(many, connectTo(broker))
  const { address, pid } = yield* startConsole(broker.url)
  const scrape = Effect.promise(() => fetch(`${address}/metrics`).then((answer) => answer.text()))
  yield* Effect.repeat(Effect.andThen(scrape, Effect.sleep("1 second")), { times: scrapes })
  row({ of: restingCase, round: 1, figures: { memory: memoryOf(pid) } })
})

/** Events that are published over HTTP, to no endpoint. */
export const api: Scenario = {
  name: "api",
  measures: "Events per second that one console takes over HTTP and the broker stores.",
  limit: "The limit is a program that publishes the same events to the broker.",
  sides: { petrel: "HTTP", limit: "NATS" },
  onlyNamed: true,
  figures: {
    petrel: { title: "over HTTP", ...rate },
    limit: { title: "over NATS", ...rate, side: "limit" },
    ratio: { title: "ratio", unit: "", digits: 3 },
    cpu: { title: "console CPU of an event", unit: "µs", digits: 0 },
    memory: { title: "console memory", unit: "MiB", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 2 : 5 }, row) {
    const all = quick ? 20_000 : 200_000
    const broker = yield* startBroker()
    const console = yield* startConsole(broker.url)
    const made = yield* runPetrelCommand([
      ...["token", "create", "--operator", "--rate", "1000000", "--json"],
      ...["--nats", broker.url]
    ])
    const { token } = Schema.decodeUnknownSync(Made)(made.printed)
    const load = yield* startApiLoad(console.address, token)
    const publisher = yield* startPublisher(broker.url)
    for (const { batch, connections, of, share } of cases)
      for (let round = 0; round <= rounds; round++) {
        const count = all * share
        const watchedLimit = watch({ publisher: [publisher.pid], broker: [broker.pid] })
        const limit = yield* Effect.promise(() =>
          publisher.publish({ subject: "events.bench.direct", subjects: 1, count, bytes })
        )
        const limitUse = watchedLimit().use
        const before = cpuOf(console.pid)
        const watchedPetrel = watch({
          console: [console.pid],
          broker: [broker.pid],
          client: [load.pid]
        })
        const petrel = yield* Effect.promise(() =>
          load.publish({ count, batch, connections, bytes })
        )
        const { use } = watchedPetrel()
        // The first round warms up.
        if (round === 0) continue
        row({
          of,
          round,
          figures: {
            petrel: (count * 1_000) / petrel.ms,
            limit: (count * 1_000) / limit.ms,
            ratio: limit.ms / petrel.ms,
            cpu: (cpuOf(console.pid) - before) / count,
            memory: memoryOf(console.pid)
          },
          machine: { petrel: use, limit: limitUse }
        })
      }
    yield* atRest(broker, row)
    return {
      settings: { events: all, bytes, rounds, endpoints: manyEndpoints },
      aims: [
        { of: restingCase, figure: "memory", atMost: 300 },
        { of: cases[0].of, figure: "petrel", atLeast: 10_000 },
        { of: cases[1].of, figure: "petrel", atLeast: 3_000 }
      ]
    }
  })
}
