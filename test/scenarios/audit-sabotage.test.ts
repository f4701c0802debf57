import { assert, describe } from "@effect/vitest"
import type { MsgHdrs } from "@nats-io/transport-node"
import { Effect, Schema, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { readStream, scanQueue } from "../../src/broker/scan.ts"
import type { Fact, FactKind } from "../../src/domain/fact.ts"
import { Fact as FactSchema, factResult } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { Facts } from "../../src/history/facts.ts"
import { run } from "../cli/in-process.ts"
import {
  endpoint,
  erasableHistory,
  history,
  nth,
  publishMany,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { patientRetry } from "../kit/outcomes.ts"
import type { Received } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const events = 12

/** `good` takes everything, `flaky` at the second attempt, `bad` nothing, and `late` will some day. */
const statusOf = ({ headers, path }: Received): number => {
  if (path === "/bad") return 400
  if (path === "/late") return 503
  return path === "/flaky" && headers["petrel-attempt"] === "1" ? 503 : 200
}

const decodeFact = Schema.decodeUnknownSync(Schema.fromJsonString(FactSchema))

const storedFacts = Effect.gen(function* () {
  const { names } = yield* Broker
  const stream = readStream({ stream: names.history, subjects: [names.subjects.allFacts] })
  return yield* stream.pipe(
    Stream.map((message) => ({ seq: message.seq, fact: decodeFact(message.string()) })),
    Stream.runCollect
  )
})

/** A message's own headers, to store it once more. */
const headersOf = (header: MsgHdrs): Array<readonly [string, string]> =>
  [...header]
    .filter(([name]) => !name.startsWith("Nats-"))
    .map(([name, values]) => [name, values[0] ?? ""])

/** The fact of a delivery that went well, as it is stored. */
const aFact = Effect.gen(function* () {
  const { names } = yield* Broker
  const hook = yield* receiver()
  yield* endpoint({ id: "good", url: hook.url })
  const told = yield* history
  yield* worker()
  yield* publishMany(1)
  yield* told.count("delivered", 1)
  const stream = readStream({ stream: names.history, subjects: [names.subjects.allFacts] })
  const texts = yield* Stream.runCollect(Stream.map(stream, (message) => message.string()))
  return { text: nth(texts, texts.length - 1) }
})

/** What an audit found, as kind, event and endpoint, in an order of its own. */
const found = Effect.map(audit({}), ({ judgement }) => ({
  verdict: judgement.verdict,
  tally: judgement.tally,
  problems: judgement.problems.list
    .map(({ endpoint = "", eventSeq = 0, kind }) => `${kind} ${eventSeq} ${endpoint}`.trimEnd())
    .sort()
}))

/** So many events were delivered, failed, and wait; nobody works on them any more. */
const afterWork = Effect.gen(function* () {
  const hook = yield* receiver({ answer: (request) => ({ status: statusOf(request) }) })
  const told = yield* history
  yield* Effect.forEach(["good", "flaky", "bad", "late"], (id) =>
    endpoint({
      id,
      url: `${hook.url}/${id}`,
      retry: id === "late" ? patientRetry : quickRetry()
    })
  )
  yield* Effect.scoped(
    Effect.gen(function* () {
      yield* worker()
      yield* publishMany(events)
      yield* told.count("delivered", 2 * events)
      yield* told.count("dead-lettered", events)
      yield* told.until(
        (facts) =>
          facts.filter(({ endpoint, kind }) => endpoint === "late" && kind === "attempt-failed")
            .length === events
      )
    })
  )
})

describe("an audit", () => {
  scenario("is clean where everything ended once or waits, and says how it ended", () =>
    Effect.gen(function* () {
      yield* afterWork
      const { problems, tally, verdict } = yield* found
      assert.deepStrictEqual(problems, [])
      assert.strictEqual(verdict, "clean")
      const { begun, deadLettered, delivered, late, pending, reasons, repeated } = tally
      assert.deepStrictEqual(
        { begun, deadLettered, delivered, late, pending, repeated },
        {
          begun: 4 * events,
          deadLettered: events,
          delivered: 2 * events,
          pending: events,
          repeated: 0,
          late: 0
        }
      )
      assert.deepStrictEqual([...reasons], [["permanent", events]])
    })
  )

  scenario("finds all that was tampered with, each by its name", () =>
    Effect.gen(function* () {
      yield* erasableHistory
      yield* afterWork
      const { ask, jsm, names } = yield* natsClients
      const facts = yield* Facts
      const stored = yield* storedFacts
      const factOf = (kind: FactKind, eventSeq: number, id: string, attempt?: number) =>
        nth(
          stored.filter(
            ({ fact }) =>
              fact.kind === kind &&
              fact.eventSeq === eventSeq &&
              fact.endpoint === id &&
              (attempt === undefined || fact.attempt === attempt)
          ),
          0
        )
      const remove = (stream: string, seq: number) =>
        ask("remove", () => jsm.streams.deleteMessage(stream, seq, false))
      const removeFact = (...of: Parameters<typeof factOf>) =>
        Effect.suspend(() =>
          Effect.as(remove(names.history, factOf(...of).seq), factOf(...of).fact)
        )
      let written = 0
      const write = (fact: Fact) => facts.append(fact, `sabotage-${written++}`)

      // A delivery that waits.
      const partition = partitionOf("acme", "late", 2)
      const waitingFor = (eventSeq: string) =>
        scanQueue(
          names.deliveries(partition),
          names.subjects.delivery(partition, "acme", "late")
        ).pipe(
          Stream.filter(({ header }) => header.get("petrel-event-seq") === eventSeq),
          Stream.runCollect,
          Effect.map((list) => nth(list, 0))
        )
      const waiting = yield* waitingFor("2")
      yield* remove(names.deliveries(partition), waiting.seq)
      // An end.
      yield* removeFact("delivered", 3, "good")
      // A plan.
      yield* removeFact("routed", 4, "_")
      // A dead letter.
      const { dead = 0 } = factOf("dead-lettered", 5, "bad").fact
      yield* remove(names.dead, dead)
      // Another end.
      yield* write({
        ...factOf("dead-lettered", 6, "bad").fact,
        endpoint: "good",
        dead: factOf("dead-lettered", 6, "bad").fact.dead ?? 0
      })
      // An attempt behind the one that followed it.
      yield* Effect.flatMap(removeFact("attempt-failed", 7, "flaky", 1), write)
      // A plan behind what it planned.
      yield* Effect.flatMap(removeFact("routed", 8, "_"), write)
      // An outcome of nothing.
      yield* write({ ...factOf("delivered", 9, "good").fact, endpoint: "nobody" })
      // Another plan in the place of one.
      const { fact: plan } = factOf("routed", 10, "_")
      const planned = plan.plan
      assert.isDefined(planned)
      yield* write({
        ...plan,
        plan: { ...planned, endpoints: planned.endpoints.map((each) => ({ ...each, id: "other" })) }
      })
      // A plan of which a part is not there.
      const { fact: whole } = factOf("routed", 11, "_")
      yield* removeFact("routed", 11, "_")
      assert.isDefined(whole.plan)
      yield* write({ ...whole, plan: { ...whole.plan, last: false } })
      // One that waits for too long.
      const { publisher } = yield* natsClients
      const late = yield* waitingFor("12")
      yield* remove(names.deliveries(partition), late.seq)
      yield* publisher.publish(late.subject, late.data, [
        ...headersOf(late.header).filter(([name]) => name !== "petrel-deadline"),
        ["petrel-deadline", String(Date.now() - 16 * 60_000)]
      ])
      // A dead letter of one that was delivered.
      const { dead: letter = 0 } = factOf("dead-lettered", 1, "bad").fact
      const stray = yield* ask("read", () => jsm.streams.getMessage(names.dead, { seq: letter }))
      assert.isNotNull(stray)
      yield* publisher.publish(
        names.subjects.dead("acme", "good"),
        stray.data,
        headersOf(stray.header)
      )
      // Something that is no fact.
      yield* publisher.publish(
        names.subjects.fact("acme", "good", factResult("delivered"), "delivered"),
        "{",
        []
      )

      const { problems, verdict } = yield* found
      assert.strictEqual(verdict, "problems")
      const gaps = problems.filter((problem) => problem.startsWith("history-gap"))
      assert.lengthOf(gaps, 5)
      const route4 = ["bad", "flaky", "good", "late"].map((id) => `outcome-without-route 4 ${id}`)
      const early = ["bad", "flaky", "good", "late"].flatMap((id) => [
        `outcome-before-route 8 ${id}`,
        `outcome-before-route 11 ${id}`
      ])
      assert.deepStrictEqual(
        problems.filter((problem) => !problem.startsWith("history-gap")),
        [
          "missing 2 late",
          "missing 3 good",
          "unrouted 4",
          ...route4,
          "dead-letter-missing 5 bad",
          "contradiction 6 good",
          "dead-letter-missing 6 good",
          "attempts-out-of-sequence 7 flaky",
          ...early,
          "outcome-without-route 9 nobody",
          "missing 10 other",
          "plan-incomplete 11",
          "overdue 12 late",
          "dead-letter-without-fact 1 good",
          "plans-differ 0",
          "unreadable-fact 0"
        ].sort()
      )
    })
  )

  scenario("sees that the event stream has lost something, within it or at its end", () =>
    Effect.gen(function* () {
      yield* afterWork
      const { ask, jsm, names, publisher } = yield* natsClients
      const facts = yield* storedFacts
      const routed = facts.find(({ fact }) => fact.kind === "routed" && fact.eventSeq === 5)?.fact
      assert(routed !== undefined)
      const subject = names.subjects.fact("acme", "_", factResult("routed"), "routed")
      const tell = (fact: Fact) => publisher.publish(subject, JSON.stringify(fact), [])
      // As it was before the broker lost its end, and gave the sequences to others.
      yield* tell({ ...routed, event: "another", eventAt: (routed.eventAt ?? 0) - 60_000 })
      yield* tell({ ...routed, event: "the-last", eventSeq: events + 3 })
      yield* ask("delete", () => jsm.streams.deleteMessage(names.events, 3))
      const { problems, verdict } = yield* found
      assert.strictEqual(verdict, "problems")
      assert.includeMembers(problems, [
        "event-gap 3",
        `event-gap ${events + 1}`,
        "event-replaced 5"
      ])
    })
  )

  scenario("calls all that is no fact unreadable, whatever else it is", () =>
    Effect.gen(function* () {
      const { names, publisher } = yield* natsClients
      const { text: fact } = yield* Effect.scoped(aFact)
      const tell = (body: string) =>
        publisher.publish(names.subjects.fact("acme", "good", "ok", "delivered"), body, [])
      assert.strictEqual((yield* found).verdict, "clean")
      const changed = (changes: object) => JSON.stringify({ ...JSON.parse(fact), ...changes })
      const seqs: Array<number> = []
      for (const body of [
        ...["", "{", "null", "true", "3", '"delivered"', "[]", "{}", `[${fact}]`],
        changed({ v: 2 }),
        changed({ kind: "exploded" }),
        changed({ kind: undefined }),
        changed({ kind: ["delivered"] }),
        changed({ at: "now" }),
        changed({ eventSeq: "1" }),
        changed({ kind: "circuit-opened", endpoint: 7 }),
        changed({ kind: "alert-raised", alert: {} }),
        changed({ kind: "endpoint-paused", by: 3 })
      ])
        seqs.push((yield* tell(body)).seq)
      const { judgement } = yield* audit({})
      assert.strictEqual(judgement.verdict, "problems")
      assert.deepStrictEqual(
        judgement.problems.list.map(({ kind, seq }) => ({ kind, seq })),
        seqs.map((seq) => ({ kind: "unreadable-fact" as const, seq }))
      )
    })
  )

  scenario("names what is gone of a history that was emptied", () =>
    Effect.gen(function* () {
      yield* erasableHistory
      yield* afterWork
      const { ask, jsm, names } = yield* natsClients
      yield* ask("purge", () => jsm.streams.purge(names.history))
      assert.deepInclude(yield* found, { verdict: "problems", problems: ["history-gap 0"] })
    })
  )

  scenario("follows what is sent again or thrown away", ({ eventRoot, prefix, url }) =>
    Effect.gen(function* () {
      yield* afterWork
      const { ask, jsm, names } = yield* natsClients
      const petrel = (...args: ReadonlyArray<string>) =>
        Effect.map(
          run(...args, "--nats", url, "--prefix", prefix, "--events", eventRoot),
          ({ code, err }) => assert.strictEqual(code, 0, err.join("\n"))
        )
      yield* Effect.all(
        [petrel("dead", "discard", "--id", "1", "--yes"), petrel("dead", "redeliver", "--id", "2")],
        { concurrency: 2 }
      )
      const sent = yield* found
      assert.deepStrictEqual(sent.problems, [])
      assert.deepInclude(sent.tally, {
        begun: 4 * events + 1,
        discarded: 1,
        deadLettered: events - 1,
        pending: events + 1
      })
      const partition = partitionOf("acme", "bad", 2)
      const subject = names.subjects.delivery(partition, "acme", "bad")
      yield* ask("purge", () => jsm.streams.purge(names.deliveries(partition), { filter: subject }))
      const { judgement } = yield* audit({})
      assert.deepStrictEqual(
        judgement.problems.list.map(({ endpoint, kind, round }) => [kind, endpoint, round]),
        [["missing", "bad", "d2"]]
      )
    })
  )
})
