import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { audit, examine } from "../../src/history/audit/audit.ts"
import { openReading } from "../../src/history/audit/audit-reading.ts"
import { judge } from "../../src/history/audit/judgement.ts"
import { readReach } from "../../src/history/audit/reach.ts"
import { run } from "../cli/in-process.ts"
import {
  endpoint,
  erasableHistory,
  history,
  publishMany,
  quickRetry,
  worker,
  workersApart
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { onServer } from "../kit/scenario.ts"
import { delivered } from "./delivered.ts"
import { later } from "./later.ts"

const { scenario } = onServer()

const minutes = 60_000

const found = Effect.map(audit({}), ({ judgement }) => ({
  unreached: judgement.events.unreached,
  verdict: judgement.verdict,
  problems: judgement.problems.list.map(
    ({ eventSeq, kind, says }) => `${kind} ${eventSeq}: ${says}`
  )
}))

describe("an audit of what the router has not come to", () => {
  scenario("lets it wait for a quarter of an hour, and then calls each event overdue", () =>
    Effect.gen(function* () {
      yield* delivered(3)
      yield* publishMany(2, "invoice.late")
      assert.deepStrictEqual(yield* later(14 * minutes, found), {
        verdict: "clean",
        unreached: 2,
        problems: []
      })
      const says = "it has been stored for long, and the router has not come to it"
      assert.deepStrictEqual(yield* later(16 * minutes, found), {
        verdict: "problems",
        unreached: 2,
        problems: [`overdue 4: ${says}`, `overdue 5: ${says}`]
      })
    })
  )
})

describe("an audit while a request lasts", () => {
  scenario(
    "gives the event as much longer as an attempt at its endpoint may take, and no more",
    () =>
      Effect.gen(function* () {
        const [patient, usual] = [yield* gate, yield* gate]
        yield* endpoint({ id: "patient", url: patient.url, timeout: "20 minutes", types: ["long"] })
        yield* endpoint({ id: "usual", url: usual.url, types: ["short"] })
        const facts = yield* history
        yield* worker()
        yield* publishMany(1, "long")
        yield* patient.received(1)
        yield* publishMany(1, "short")
        yield* usual.received(1)
        // Told by itself, since the requests last.
        yield* facts.planned(2)
        const overdue = (eventSeq: number) =>
          `overdue ${eventSeq}: its event has been stored for long, and the router has not finished it`
        assert.deepStrictEqual((yield* later(14 * minutes, found)).problems, [])
        assert.deepStrictEqual((yield* later(34 * minutes, found)).problems, [overdue(2)])
        assert.deepStrictEqual((yield* later(36 * minutes, found)).problems, [
          overdue(1),
          overdue(2)
        ])
        yield* patient.open
        yield* usual.open
        yield* facts.count("delivered", 2)
      })
  )

  scenario("gives what waits past its deadline as much longer", () =>
    Effect.gen(function* () {
      const hook = yield* gate
      const retry = quickRetry({ window: "1 minute" })
      yield* endpoint({ id: "patient", url: hook.url, timeout: "20 minutes", retry })
      const facts = yield* history
      // Through the queue, where it stays until the request ends.
      yield* workersApart()
      yield* publishMany(1)
      yield* hook.received(1)
      assert.deepStrictEqual((yield* later(35 * minutes, found)).problems, [])
      const [problem = ""] = (yield* later(37 * minutes, found)).problems
      assert.match(problem, /^overdue 1: it waits as message 1 of .*, though its time was over/)
      yield* hook.open
      yield* facts.count("delivered", 1)
    })
  )
})

describe("an audit of events that expire", () => {
  scenario(
    "says nothing of those that are removed while it looks where the stream begins",
    () =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const broker = yield* Broker
        yield* delivered(30)
        const expireTo = (seq: number) =>
          ask("expire", () => jsm.streams.purge(names.events, { seq }))
        yield* expireTo(10)
        const streamInfo: typeof broker.streamInfo = (operation, stream, options) =>
          Effect.tap(broker.streamInfo(operation, stream, options), () =>
            stream === names.events ? Effect.orDie(expireTo(20)) : Effect.void
          )
        const { judgement } = yield* Effect.provideService(audit({}), Broker, {
          ...broker,
          streamInfo
        })
        assert.deepStrictEqual(judgement.problems.list, [])
        assert.strictEqual(judgement.verdict, "clean")
      }),
    { eventAge: 5 * minutes }
  )
})

describe("an audit of a history that expires", () => {
  // Whatever is purged may have expired: within this age clocks may differ.
  const shortLived = { historyAge: 5 * minutes }

  scenario(
    "says nothing of events whose plans expired before they could be read",
    () =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* erasableHistory
        yield* delivered(300)
        const reach = yield* readReach({})
        const reading = yield* openReading(reach)
        yield* ask("expire", () => jsm.streams.purge(names.history, { seq: 450 }))
        const judgement = yield* judge(reading, yield* examine(reading, reach))
        assert.deepStrictEqual(judgement.problems.list, [])
        // No event is left that the facts reach back to.
        assert.strictEqual(judgement.verdict, "unvouched")
      }),
    shortLived
  )

  scenario(
    "vouches for nothing where it reaches back to none of those that are stored",
    (place) =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* erasableHistory
        yield* delivered(3)
        const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
        const said = Effect.map(run("audit", ...flags), ({ code, err, out }) => ({
          ...{ code, err },
          out: out.join(" ")
        }))
        const before = yield* said
        assert.include(before.out, "Clean: every delivery has ended once")
        assert.strictEqual(before.code, 0)
        yield* ask("expire", () => jsm.streams.purge(names.history, { seq: 4 }))
        const after = yield* said
        assert.include(after.out, "No stored event can be audited")
        assert.include(after.out, "Unvouched: nothing is wrong in the facts that are left")
        assert.notInclude(after.out, "Clean")
        assert.match(
          after.err.join(),
          /^petrel: nothing can be vouched for: the history does not reach back/
        )
        assert.strictEqual(after.code, 1)
      }),
    shortLived
  )

  scenario(
    "does not vouch for what was asked for and is not told any more, nor call it lost",
    () =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const begin = Date.now()
        yield* erasableHistory
        yield* delivered(3)
        yield* ask("expire", () => jsm.streams.purge(names.history, { seq: 4 }))
        const { judgement } = yield* audit({ since: begin })
        assert.deepStrictEqual(judgement.problems.list, [])
        assert.strictEqual(judgement.verdict, "unvouched")
      }),
    shortLived
  )
})
