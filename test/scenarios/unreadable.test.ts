import { assert, describe } from "@effect/vitest"
import { headers } from "@nats-io/transport-node"
import { Effect, Schema, Stream } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import type { FailpointName } from "../../src/broker/failpoint.ts"
import { Failpoint } from "../../src/broker/failpoint.ts"
import { scanQueue } from "../../src/broker/scan.ts"
import { writeValue } from "../../src/broker/values.ts"
import { readSurvey } from "../../src/delivery/introspection/survey.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { repartition } from "../../src/operations/repartition/repartition.ts"
import { conditionsOf } from "../../src/operations/status/status-conditions.ts"
import { parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import { idsForgotten } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  nth,
  publishMany,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { disable } from "../kit/live-endpoints.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const { scenario } = onServer()

const whose = { tenant: "acme", endpoint: "hook" }
const paused = { at: 1, by: "test" }

const flagsOf = ({ eventRoot, prefix, url }: Installation) => [
  ...["--nats", url],
  ...["--prefix", prefix],
  ...["--events", eventRoot]
]

const stored = (stream: string, subject = ">") =>
  Stream.runCollect(scanQueue(stream, subject)).pipe(
    Effect.map((messages) =>
      messages.map(({ header, seq, subject, time }) => ({
        ...{ seq, at: time.getTime(), subject, event: header.get("petrel-event") },
        isUnreadable: header.get("petrel-progress") !== ""
      }))
    )
  )

/** What the endpoint's backlog holds. */
const backlogOf = (partitions = 2) =>
  Effect.flatMap(Broker, ({ names }) =>
    stored(names.backlog(partitionOf("acme", "hook", partitions)))
  )

/**
 * Stores what waits in the endpoint's backlog once more, in its order; some of it as a newer version
 * does that keeps account of attempts in another way.
 */
const rewrite = Effect.fnUntraced(function* (isUnreadable: (index: number) => boolean) {
  const { ask, js, jsm, names } = yield* natsClients
  const stream = names.backlog(partitionOf("acme", "hook", 2))
  const messages = yield* Stream.runCollect(scanQueue(stream, ">"))
  yield* ask("empty the backlog", () => jsm.streams.purge(stream))
  for (const [index, { data, header, subject }] of messages.entries()) {
    const list = headers()
    for (const [name, values] of header)
      if (!name.startsWith("Nats-")) for (const value of values) list.append(name, value)
    if (isUnreadable(index)) list.set("petrel-progress", `{"tries":["${index}"]}`)
    yield* ask("store it again", () => js.publish(subject, data, { headers: list }))
  }
})

/** So many deliveries wait in the backlog, some of them unreadable, and no worker runs. */
const waiting = Effect.fnUntraced(function* (
  count: number,
  isUnreadable: (index: number) => boolean
) {
  const hook = yield* receiver()
  yield* endpoint({ url: hook.url, paused, retry: quickRetry({ window: "8 days" }) })
  yield* Effect.scoped(
    Effect.gen(function* () {
      const { stop } = yield* worker({ id: "newer" })
      yield* publishMany(count)
      yield* eventually(backlogged, (found) => found === count)
      yield* stop
    })
  )
  yield* rewrite(isUnreadable)
  const kept = (yield* backlogOf()).filter((message) => message.isUnreadable)
  return { hook, kept }
})

const unreadableIn = Effect.map(readSurvey, (survey) =>
  conditionsOf(survey).problems.flatMap(({ code, text }) => (code === "unreadable" ? [text] : []))
)

const Codes = Schema.Array(Schema.Struct({ code: Schema.String }))
const Rounds = Schema.Array(
  Schema.Struct({
    waitsIn: Schema.NullOr(Schema.Struct({ stream: Schema.String, seq: Schema.Int })),
    holds: Schema.Array(Schema.Struct({ by: Schema.String, says: Schema.String }))
  })
)

describe.concurrent("a message in a backlog that this version cannot read", () => {
  scenario("stays, at the head and in the middle, while all others are delivered", (place) =>
    Effect.gen(function* () {
      const isUnreadable = (index: number) => [0, 100, 101, 199].includes(index)
      const { hook, kept } = yield* waiting(200, isUnreadable)
      assert.lengthOf(kept, 4)
      yield* resumeEndpoint(whose, "test")
      const facts = yield* history
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { stop } = yield* worker({ id: "older", findEvery: 100 })
          yield* facts.count("delivered", 196)
          yield* eventually(backlogOf(), (left) => left.length <= 4)
          assert.deepStrictEqual(yield* backlogOf(), kept)
          // Nobody waits for them: what comes now is not stored behind them.
          yield* publishMany(1, "later")
          yield* facts.count("delivered", 197)
          assert.notInclude(nth(facts.of("delivered"), 196).from?.stream ?? "", "BACKLOG")
          assert.match(nth(yield* unreadableIn, 0), /^4 waiting messages cannot be read/)
          yield* stop
        })
      )
      const again = yield* worker({ id: "older-still" })
      yield* eventually(unreadableIn, (found) => found.length === 1)
      yield* publishMany(1, "last")
      yield* facts.count("delivered", 198)
      assert.deepStrictEqual(yield* backlogOf(), kept)
      assert.strictEqual(hook.requests.length, 198)
      assert.lengthOf(facts.of("dead-lettered"), 0)

      const flags = flagsOf(place)
      const { seq } = nth(kept, 0)
      const { names } = yield* Broker
      const stream = names.backlog(partitionOf("acme", "hook", 2))
      const [checked, json, shown, people] = yield* Effect.all(
        [
          run("status", "--check", ...flags),
          run("status", "--json", ...flags),
          run("delivery", "show", "invoice.paid-0.hook", "--json", ...flags),
          run("delivery", "show", "invoice.paid-0.hook", ...flags)
        ],
        { concurrency: 2 }
      )
      assert.strictEqual(checked.code, 1)
      assert.match(checked.err.join("\n"), /4 waiting messages cannot be read by this version/)
      const status = parse(nth(json.out, 0))
      assert.deepInclude(status.deliveries, { backlog: 4, unreadable: 4 })
      const found = Schema.decodeUnknownSync(Codes)(status.problems)
      assert.deepStrictEqual(found, [{ code: "unreadable" }])
      const [round] = Schema.decodeUnknownSync(Rounds)(parse(nth(shown.out, 0)).rounds)
      assert.deepStrictEqual(round?.waitsIn, { stream, seq })
      assert.deepStrictEqual(
        round?.holds.map(({ by }) => by),
        ["unreadable"]
      )
      assert.include(people.out.join(" "), `message ${seq} of ${stream}`)
      assert.match(people.out.join(" "), /this\s+version\s+cannot\s+read/)
      yield* again.stop

      const { judgement } = yield* audit({})
      const { list, counts } = judgement.problems
      assert.deepStrictEqual([...counts], [["unreadable-message", 4]])
      assert.deepInclude(nth(list, 0), {
        ...{ kind: "unreadable-message", tenant: "acme", endpoint: "hook" },
        ...{ event: "invoice.paid-0", eventSeq: 1, round: "0", stream, streamSeq: seq }
      })
      assert.deepInclude(judgement.tally, { delivered: 198, pending: 4, missing: 0 })
    })
  )

  scenario("stays where there are more of them than are read ahead", () =>
    Effect.gen(function* () {
      const { hook, kept } = yield* waiting(700, (index) => index < 600 || index % 2 === 0)
      yield* resumeEndpoint(whose, "test")
      const facts = yield* history
      yield* worker()
      yield* facts.count("delivered", 50)
      yield* eventually(backlogOf(), (left) => left.length <= 650)
      assert.deepStrictEqual(yield* backlogOf(), kept)
      assert.strictEqual(hook.requests.length, 50)
      assert.match(nth(yield* unreadableIn, 0), /^650 waiting messages/)
    })
  )

  scenario("is known while its endpoint takes nothing", () =>
    Effect.gen(function* () {
      const { kept } = yield* waiting(40, (index) => index === 30)
      yield* worker()
      yield* eventually(unreadableIn, ([text = ""]) => text.startsWith("1 waiting message "))
      assert.lengthOf(yield* backlogOf(), 40)
      assert.lengthOf(kept, 1)
    })
  )

  for (const [what, end, reason] of [
    ["disabled", disable("hook"), "endpoint-disabled"],
    ["removed", removeEndpoint("acme", "hook"), "endpoint-removed"]
  ] as const)
    scenario(`stays where its endpoint is ${what}, and the others are dead letters`, () =>
      Effect.gen(function* () {
        const { kept } = yield* waiting(30, (index) => index === 0 || index === 20)
        const facts = yield* history
        yield* worker()
        yield* end
        yield* facts.count("dead-lettered", 28)
        yield* eventually(backlogOf(), (left) => left.length <= 2)
        assert.deepStrictEqual(yield* backlogOf(), kept)
        assert.isTrue(facts.of("dead-lettered").every((fact) => fact.reason === reason))
        yield* eventually(unreadableIn, ([text = ""]) => text.startsWith("2 waiting messages"))
      })
    )

  scenario(
    "moves with the others where the number of partitions is changed",
    () =>
      Effect.gen(function* () {
        const isElsewhere = (count: number) =>
          partitionOf("acme", "hook", count) !== partitionOf("acme", "hook", 2)
        const partitions = nth([3, 4, 5, 6].filter(isElsewhere), 0)
        const { kept } = yield* waiting(20, (index) => index === 0 || index === 9)
        const { ask, jsm, names } = yield* natsClients
        const { retries } = names.buckets
        const recordOf = (
          count: number,
          { at, seq }: { readonly at: number; readonly seq: number }
        ) => `${names.backlog(partitionOf("acme", "hook", count))}.${seq}.${at}`
        yield* writeValue(retries, recordOf(2, nth(kept, 0)), `"newer"`)
        const before = yield* backlogOf()
        const change = repartition({ to: partitions, tell: () => Effect.void })
        // It dies once they are stored in both places, and goes on when the broker has forgotten their ids.
        let acknowledged = 0
        const dies = (step: FailpointName) => {
          if (step === "moved" && ++acknowledged === before.length) throw new Error("crash")
        }
        yield* Effect.exit(Effect.provideService(change, Failpoint, dies))
        assert.strictEqual(acknowledged, before.length)
        yield* idsForgotten
        yield* change
        const order = (messages: typeof before) =>
          messages.map(({ event, isUnreadable }) => [event, isUnreadable])
        const moved = yield* backlogOf(partitions)
        assert.deepStrictEqual(order(moved), order(before))
        // What a newer version wrote down of one goes with it, for as long as it may be delivered.
        const key = recordOf(partitions, nth(moved, 0))
        const copy = yield* ask("read the record", () =>
          jsm.streams.getMessage(`KV_${retries}`, { last_by_subj: `$KV.${retries}.${key}` })
        )
        assert(copy !== null)
        assert.strictEqual(copy.string(), `"newer"`)
        assert.isAbove(Number.parseInt(copy.header.get("Nats-TTL"), 10), 24.5 * 3600)
        yield* resumeEndpoint(whose, "test")
        const facts = yield* history
        yield* worker()
        yield* facts.count("delivered", 18)
        yield* eventually(backlogOf(partitions), (left) => left.length <= 2)
        assert.deepStrictEqual(
          yield* backlogOf(partitions),
          moved.filter((message) => message.isUnreadable)
        )
      }),
    { moveDedupe: 200 }
  )
})

describe.concurrent("a message in a queue that this version cannot read", () => {
  scenario("stays, also where it came there from a schedule, and is told of", () =>
    Effect.gen(function* () {
      const { ask, js, names } = yield* natsClients
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const partition = partitionOf("acme", "hook", 2)
      const stream = names.deliveries(partition)
      const subject = names.subjects.delivery(partition, "acme", "hook")
      const store = (to: string, more: Record<string, string> = {}) => {
        const list = headers()
        for (const [name, value] of Object.entries({ "petrel-progress": "newer", ...more }))
          list.set(name, value)
        return ask("store", () => js.publish(to, "{}", { headers: list }))
      }
      yield* store(subject)
      const facts = yield* history
      const { stop } = yield* worker({ id: "first" })
      yield* store(names.subjects.schedule(partition, "newer"), {
        "Nats-Schedule": `@at ${new Date(Date.now() + 500).toISOString()}`,
        "Nats-Schedule-Target": subject
      })
      yield* eventually(unreadableIn, ([text = ""]) => text.startsWith("2 waiting messages"))
      yield* publishMany(3)
      yield* facts.count("delivered", 3)
      yield* stop
      yield* worker({ id: "second" })
      yield* eventually(unreadableIn, ([text = ""]) => text.startsWith("2 waiting messages"))
      yield* eventually(stored(stream), (left) => left.length <= 2)
      const left = yield* stored(stream)
      assert.deepStrictEqual(
        left.map((message) => message.subject),
        [subject, subject]
      )
      const { judgement } = yield* audit({})
      assert.deepStrictEqual(
        judgement.problems.list.map(({ kind, says }) => `${kind}: ${says}`),
        left.map(
          ({ seq }) =>
            `unreadable-message: message ${seq} of ${stream}, for acme/hook, cannot be read by this version`
        )
      )
    })
  )
})
