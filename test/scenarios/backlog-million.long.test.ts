import { assert, describe } from "@effect/vitest"
import { headers as makeHeaders } from "@nats-io/transport-node"
import { Effect } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import type { DeliveryReference } from "../../src/domain/backlog-message.ts"
import { labelHeaders, originStreams, referencesHeader } from "../../src/domain/backlog-message.ts"
import { untried } from "../../src/domain/delivery.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { pauseEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { countBacklogs } from "../../src/history/backlog-count.ts"
import { storedWatermark } from "../kit/consistency.ts"
import { backlogged, endpoint, eventually, publishMany, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 300_000 })

const { scenario } = onServer()

const hook = { tenant: "acme", endpoint: "hook" }

/** References of one window to events from a sequence on, each 1 ms after the one before. */
const references = (
  from: number,
  count: number,
  eventAt: number,
  windowMs: number
): ReadonlyArray<DeliveryReference> =>
  Array.from({ length: count }, (_, n) => ({
    ...{ tenant: "acme", endpoint: "hook", eventSeq: from + n, eventAt: eventAt + n, round: "0" },
    ...{ began: eventAt + n, deadline: eventAt + n + windowMs, generation: "g", revision: 1 },
    ...{ progress: untried, bytes: 300 }
  }))

describe("a million deliveries of ten minutes and of three days that wait for a paused endpoint", () => {
  scenario("are taken over in less than two seconds, and take no memory", () =>
    Effect.gen(function* () {
      const { ask, js, jsm, names } = yield* natsClients
      const { url } = yield* receiver()
      yield* endpoint({ url, generation: "g" })
      yield* pauseEndpoint(hook, undefined, "test")
      const partition = partitionOf("acme", "hook", 2)
      const subject = names.subjects.backlog(partition, "acme", "hook")
      const streams = originStreams(names, partition)
      const total = 1_000_000
      const perMessage = 250
      const windows = [10 * 60_000, 72 * 3_600_000]
      const now = Date.now()
      yield* Effect.forEach(
        Array.from({ length: total / perMessage }, (_, n) => n),
        (n) => {
          const list = makeHeaders()
          const window = windows[n % 2] ?? 0
          const packed = referencesHeader(
            references(1 + n * perMessage, perMessage, now, window),
            streams
          )
          const label = labelHeaders({ stored: (n + 1) * perMessage, owner: 1, replaces: [] })
          for (const [name, value] of [packed, ...label]) list.set(name, value)
          return ask("store", () => js.publish(subject, "", { headers: list }))
        },
        { concurrency: 64, discard: true }
      )
      const { last_seq: before } = yield* ask("look", () => jsm.streams.info(names.history)).pipe(
        Effect.map(({ state }) => state)
      )
      // Its owner of then is past it: the next one reads what came into backlogs since.
      const former = yield* worker({ id: "former" })
      yield* publishMany(1, "later")
      yield* eventually(storedWatermark(partition), (floor) => floor > before)
      yield* former.stop
      globalThis.gc?.()
      const used = process.memoryUsage().heapUsed
      const begun = performance.now()
      const owner = yield* worker({ id: "owner" })
      const takenMs = performance.now() - begun
      // A search for deadlines reads all of it.
      yield* publishMany(1, "latest")
      yield* eventually(backlogged, (count) => count >= total + 2)
      globalThis.gc?.()
      const grown = process.memoryUsage().heapUsed - used
      assert.isBelow(takenMs, 2_000)
      assert.isBelow(grown, 64 * total)
      assert.strictEqual((yield* countBacklogs(partition)).get("acme.hook"), total + 2)
      yield* owner.stop
    })
  )
})
