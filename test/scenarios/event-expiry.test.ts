import { assert, describe } from "@effect/vitest"
import { nanos } from "@nats-io/transport-node"
import { Effect, Schedule } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { clockOf } from "../../src/broker/kept-since.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import { endpoint, history, publish, publishMany, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { delivered } from "./delivered.ts"

const { scenario } = onServer()

const ageMs = 1_000
const short = { eventAge: ageMs, eventDedupe: 500 }

const look = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  return yield* streamInfo("look", names.events)
})

/** Waits until all events are older than they are kept, three times over. */
const allOld = look.pipe(
  Effect.repeat({
    until: (info) => clockOf(info) - Date.parse(info.state.last_ts) > 3 * ageMs,
    schedule: Schedule.spaced(100)
  })
)

const found = Effect.map(audit({}), ({ judgement }) => ({
  verdict: judgement.verdict,
  problems: judgement.problems.list.map(({ kind, says }) => `${kind}: ${says}`)
}))
const nothing = { verdict: "clean" as const, problems: [] }

describe("the age of events", () => {
  scenario(
    "removes none that no router has taken",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        yield* publishMany(100)
        assert.strictEqual((yield* allOld).state.messages, 100)
        const facts = yield* history
        yield* worker()
        yield* facts.count("delivered", 100)
        yield* look.pipe(Effect.repeat({ until: ({ state }) => state.messages === 0 }))
        assert.deepStrictEqual(yield* found, nothing)
      }),
    short
  )

  scenario(
    "removes those that were routed, while others wait",
    () =>
      Effect.gen(function* () {
        yield* Effect.scoped(delivered(20))
        yield* publishMany(5, "invoice.next")
        const facts = yield* history
        yield* allOld
        yield* worker()
        yield* facts.count("delivered", 5)
        yield* look.pipe(Effect.repeat({ until: ({ state }) => state.first_seq === 26 }))
        yield* publish("invoice.last")
        yield* facts.count("delivered", 6)
        assert.deepStrictEqual(yield* found, nothing)
      }),
    short
  )
})

describe("an audit of events that left the stream before they were routed", () => {
  const lost = /^event-lost: events 4 to 6 were stored after \S+Z and before \S+Z, and left/

  scenario("names them, while no router works and after one has gone on", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      yield* delivered(3)
      yield* publishMany(3, "invoice.lost")
      // An age that somebody gives the stream with another tool.
      const { config } = yield* look
      const limit = (max_age: number, duplicate_window: number) =>
        ask("limit", () => jsm.streams.update(names.events, { max_age, duplicate_window }))
      yield* limit(nanos(100), nanos(100))
      yield* look.pipe(Effect.repeat({ until: ({ state }) => state.messages === 0 }))
      yield* limit(0, config.duplicate_window)
      const early = yield* found
      assert.strictEqual(early.verdict, "problems")
      assert.match(
        early.problems.join("\n"),
        /^event-lost: events 4 to 6 were stored after [^\n]*$/m
      )
      const status = yield* readStatus
      assert.strictEqual(status.events.lost, 3)
      assert.include(status.problems.map(({ code }) => code).join(), "events-lost")
      const facts = yield* history
      yield* worker()
      yield* publish("invoice.after")
      yield* facts.count("delivered", 1)
      // The first event of the range that facts are about may be stored still.
      yield* ask("purge", () => jsm.streams.purge(names.events, { seq: 8 }))
      const late = yield* found
      assert.strictEqual(late.verdict, "problems")
      assert.match(late.problems.join("\n"), new RegExp(lost.source, "m"))
    })
  )
})
