import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { init } from "../../src/broker/init.ts"
import { readStream } from "../../src/broker/scan.ts"
import { nobody } from "../../src/domain/token.ts"
import { examine } from "../../src/history/audit/audit.ts"
import { openReading } from "../../src/history/audit/audit-reading.ts"
import { readReach } from "../../src/history/audit/reach.ts"
import type { Raised } from "../../src/history/audit/watch.ts"
import { watch } from "../../src/history/audit/watch.ts"
import { makeConditions } from "../kit/conditions.ts"
import {
  acknowledgeEvents,
  endpoint,
  eventAt,
  history,
  nth,
  publishMany,
  testTopology,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { delivered } from "./delivered.ts"
import { later } from "./later.ts"

const { scenario } = onServer()

/** Goes on auditing, a look after the other. */
const watching = Effect.gen(function* () {
  const raised: Array<Raised> = []
  const failures: Array<string> = []
  const verdicts: Array<string> = []
  const losses: Array<string | undefined> = []
  const conditions = makeConditions()
  yield* watch({}, 20, {
    raised: (each) => Effect.sync(() => void raised.push(each)),
    failed: (why) => Effect.sync(() => void failures.push(why)),
    looked: ({ lost, verdict }) =>
      Effect.sync(() => {
        losses.push(lost)
        verdicts.push(verdict)
        conditions.changed()
      })
  }).pipe(Effect.forkScoped)
  return {
    raised,
    failures,
    verdicts,
    losses,
    /** Waits for looks that begin after this was called. */
    looks: (count: number) =>
      Effect.suspend(() => {
        const wanted = verdicts.length + count + 1
        return conditions.until(() => verdicts.length >= wanted)
      })
  }
})

/** Makes the history anew of these of its facts (from 0), as if the broker had lost all others. */
const keepFacts = Effect.fnUntraced(function* (wanted: ReadonlyArray<number>) {
  const { ask, jsm, names, publisher } = yield* natsClients
  const stream = readStream({ stream: names.history, subjects: [names.subjects.allFacts] })
  const all = yield* Stream.runCollect(stream)
  const { config } = yield* ask("look", () => jsm.streams.info(names.history))
  yield* ask("remove", () => jsm.streams.delete(names.history))
  yield* ask("make", () => jsm.streams.add(config))
  for (const index of wanted) {
    const { data, subject } = nth(all, index)
    yield* publisher.publish(subject, data, [])
  }
})

describe.concurrent("a watch", () => {
  scenario("raises nothing while events keep coming and all goes well", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const told = yield* history
      yield* endpoint({ url: hook.url })
      yield* worker()
      const watch = yield* watching
      yield* watch.looks(1)
      for (let wave = 1; wave <= 5; wave++) yield* publishMany(100, `wave-${wave}`)
      yield* told.count("delivered", 500)
      yield* watch.looks(2)
      assert.deepStrictEqual(watch.raised, [])
      assert.strictEqual(watch.verdicts.at(-1), "clean")
    })
  )

  scenario("does not call missing what waits for a router, however long", () =>
    Effect.gen(function* () {
      yield* delivered(3)
      yield* publishMany(2, "invoice.late")
      const watch = yield* later(16 * 60_000, watching)
      yield* watch.looks(2)
      assert.strictEqual(watch.verdicts.at(-1), "problems", "it does say that they wait")
      assert.deepStrictEqual(watch.raised, [])
      yield* acknowledgeEvents(2)
      yield* watch.looks(2)
      assert.lengthOf(watch.raised, 2)
    })
  )

  scenario("begins anew where the broker lost the end of the history, and says so", () =>
    Effect.gen(function* () {
      yield* delivered(5)
      const watch = yield* watching
      yield* watch.looks(1)
      assert.strictEqual(watch.verdicts.at(-1), "clean")
      yield* keepFacts([0, 1, 2, 3])
      yield* watch.looks(2)
      assert.isTrue(watch.failures.some((why) => why.includes("lost the end of the history")))
      // No audit that begins now can name it.
      assert.isUndefined(watch.losses[0])
      assert.include(watch.losses.at(-1) ?? "", "lost the end of the history")
      assert.strictEqual(watch.verdicts.at(-1), "problems")
      // One of the five is not told of any more: as far as the streams say nobody planned its event.
      assert.isTrue(watch.raised.some(({ endpoint }) => endpoint === nobody))
    })
  )

  scenario("sees that sequences of the history were given again", () =>
    Effect.gen(function* () {
      yield* delivered(5)
      const reach = yield* readReach({})
      const reading = yield* openReading(reach)
      yield* examine(reading, reach)
      yield* examine(reading, reach)
      yield* keepFacts([0, 1, 2, 3, 4, 3, 4])
      const lost = yield* Effect.flip(examine(reading, reach))
      assert.strictEqual(lost._tag, "EndLost")
    })
  )

  scenario("sees that sequences of the event stream were given again", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      yield* publishMany(5)
      const reach = yield* readReach({})
      const reading = yield* openReading(reach)
      yield* examine(reading, reach)
      for (const [count, from] of [
        [2, 3],
        [7, 5]
      ] as const) {
        // As a broker that lost the end: what init makes again gives no sequence twice.
        const { config } = yield* ask("look", () => jsm.streams.info(names.events))
        yield* ask("remove", () => jsm.streams.delete(names.events))
        yield* ask("make", () => jsm.streams.add(config))
        yield* init(testTopology)
        yield* publishMany(count, `others-${count}`)
        const lost = yield* Effect.flip(examine(reading, yield* readReach({})))
        assert(lost._tag === "EndLost")
        assert.deepInclude(lost.problem, { kind: "event-gap", eventSeq: from })
      }
    })
  )

  scenario("raises what is new, however much there is that it does not raise", () =>
    Effect.gen(function* () {
      const { names, publisher } = yield* natsClients
      yield* publishMany(3)
      yield* acknowledgeEvents(3)
      const plan = (eventSeq: number, eventAt: number) => ({
        ...{ v: 1, kind: "routed", at: Date.now(), tenant: "acme", endpoint: "_" },
        ...{ eventSeq, eventAt },
        plan: { part: 0, last: true, endpoints: [{ id: "hook" }], skipped: [] }
      })
      const subject = names.subjects.fact("acme", "_", "ok", "routed")
      const tell = (fact: object) => publisher.publish(subject, JSON.stringify(fact), [])
      yield* Effect.forEach(Array.from({ length: 10_500 }), () => tell({ kind: "routed" }), {
        concurrency: 500,
        discard: true
      })
      yield* tell(plan(2, yield* eventAt(2)))
      const watch = yield* watching
      yield* watch.looks(1)
      const kinds = watch.raised.map(({ eventSeq, reason }) => `${eventSeq} ${reason}`).sort()
      assert.lengthOf(kinds, 3)
      assert.match(kinds[0] ?? "", /^1 .* no plan for it/)
      assert.match(kinds[1] ?? "", /^2 .* waits nowhere/)
    })
  )
})
