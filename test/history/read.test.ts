import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Stream } from "effect"
import { afterAll, beforeAll } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { type Fact, factResult } from "../../src/domain/fact.ts"
import { Facts } from "../../src/history/facts.ts"
import { type FactQuery, readFacts, readNewestFacts } from "../../src/history/read.ts"
import { eventually, installation } from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import { startServer, type TestServer } from "../kit/nats-server.ts"

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

let appended = 0
const append = (changes: Partial<Fact>) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const fact: Fact = {
      v: 1,
      kind: "delivered",
      at: yield* Clock.currentTimeMillis,
      tenant: "acme",
      endpoint: "billing",
      ...changes
    }
    return (yield* facts.append(fact, `f${appended++}`)).seq
  })

const sequences = <E, R>(facts: Stream.Stream<{ readonly seq: number }, E, R>) =>
  Effect.map(Stream.runCollect(facts), (all) => all.map(({ seq }) => seq))

describe("reading the history", () => {
  it.live("gives every fact with its sequence, in the order they were stored", () =>
    installation(server).run(
      Effect.gen(function* () {
        yield* append({ kind: "routed", endpoint: "_", event: "a" })
        yield* append({ event: "a", status: 204 })
        const all = yield* Stream.runCollect(readFacts({}))
        assert.deepStrictEqual(
          all.map(({ fact, seq }) => [seq, fact.kind, fact.status]),
          [
            [1, "routed", undefined],
            [2, "delivered", 204]
          ]
        )
      })
    )
  )

  it.live("ends at once when there is nothing", () =>
    installation(server).run(
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* sequences(readFacts({})), [])
      })
    )
  )

  it.live("narrows to a tenant, an endpoint, kinds, an event, or all of them", () =>
    installation(server).run(
      Effect.gen(function* () {
        const routed = yield* append({ kind: "routed", endpoint: "_", event: "a", eventSeq: 7 })
        const failed = yield* append({ kind: "attempt-failed", event: "a", eventSeq: 7 })
        const done = yield* append({ event: "a", eventSeq: 7 })
        const crm = yield* append({ endpoint: "crm", event: "b", eventSeq: 8 })
        const other = yield* append({ tenant: "globex", event: "evt_9", eventSeq: 9 })
        const expect = (query: FactQuery, ...seqs: ReadonlyArray<number>) =>
          Effect.map(sequences(readFacts(query)), (found) =>
            assert.deepStrictEqual(found, seqs, JSON.stringify(query))
          )
        const billing = { tenant: "acme", id: "billing" }
        yield* expect({ tenant: "acme" }, routed, failed, done, crm)
        yield* expect({ endpoint: billing }, failed, done)
        yield* expect({ endpoint: billing, tenant: "globex" })
        yield* expect({ kinds: ["delivered"] }, done, crm, other)
        yield* expect({ kinds: ["routed", "attempt-failed"] }, routed, failed)
        yield* expect({ tenant: "globex", kinds: ["delivered"] }, other)
        yield* expect({ event: "a" }, routed, failed, done)
        yield* expect({ event: "evt_7" }, routed, failed, done)
        const tenants = yield* append({ event: "acme.i1", eventSeq: 10 })
        yield* append({ event: "acme.ai1", eventSeq: 11 })
        yield* expect({ event: "i1" }, tenants)
        yield* expect({ event: "acme.i1" }, tenants)
        yield* expect({ event: "evt_9" }, other)
        yield* expect({ event: "evt_" })
        yield* expect({ event: "a", endpoint: billing, kinds: ["delivered"] }, done)
      })
    )
  )

  it.live("reads what was stored from one moment to another, both included", () =>
    installation(server).run(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const seqs = []
        const times = []
        for (let i = 0; i < 4; i++) {
          const seq = yield* append({})
          const message = yield* ask("look", () => jsm.streams.getMessage(names.history, { seq }))
          const time = message?.time.getTime() ?? 0
          seqs.push(seq)
          times.push(time)
          yield* eventually(Clock.currentTimeMillis, (now) => now > time + 1)
        }
        const [, second, third] = times
        assert.deepStrictEqual(
          yield* sequences(readFacts({ since: second, until: third })),
          seqs.slice(1, 3)
        )
      })
    )
  )

  it.live("keeps fields of a record that it does not know, and passes over what is no fact", () =>
    installation(server).run(
      Effect.gen(function* () {
        const { ask, js, names } = yield* natsClients
        const subject = names.subjects.fact("acme", "billing", "ok", "delivered")
        const record = { v: 1, kind: "delivered", at: 5, tenant: "acme", endpoint: "billing" }
        for (const text of [
          "not json",
          '{"v":1}',
          '"a string"',
          JSON.stringify({ ...record, region: "eu" })
        ])
          yield* ask("publish", () => js.publish(subject, text))
        const log = makeLog()
        const found = yield* Stream.runCollect(readFacts({})).pipe(Effect.provide(log.layer))
        assert.deepStrictEqual(log.lines, [
          { level: "Warn", text: `skipped records that are not facts in ${names.history}: 3` }
        ])
        assert.deepStrictEqual(
          found.map(({ record }) => record),
          [{ ...record, region: "eu" }]
        )
      })
    )
  )

  it.live("follows what is stored later, until the time that was asked for", () =>
    installation(server).run(
      Effect.gen(function* () {
        const before = yield* append({ event: "a" })
        const seen: Array<number> = []
        const until = (yield* Clock.currentTimeMillis) + 600
        const reading = yield* readFacts({ follow: true, until }).pipe(
          Stream.runForEach(({ seq }) => Effect.sync(() => seen.push(seq))),
          Effect.forkScoped
        )
        yield* eventually(
          Effect.sync(() => seen.length),
          (count) => count === 1
        )
        const after = yield* append({ event: "b" })
        yield* Fiber.join(reading)
        assert.deepStrictEqual(seen, [before, after])
        assert.isAtLeast(yield* Clock.currentTimeMillis, until)
      })
    )
  )

  it.live("goes on following after the broker was restarted, without repeating older facts", () =>
    installation(server).run(
      Effect.gen(function* () {
        yield* append({ event: "old" })
        const since = (yield* Clock.currentTimeMillis) + 2
        yield* eventually(Clock.currentTimeMillis, (now) => now > since)
        const seen: Array<string | undefined> = []
        yield* readFacts({ follow: true, since }).pipe(
          Stream.runForEach(({ fact }) => Effect.sync(() => seen.push(fact.event))),
          Effect.forkScoped
        )
        const until = (event: string) =>
          eventually(
            Effect.sync(() => seen),
            (list) => list.includes(event)
          )
        yield* append({ event: "before" })
        yield* until("before")
        yield* Effect.promise(() => server.restart())
        yield* append({ event: "after" })
        yield* until("after")
        assert.deepStrictEqual(seen, ["before", "after"])
      })
    )
  )
})

/** More facts than one look back covers. */
const stored = 11_000

/** Every hundredth fact is globex's, the first one is a dead letter. */
const tell = Effect.gen(function* () {
  const { names, publisher } = yield* natsClients
  yield* Effect.forEach(
    Array.from({ length: stored }, (_, index) => index + 1),
    (seq) => {
      const kind = seq === 1 ? "dead-lettered" : "delivered"
      const tenant = seq % 100 === 0 ? "globex" : "acme"
      const fact: Fact = { v: 1, kind, at: seq, tenant, endpoint: "a", event: `e${seq}` }
      const subject = names.subjects.fact(tenant, "a", factResult(kind), kind)
      return publisher.publish(subject, JSON.stringify(fact), [])
    },
    { concurrency: 256, discard: true }
  )
})

describe("the newest facts", () => {
  it.live("are the last of all that match, in order, however far back they are", () =>
    installation(server).run(
      Effect.gen(function* () {
        yield* tell
        const { names, readMessage } = yield* Broker
        const middle = yield* readMessage("look", names.history, { seq: stored / 2 })
        const at = middle?.time.getTime() ?? 0
        const queries: ReadonlyArray<readonly [query: FactQuery, limit: number]> = [
          [{}, 1],
          [{}, 5_000],
          [{}, 2 * stored],
          [{ tenant: "globex" }, 3],
          [{ tenant: "globex" }, 60],
          [{ kinds: ["dead-lettered"] }, 2],
          [{ event: "e7" }, 1],
          [{ endpoint: { tenant: "acme", id: "b" } }, 1],
          [{ since: 0, until: 1 }, 1],
          [{ since: at }, stored],
          [{ until: at }, 10],
          [{ since: at, until: at, tenant: "acme" }, 5],
          [{ tenant: "globex", endpoint: { tenant: "acme", id: "a" } }, 1]
        ]
        for (const [query, limit] of queries) {
          const all = yield* sequences(readFacts(query))
          const newest = yield* sequences(readNewestFacts(query, limit))
          assert.deepStrictEqual(newest, all.slice(-limit), JSON.stringify(query))
        }
      })
    )
  )
})
