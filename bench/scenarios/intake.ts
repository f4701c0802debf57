import { Effect } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { addSource } from "../../src/operations/sources/manage-sources.ts"
import { watch } from "../machine.ts"
import { cpuOf, memoryOf, startGateway, startPublisher, startWebhooks } from "../processes.ts"
import { startBroker } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

const bytes = 1024
const secret = "bench-secret"

const cases = {
  full: "as fast as it can, 64 connections",
  half: "half of that, arriving evenly",
  over: "5 times that, arriving evenly, 400 connections; beside them 20/s of another process"
} as const

const rate = { unit: "/s", digits: 0 }
const ms = { unit: "ms", digits: 1 }

/** Webhooks of one source that one gateway takes, and what it does with more than it can take. */
export const intake: Scenario = {
  name: "intake",
  measures: "Webhooks per second that one gateway verifies and stores, and what it does with more.",
  limit: "The limit is a program that publishes the same bytes to the broker.",
  sides: { petrel: "webhooks", limit: "NATS" },
  onlyNamed: true,
  figures: {
    petrel: { title: "taken", ...rate, panel: "webhooks a second" },
    limit: { title: "over NATS", ...rate, panel: "webhooks a second", side: "limit" },
    ratio: { title: "ratio", unit: "", digits: 3 },
    goodput: { title: "share of what it can take", unit: "", digits: 2 },
    p50: { title: "p50", ...ms },
    p99: { title: "p99", ...ms },
    refused: { title: "refused", ...rate },
    refusedP99: { title: "p99 of refusals", ...ms },
    besideRefused: { title: "refused beside", unit: "", digits: 0 },
    besideP99: { title: "p99 of refusals beside", ...ms },
    unsent: { title: "not sent for lack of a connection", ...rate },
    cpu: { title: "gateway CPU of a webhook", unit: "µs", digits: 0 },
    memory: { title: "gateway memory", unit: "MiB", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 1 : 5 }, row) {
    const count = quick ? 10_000 : 60_000
    const seconds = quick ? 4 : 15
    const broker = yield* startBroker()
    const source = { provider: "github", secrets: [secret] }
    yield* Effect.provide(
      addSource({ tenant: "bench", id: "hub" }, source, "bench"),
      connectTo(broker)
    )
    const gateway = yield* startGateway(broker.url)
    const load = yield* startWebhooks(`${gateway.address}/in/bench/hub`, secret)
    // The storm's own thread has so much to do that it sees answers late.
    const beside = yield* startWebhooks(`${gateway.address}/in/bench/hub`, secret)
    const publisher = yield* startPublisher(broker.url)
    for (let round = 0; round <= rounds; round++) {
      const watching = { gateway: [gateway.pid], broker: [broker.pid], client: [load.pid] }
      const limit = yield* Effect.promise(() =>
        publisher.publish({ subject: "events.bench.direct", subjects: 1, count, bytes })
      )
      const before = cpuOf(gateway.pid)
      const watchedFull = watch(watching)
      const full = yield* Effect.promise(() =>
        load.send({ count, connections: 64, bytes, prefix: `full-${round}` })
      )
      const cpu = (cpuOf(gateway.pid) - before) / count
      const fullUse = watchedFull().use
      const capacity = (full.taken * 1_000) / full.ms
      const half = yield* Effect.promise(() =>
        load.send({
          ...{ perSecond: capacity / 2, seconds, connections: 400, bytes },
          prefix: `half-${round}`
        })
      )
      const watchedOver = watch(watching)
      const [over, light] = yield* Effect.promise(() =>
        Promise.all([
          load.send({
            ...{ perSecond: 5 * capacity, seconds, connections: 400, bytes },
            prefix: `over-${round}`
          }),
          beside.send({
            ...{ perSecond: 20, seconds, connections: 20, bytes },
            prefix: `beside-${round}`
          })
        ])
      )
      const overUse = watchedOver().use
      if (full.other + half.other + over.other + light.other > 0)
        return yield* Effect.die("a webhook was answered with neither 2xx nor 503")
      // The first round warms up.
      if (round === 0) continue
      row({
        of: cases.full,
        round,
        figures: {
          petrel: capacity,
          limit: (count * 1_000) / limit.ms,
          ratio: limit.ms / full.ms,
          p50: full.takenMs.p50,
          p99: full.takenMs.p99,
          cpu,
          memory: memoryOf(gateway.pid)
        },
        machine: { petrel: fullUse }
      })
      row({
        of: cases.half,
        round,
        figures: {
          petrel: (half.taken * 1_000) / half.ms,
          refused: (half.refused * 1_000) / half.ms,
          p50: half.takenMs.p50,
          p99: half.takenMs.p99
        }
      })
      row({
        of: cases.over,
        round,
        figures: {
          petrel: (over.taken * 1_000) / over.ms,
          goodput: (over.taken * 1_000) / over.ms / capacity,
          p50: over.takenMs.p50,
          p99: over.takenMs.p99,
          refused: (over.refused * 1_000) / over.ms,
          refusedP99: over.refusedMs.p99,
          besideRefused: light.refused,
          besideP99: light.refusedMs.p99,
          unsent: (over.unsent * 1_000) / over.ms,
          memory: memoryOf(gateway.pid)
        },
        machine: { petrel: overUse }
      })
    }
    return {
      settings: { webhooks: count, bytes, rounds, seconds },
      aims: [
        { of: cases.full, figure: "petrel", atLeast: 3_000 },
        { of: cases.half, figure: "p99", atMost: 100 },
        { of: cases.over, figure: "goodput", atLeast: 0.8 },
        { of: cases.over, figure: "besideP99", atMost: 50 },
        { of: cases.over, figure: "memory", atMost: 256 }
      ]
    }
  })
}
