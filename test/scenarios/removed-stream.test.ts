import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { findPartitions } from "../../src/broker/installed.ts"
import { wanted } from "../../src/broker/topology.ts"
import { makeNames, partitionOf } from "../../src/domain/names.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { showActivity } from "../../src/operations/endpoints/endpoint-queries.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import { run } from "../cli/in-process.ts"
import type { Installation } from "../kit/engine.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishMany,
  quickRetry,
  startedWorker,
  testTopology,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const flagsOf = ({ eventRoot, prefix, url }: Installation): ReadonlyArray<string> => [
  ...["--nats", url],
  ...["--prefix", prefix, "--events", eventRoot]
]

/** Removes a stream, as a person does with a command-line tool of the broker. */
const remove = (stream: string) =>
  Effect.gen(function* () {
    const { ask, jsm } = yield* natsClients
    return yield* ask("remove", () => jsm.streams.delete(stream))
  })

const look = (stream: string) =>
  Effect.gen(function* () {
    const { ask, jsm } = yield* natsClients
    const { config, state } = yield* ask("look", () => jsm.streams.info(stream))
    const { first_seq: _, metadata: __, ...settings } = config
    return { reached: state.last_seq, settings }
  })

const minute = 60_000
const day = 24 * 60 * minute

/** Settings that are none of the usual ones. */
const unusual = {
  eventDedupe: minute,
  eventAge: 3 * day,
  eventBytes: 96 * 1024 ** 2,
  historyAge: 20 * day,
  historyBytes: 48 * 1024 ** 2,
  deadAge: 10 * day
}

const plain = makeNames("", "")
const streams = wanted(plain, testTopology, 0).map(({ stream }) => stream.name)

describe.concurrent("a stream that somebody removed", () => {
  for (const bare of streams)
    scenario(
      `is named by status and workers, and init makes it again: ${bare}`,
      (place) =>
        Effect.gen(function* () {
          const { names } = yield* Broker
          const isBucket = bare.startsWith("KV_")
          const stream = isBucket
            ? `KV_${place.prefix.toLowerCase()}${bare.slice("KV_".length)}`
            : `${place.prefix}${bare}`
          const hook = yield* receiver()
          yield* endpoint({ url: hook.url })
          const first = yield* startedWorker()
          yield* publishMany(20)
          yield* hook.received(20)
          yield* first.stop
          const before = yield* look(stream)

          yield* remove(stream)
          const { problems } = yield* readStatus
          assert.include(
            problems.find(({ code }) => code === "stream-missing")?.text,
            `${stream} is missing: run \`petrel init\`, which makes it again`
          )
          const refused = yield* Effect.flip(worker({ id: "early" }))
          assert.include(refused.message, `${stream} is missing on the broker: run \`petrel init\``)

          const made = yield* run("init", ...flagsOf(place))
          assert.strictEqual(made.code, 0, made.err.join())
          const lines = made.out.filter((line) => !line.includes("consumer"))
          assert.match(nth(lines, 0), /^created {4}stream (\S+), which was missing: ./)
          assert.include(nth(lines, 0), stream)
          assert.lengthOf(lines, 2)
          const { reached, settings } = yield* look(stream)
          assert.isAbove(reached, before.reached, "no sequence is given again")
          assert.deepStrictEqual(settings, before.settings)
          assert.deepStrictEqual(yield* findPartitions, { partitions: 2, begun: 2, missing: [] })

          if (stream === `KV_${names.buckets.endpoints}`) yield* endpoint({ url: hook.url })
          yield* worker({ id: "second" })
          yield* publishMany(20, "invoice.sent")
          yield* hook.received(40)
          if (stream === names.configuration) {
            // The history still has all that was in it.
            const { judgement } = yield* audit({})
            assert.deepStrictEqual(judgement.problems.list, [])
          }
        }),
      unusual
    )

  scenario(
    "or its messages, and was the bucket of workers: status says it, init writes them",
    (place) =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const first = yield* startedWorker()
        yield* publishMany(5)
        yield* hook.received(5)
        // As where tokens are in an account of their own, which the record says.
        yield* remove(`KV_${names.buckets.tokens}`)
        yield* ask("purge", () => jsm.streams.purge(`KV_${names.buckets.workers}`))
        // The worker takes its partitions anew, and stores more there.
        yield* publishMany(5, "invoice.sent")
        yield* hook.received(10)
        yield* first.stop
        const { problems } = yield* readStatus
        assert.include(
          problems.find(({ code }) => code === "layout-missing")?.text,
          "no worker can start: run `petrel init`"
        )
        assert.notInclude(
          problems.map(({ code }) => code),
          "stream-missing"
        )
        const refused = yield* Effect.flip(worker({ id: "early" }))
        assert.include(refused.message, "the record of the layout is missing")
        const made = yield* run("init", ...flagsOf(place))
        assert.strictEqual(made.code, 0, made.err.join())
        assert.include(made.out, "created    record of the layout")
        yield* worker({ id: "second" })
        yield* publishMany(5, "invoice.due")
        yield* hook.received(15)
        const codes = (yield* readStatus).problems.map(({ code }) => code)
        assert.notInclude(codes, "layout-missing")
      })
  )

  for (const kind of ["deliveries", "backlog"] as const)
    scenario(`is named to whoever asks for an endpoint whose ${kind} it had`, () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        yield* endpoint({ id: "one", url: "http://127.0.0.1:9" })
        const of = { tenant: "acme", id: "one" }
        const stream = names[kind](partitionOf(of.tenant, of.id, testTopology.partitions))
        yield* showActivity(of)
        yield* remove(stream)
        const failed = yield* Effect.flip(showActivity(of))
        assert.include(failed.message, `${stream} is missing on the broker: run \`petrel init\``)
      })
    )

  scenario("takes the plans in it: the audit does not call their events unrouted", (place) =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const good = yield* receiver()
      const bad = yield* receiver({ answer: { status: 500 } })
      const retry = quickRetry({ backoff: { kind: "fixed", delay: "2 seconds" } })
      yield* endpoint({ id: "good", url: good.url, types: ["good"] })
      yield* endpoint({ id: "bad", url: bad.url, types: ["bad"], retry })
      const first = yield* startedWorker()
      for (const type of ["good", "bad", "good", "bad"]) yield* publish(type)
      yield* good.received(2)
      yield* bad.received(2)
      yield* first.stop
      yield* remove(names.history)
      assert.strictEqual((yield* run("init", ...flagsOf(place))).code, 0)
      bad.answer({ status: 200 })
      const facts = yield* history
      yield* worker({ id: "second" })
      // Facts about the second and the fourth event, and none about the third.
      yield* facts.count("delivered", 2)
      yield* ask("purge", () => jsm.streams.purge(names.events, { seq: 5 }))
      const { judgement } = yield* audit({})
      const kinds = judgement.problems.list.map(({ kind }) => kind)
      assert.notInclude(kinds, "event-lost")
    })
  )

  scenario("and was a backlog loses nothing of what comes once init made it again", (place) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({
        url: hook.url,
        retry: quickRetry({ maxAttempts: 100, window: "1 hour" }),
        circuit: { failures: 1, coolDown: "1 second", maxCoolDown: "1 second" }
      })
      const facts = yield* history
      yield* worker()
      yield* publish("first")
      yield* facts.count("circuit-opened", 1)
      for (const index of [0, 1]) yield* remove(names.backlog(index))
      assert.strictEqual((yield* run("init", ...flagsOf(place))).code, 0)
      yield* publishMany(40, "later")
      yield* eventually(backlogged, (waiting) => waiting >= 40)
      hook.answer({ status: 200 })
      yield* facts.until((all) => {
        const later = all.filter(({ kind, type }) => kind === "delivered" && type === "later")
        return new Set(later.map(({ event }) => event)).size === 40
      })
    })
  )

  scenario("takes what waited in it: the audit names it, and a replay sends it", (place) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const hook = yield* receiver({ answer: { status: 500 } })
      const retry = quickRetry({
        backoff: { kind: "fixed", delay: "10 minutes" },
        window: "1 hour"
      })
      yield* endpoint({ url: hook.url, retry })
      const facts = yield* history
      const first = yield* startedWorker()
      yield* publishMany(3)
      yield* hook.received(3)
      yield* eventually(waitingMessages, (waiting) => waiting === 3)
      yield* first.stop
      for (const index of [0, 1]) yield* remove(names.deliveries(index))
      assert.strictEqual((yield* run("init", ...flagsOf(place))).code, 0)
      hook.answer({ status: 200 })
      yield* worker({ id: "second" })
      const audit = yield* run("audit", ...flagsOf(place))
      assert.strictEqual(audit.code, 1)
      assert.match(audit.out.join("\n"), /missing/)
      const sent = yield* run(
        ...["replay", "--to", "acme/hook", "--since", "1h"],
        ...flagsOf(place)
      )
      assert.strictEqual(sent.code, 0, sent.err.join())
      yield* facts.count("delivered", 3)
    })
  )
})
