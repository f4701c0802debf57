import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { readThrough } from "../../src/broker/bulk-read.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { exportTraces, readTracePosition } from "../../src/operations/traces/export-traces.ts"
import { getRemotely, remoteStatus } from "../../src/projection/remote-log.ts"
import { spanCollector } from "../kit/collector.ts"
import { caughtUp, directory, lookedUp, optionsOf, projecting, store } from "../kit/delivery-log.ts"
import { eventually } from "../kit/engine.ts"
import { powerCut } from "../kit/power-cut.ts"
import { randomFacts } from "../kit/random-facts.ts"
import { outage } from "../kit/scenario.ts"
import { tcpProxy } from "../kit/tcp-proxy.ts"
import { foldedRows, saidBy } from "../projection/folded-rows.ts"

const [kept, lost, later] = [randomFacts(20, 100), randomFacts(21, 50), randomFacts(22, 200)]
const many = randomFacts(23, 6_000)

/** The history is another one, with other facts: nothing but what it has shows that. */
const replaceHistory = Effect.fnUntraced(function* (facts: ReadonlyArray<Fact>, atOnce = 1) {
  const { ask, jsm, names } = yield* natsClients
  const { config } = yield* ask("look", () => jsm.streams.info(names.history))
  yield* ask("remove", () => jsm.streams.delete(names.history))
  yield* ask("add", () => jsm.streams.add(config))
  yield* store(facts, atOnce)
})

describe.concurrent("a history that lost its end and has grown past it since", () => {
  outage("is another one for the log of deliveries", (place) =>
    Effect.gen(function* () {
      yield* store(lost)
      const { pause, resume } = yield* projecting(optionsOf(place, yield* directory))
      yield* caughtUp(remoteStatus)
      yield* pause
      yield* replaceHistory(later)
      yield* resume
      const expected = foldedRows(later)
      const shown = yield* eventually(
        Effect.orElseSucceed(lookedUp(getRemotely, [...lost, ...later]), () => []),
        (rows) => Object.keys(expected).every((key) => key in saidBy(rows))
      )
      assert.deepStrictEqual(saidBy(shown), expected)
    })
  )

  outage("is not read on by whoever had read the end that was lost", (place, server) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const proxy = yield* tcpProxy(server.port)
      const { broker } = optionsOf(place, "")
      const near = connectTo({ ...broker, url: `nats://127.0.0.1:${proxy.port}` })
      // More than is asked for at once.
      yield* store(many, 500)
      const range = { stream: names.history, subjects: [names.subjects.allFacts] }
      const cut = yield* Deferred.make<void>()
      const read: Array<number> = []
      const reading = readThrough({ ...range, from: 1, to: many.length }, ({ seq }) => {
        read.push(seq)
        if (seq !== 20) return
        Effect.runSync(proxy.cut)
        Deferred.doneUnsafe(cut, Effect.void)
      })
      const replaced = Effect.gen(function* () {
        yield* Deferred.await(cut)
        yield* replaceHistory(many, 500)
        yield* proxy.join
      })
      const both = [Effect.flip(Effect.provide(reading, near)), replaced] as const
      const [failure] = yield* Effect.all(both, { concurrency: 2 })
      assert.include(failure.message, "has lost the end of what was read")
      assert.isBelow(read.length, many.length)
    })
  )

  outage("is another one for the export of traces", (place, server, log) =>
    Effect.gen(function* () {
      const { names, streamInfo } = yield* Broker
      const proxy = yield* tcpProxy(server.port)
      const power = powerCut(server, [names.history])
      const collector = yield* spanCollector()
      const { broker } = optionsOf(place, "")
      const near = connectTo({ ...broker, url: `nats://127.0.0.1:${proxy.port}` })
      const isLevel = Effect.gen(function* () {
        const { state } = yield* streamInfo("look", names.history)
        return (yield* readTracePosition).position?.seq === state.last_seq
      })
      yield* store(kept)
      yield* power.remember
      yield* Effect.forkScoped(
        Effect.provide(
          Effect.andThen(
            exportTraces({
              name: "one",
              url: `${collector.url}/v1/traces`,
              headers: {},
              version: "1"
            }),
            Effect.never
          ),
          near
        )
      )
      yield* eventually(readTracePosition, ({ position }) => position !== undefined)
      yield* store(lost)
      yield* eventually(isLevel, (level) => level)
      yield* proxy.cut
      yield* power.cut
      yield* store(later)
      yield* proxy.join
      yield* eventually(isLevel, (level) => level)
      assert.strictEqual(log.count("this history is not the one"), 1)
    })
  )
})
