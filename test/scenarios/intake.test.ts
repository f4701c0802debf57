import { assert, describe } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { init } from "../../src/broker/init.ts"
import { readLayout } from "../../src/broker/installed.ts"
import type { IncomingEvent } from "../../src/domain/intake.ts"
import { audit } from "../../src/history/audit/audit.ts"
import {
  discardQuarantined,
  type Note,
  type Quarantined,
  quarantine,
  releaseQuarantined
} from "../../src/intake/quarantine.ts"
import { storeIncoming } from "../../src/intake/store-incoming.ts"
import { trimIntake } from "../../src/intake/trim-intake.ts"
import { run } from "../cli/in-process.ts"
import { endpoint, eventually, history, publishTo, testTopology, worker } from "../kit/engine.ts"
import { powerCut } from "../kit/power-cut.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, outage } from "../kit/scenario.ts"

const { scenario } = onServer()

const incoming = (changes: Partial<IncomingEvent> = {}): IncomingEvent => ({
  tenant: "acme",
  source: "stripe",
  id: "evt_1",
  type: "invoice.paid",
  body: Buffer.from("{}"),
  contentType: "application/json",
  ...changes
})

/** Why something is in quarantine. */
const unreadable: Note = {
  ...{ source: "stripe", provider: "stripe", reason: "unreadable", problem: "no" },
  ...{ contentType: "text/plain", headers: {}, method: "POST", url: "http://x/" }
}

const stateOf = (stream: "events" | "intake") =>
  Effect.gen(function* () {
    const { ask, jsm, names } = yield* natsClients
    return (yield* ask("count", () => jsm.streams.info(names[stream]))).state
  })

const problems = Effect.map(audit({}), ({ judgement }) =>
  judgement.problems.list.map(({ kind }) => kind)
)

describe.concurrent("an event that comes in", () => {
  scenario("is stored once, however many bring it at once, and delivered once", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      yield* worker()
      const results = yield* Effect.forEach(
        Array.from({ length: 50 }),
        () => storeIncoming(incoming()),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(results.filter(({ as }) => as === "stored").length, 1)
      assert.strictEqual(results.filter(({ as }) => as === "repeated").length, 49)
      assert.deepStrictEqual([...new Set(results.map(({ seq }) => seq))], [1])
      yield* storeIncoming(incoming({ source: "outbox" }))
      yield* facts.count("delivered", 2)
      assert.strictEqual((yield* storeIncoming(incoming())).as, "repeated")
      assert.strictEqual((yield* stateOf("events")).messages, 2)
      assert.deepStrictEqual(
        facts.of("delivered").map(({ event, type }) => [event, type]),
        [
          ["acme.stripe.evt_1", "stripe.invoice.paid"],
          ["acme.outbox.evt_1", "invoice.paid"]
        ]
      )
      assert.deepStrictEqual(
        hook.requests.map(({ headers }) => headers["webhook-id"]),
        ["acme.stripe.evt_1", "acme.outbox.evt_1"]
      )
      assert.deepStrictEqual(yield* problems, [])
    })
  )

  scenario("of the same id with other bytes is told apart, and not stored", () =>
    Effect.gen(function* () {
      yield* storeIncoming(incoming())
      const other = yield* storeIncoming(incoming({ body: Buffer.from("[]"), type: "other" }))
      assert.deepInclude(other, { seq: 1, as: "collided" })
      assert.deepStrictEqual(Buffer.from(other.before ?? []).toString(), incoming().body.toString())
      assert.strictEqual((yield* stateOf("intake")).messages, 1)
      for (const changes of [{ tenant: "globex" }, { source: "github" }, { id: "evt_1.2" }])
        assert.strictEqual((yield* storeIncoming(incoming(changes))).as, "stored")
    })
  )

  scenario("arrives where a publisher has used its id first", () =>
    Effect.gen(function* () {
      for (const id of ["evt_1", "acme.evt_1", "acme.stripe.evt_1"])
        yield* publishTo("acme.other", "mine", { "Nats-Msg-Id": id, "petrel-event-id": id })
      yield* storeIncoming(incoming())
      const { messages } = yield* eventually(stateOf("events"), ({ messages }) => messages > 3)
      assert.strictEqual(messages, 4)
    })
  )

  scenario(
    "says what is wrong where it cannot be stored",
    () =>
      Effect.gen(function* () {
        const reasonOf = (event: IncomingEvent) =>
          Effect.map(Effect.flip(storeIncoming(event)), ({ reason }) => reason)
        assert.strictEqual(yield* reasonOf(incoming({ tenant: "a.b" })), "invalid")
        const large = Buffer.alloc(1_000_000)
        assert.strictEqual(yield* reasonOf(incoming({ body: large })), "too-large")
        assert.strictEqual(
          yield* reasonOf(incoming({ body: Buffer.alloc(2_000_000) })),
          "too-large"
        )
        const half = Buffer.alloc(500_000)
        yield* Effect.forEach(["1", "2"], (id) => storeIncoming(incoming({ id, body: half })), {
          discard: true
        })
        assert.strictEqual(yield* reasonOf(incoming({ id: "3", body: half })), "full")
        assert.strictEqual((yield* storeIncoming(incoming({ id: "2", body: half }))).as, "repeated")
      }),
    { intakeBytes: 1_300_000 }
  )

  scenario(
    "makes room for later ones once it is an event, and leaves the quarantine as it is",
    () =>
      Effect.gen(function* () {
        const body = Buffer.alloc(100_000)
        const aside = yield* quarantine("acme", unreadable, Buffer.from("1"))
        const store = (from: number, to: number) =>
          Effect.forEach(
            Array.from({ length: to - from + 1 }, (_, n) => `${from + n}`),
            (id) => storeIncoming(incoming({ id, body })),
            { discard: true }
          )
        yield* store(1, 8)
        assert.isUndefined(yield* trimIntake)
        yield* store(9, 11)
        yield* eventually(stateOf("events"), ({ messages }) => messages === 11)
        const seq = yield* eventually(trimIntake, (seq) => seq !== undefined)
        assert.strictEqual(seq, 5)
        const { first_seq, messages } = yield* stateOf("intake")
        assert.deepStrictEqual([first_seq, messages], [aside.seq, 9])
        yield* store(12, 13)
        // What left is stored again.
        assert.strictEqual((yield* storeIncoming(incoming({ id: "1", body }))).as, "stored")
        assert.strictEqual((yield* storeIncoming(incoming({ id: "5", body }))).as, "repeated")
        // What is in quarantine is older than any event by now, and by ever more.
        for (let id = 14; id <= 40; id++) {
          yield* eventually(
            Effect.all([stateOf("events"), trimIntake]),
            ([{ messages }, trimmed]) => messages === id && trimmed === undefined
          )
          yield* store(id, id)
        }
      }),
    { intakeBytes: 1_250_000 }
  )

  scenario(
    "makes room at once also if the oldest are small and the newest large",
    () =>
      Effect.gen(function* () {
        const store = (from: number, to: number, bytes: number) =>
          Effect.forEach(
            Array.from({ length: to - from + 1 }, (_, n) => `${from + n}`),
            (id) => storeIncoming(incoming({ id, body: Buffer.alloc(bytes) })),
            { discard: true }
          )
        yield* store(1, 200, 2)
        yield* store(201, 211, 100_000)
        yield* eventually(stateOf("events"), ({ messages }) => messages === 211)
        // The copy is known to INTAKE a moment later.
        yield* eventually(trimIntake, (seq) => seq !== undefined)
        yield* store(212, 213, 100_000)
        assert.strictEqual((yield* storeIncoming(incoming({ id: "213" }))).as, "collided")
      }),
    { intakeBytes: 1_250_000 }
  )

  scenario("gets an id of its own if its own is another event's once it is released", () =>
    Effect.gen(function* () {
      const { seq } = yield* quarantine("acme", unreadable, Buffer.from("late"))
      yield* storeIncoming(incoming())
      const contentType = "text/plain"
      const read = ({ body }: Quarantined) => [
        { id: "evt_1", type: "invoice.paid", body, contentType },
        { id: "evt_2", type: "invoice.paid", body, contentType }
      ]
      const { events } = yield* releaseQuarantined("acme", seq, { read }, "ana")
      assert.match(events[0]?.id ?? "", /^evt_1~[0-9a-f]{12}$/)
      assert.strictEqual(events[1]?.id, "evt_2")
      assert.strictEqual((yield* stateOf("intake")).messages, 3)
      // To the provider both bodies are one event.
      const again = yield* quarantine("acme", unreadable, Buffer.from("later"))
      const isRepeat = () => true
      const repeated = yield* releaseQuarantined("acme", again.seq, { read, isRepeat }, "ana")
      assert.deepStrictEqual(
        repeated.events.map(({ id }) => id),
        ["evt_1", "evt_2"]
      )
      assert.strictEqual((yield* stateOf("intake")).messages, 3)
    })
  )

  scenario(
    "is taken by an installation from before there was an intake, once init was run again",
    (place) =>
      Effect.gen(function* () {
        const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
        for (const command of [
          ["source", "list"],
          ["source", "add", "acme/stripe", "--provider", "stripe", "--secret", "whsec_one"],
          ["ingest", "--listen", "127.0.0.1:0", "--check"],
          ["quarantine", "list", "acme"],
          ["quarantine", "show", "acme", "1"],
          ["quarantine", "release", "acme", "1"],
          ["quarantine", "discard", "acme", "1"]
        ]) {
          const { code, err } = yield* run(...command, ...flags)
          assert.strictEqual(code, 1)
          assert.match(err.join("\n"), /run `petrel init`/)
        }
        assert.strictEqual((yield* run("endpoint", "list", ...flags)).code, 0)
        yield* publishTo("acme.other", "before")
        assert.isFalse((yield* readLayout).isSourced)
        assert.strictEqual((yield* Effect.flip(storeIncoming(incoming()))).reason, "no-intake")
        const changes = yield* init(testTopology)
        const { names } = yield* natsClients
        assert.deepStrictEqual(
          changes
            .filter(({ change }) => change !== "unchanged")
            .map(({ change, what }) => `${change} ${what}`),
          [
            `created stream ${names.intake}`,
            `created stream ${names.origins}`,
            `updated stream ${names.events}`,
            `created stream KV_${names.buckets.sources}`
          ]
        )
        assert.isTrue((yield* readLayout).isSourced)
        yield* storeIncoming(incoming())
        yield* publishTo("acme.other", "after")
        yield* eventually(stateOf("events"), ({ messages }) => messages === 3)
        const again = yield* init(testTopology)
        assert.isTrue(again.every(({ change }) => change === "unchanged"))
      }),
    { intake: false }
  )
})

describe.concurrent("the audit of what came in", () => {
  const come = (ids: ReadonlyArray<string>) =>
    Effect.forEach(ids, (id) => storeIncoming(incoming({ id })), { discard: true })
  const remove = (stream: "events" | "intake", seq: number) =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      yield* ask("remove", () => jsm.streams.deleteMessage(names[stream], seq))
    })
  const found = Effect.map(audit({}), ({ judgement }) =>
    judgement.problems.list
      .filter(({ kind }) => kind.includes("intake"))
      .map(({ kind, streamSeq }) => [kind, streamSeq])
  )
  const delivered = Effect.gen(function* () {
    const hook = yield* receiver()
    yield* endpoint({ url: hook.url })
    const facts = yield* history
    yield* worker()
    yield* come(["1", "2", "3", "4", "5"])
    yield* facts.count("delivered", 5)
  })

  scenario("finds what is no event, and says nothing of what is", () =>
    Effect.gen(function* () {
      yield* delivered
      assert.deepStrictEqual(yield* found, [])
      assert.deepStrictEqual(yield* problems, [])
      yield* remove("events", 3)
      assert.deepStrictEqual(yield* found, [["intake-lost", 3]])
    })
  )

  scenario("finds what somebody removed, and not what left the quarantine", () =>
    Effect.gen(function* () {
      yield* delivered
      const aside = yield* quarantine("acme", unreadable, Buffer.from("1"))
      const other = yield* quarantine("acme", unreadable, Buffer.from("2"))
      yield* discardQuarantined("acme", aside.seq, "ana")
      yield* come(["6"])
      yield* eventually(stateOf("events"), ({ messages }) => messages === 6)
      assert.deepStrictEqual(yield* found, [])
      yield* remove("intake", other.seq)
      yield* remove("intake", 2)
      assert.sameDeepMembers(
        [...(yield* found)],
        [
          ["event-without-intake", 2],
          ["intake-gap", other.seq]
        ]
      )
    })
  )
})

describe("a broker that has lost the end of what came in", () => {
  outage("copies what comes then, though it gives the same sequences again", (_, server) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const power = powerCut(server, [names.intake])
      yield* worker()
      const come = (id: string) =>
        Effect.retry(storeIncoming(incoming({ id })), Schedule.spaced("50 millis"))
      yield* come("1")
      yield* hook.received(1)
      yield* power.remember
      yield* come("2")
      yield* come("3")
      yield* hook.received(3)
      yield* power.cut
      assert.strictEqual((yield* come("4")).seq, 2)
      yield* come("5")
      yield* come("6")
      const ids = yield* eventually(
        Effect.sync(() => new Set(hook.requests.map(({ headers }) => headers["webhook-id"]))),
        (all) => all.size === 6
      )
      assert.sameMembers(
        [...ids],
        ["1", "2", "3", "4", "5", "6"].map((id) => `acme.stripe.${id}`)
      )
    })
  )
})

describe("a broker that is killed", () => {
  outage("copies what came in once, and goes on", (_, server) =>
    Effect.gen(function* () {
      const store = (from: number) =>
        Effect.forEach(
          Array.from({ length: 200 }, (_, n) => `${from + n}`),
          (id) => Effect.retry(storeIncoming(incoming({ id })), { times: 50 }),
          { concurrency: 50, discard: true }
        )
      for (let round = 0; round < 3; round++) {
        yield* store(round * 100)
        yield* Effect.promise(() => server.kill9())
        yield* Effect.promise(() => server.restart())
      }
      yield* store(300)
      assert.strictEqual((yield* stateOf("intake")).messages, 500)
      yield* eventually(stateOf("events"), ({ messages }) => messages >= 500)
      assert.strictEqual((yield* stateOf("events")).messages, 500)
    })
  )
})
