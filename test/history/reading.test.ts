import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { readThrough } from "../../src/broker/bulk-read.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { publishMany } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const events = 5_000
/** How long the broker stands still, ms. */
const silentMs = 2_500

const readAll = (from: number, to: number, see: (seq: number) => void) =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const { allEvents } = names.subjects
    yield* readThrough({ stream: names.events, subjects: [allEvents], from, to }, ({ seq }) =>
      see(seq)
    )
  })

const count = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

describe("reading a part of a stream", () => {
  scenario("shows each message once and in order, however many removed ones lie between", () =>
    Effect.gen(function* () {
      yield* publishMany(events)
      const { ask, jsm, names } = yield* natsClients
      const seen: Array<number> = []
      yield* readAll(11, events - 10, (seq) => seen.push(seq))
      assert.deepStrictEqual(seen, count(11, events - 10))

      for (const seq of [3, 4_000, events - 1, events])
        yield* ask("remove", () => jsm.streams.deleteMessage(names.events, seq, false))
      const left: Array<number> = []
      yield* readAll(1, events, (seq) => left.push(seq))
      assert.deepStrictEqual(
        left,
        count(1, events - 2).filter((seq) => seq !== 3 && seq !== 4_000)
      )
      yield* readAll(events - 1, events, () => assert.fail("nothing is there"))
    })
  )

  scenario("goes on where it was after a broker that was silent for a while", (_, server) =>
    Effect.gen(function* () {
      yield* publishMany(events)
      const seen: Array<number> = []
      let isPaused = false
      yield* readAll(1, events, (seq) => {
        seen.push(seq)
        if (seq < 100 || isPaused) return
        isPaused = true
        server.pause()
        setTimeout(server.resume, silentMs)
      })
      assert.isTrue(isPaused)
      assert.deepStrictEqual(seen, count(1, events))
    })
  )
})
