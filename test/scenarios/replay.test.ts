import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import {
  disableEndpoint,
  enableEndpoint,
  pauseEndpoint,
  resumeEndpoint
} from "../../src/endpoints/endpoint-state.ts"
import { consistentRounds, quiet } from "../kit/consistency.ts"
import { endpoint, eventually, history, nth, publish, publishMany, worker } from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { idsAt, paid, plannedFor, replayTo } from "./replaying.ts"

const { scenario } = onServer()

describe.concurrent("a replay", () => {
  scenario("sends past events to an endpoint that is new, as they were, and to nobody else", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: `${hook.url}/old` })
      const facts = yield* history
      yield* worker()
      yield* publish("invoice.paid", "the bytes", {
        "Nats-Msg-Id": "acme-1",
        "Content-Type": "text/plain"
      })
      yield* publish("user.created", "{}", { "Nats-Msg-Id": "acme-2" })
      yield* facts.count("delivered", 2)
      yield* endpoint({ id: "new", url: `${hook.url}/new` })

      const planned = yield* plannedFor("new", { types: ["invoice.>", "*.paid"] })
      assert.deepStrictEqual(planned.types, [["invoice.paid", 1]])
      const counts = yield* replayTo("new", { types: ["invoice.>", "*.paid"] })
      yield* facts.count("delivered", 3)
      assert.deepInclude(counts, { begun: 1, before: 0 })

      const again = nth(hook.requests, 2)
      assert.strictEqual(again.path, "/new")
      assert.strictEqual(again.headers["webhook-id"], "acme-1")
      assert.strictEqual(again.headers["content-type"], "text/plain")
      assert.strictEqual(again.headers["petrel-attempt"], "1")
      assert.strictEqual(again.headers["petrel-round"], "rfirst")
      assert.notProperty(nth(hook.requests, 0).headers, "petrel-round")
      assert.strictEqual(again.body.toString(), "the bytes")
      assert.deepStrictEqual(
        facts
          .of("replayed")
          .map(({ by, endpoint, eventSeq, round }) => [endpoint, eventSeq, round, by]),
        [["new", 1, "rfirst", "ana@host"]]
      )
      assert.strictEqual(nth(facts.of("delivered"), 2).round, "rfirst")
    })
  )

  scenario("sends within a time, and a second one under another name sends it again", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      yield* worker()
      yield* publishMany(2)
      yield* facts.count("delivered", 2)
      const since = Date.now()
      yield* eventually(
        Effect.sync(() => Date.now()),
        (now) => now > since
      )
      yield* publishMany(1, "invoice.late")
      yield* facts.count("delivered", 3)
      assert.strictEqual((yield* replayTo("hook", { until: since })).begun, 2)
      assert.strictEqual((yield* replayTo("hook", { since, name: "second" })).begun, 1)
      assert.strictEqual((yield* replayTo("hook", { name: "third" })).begun, 3)
      yield* facts.count("delivered", 9)
      assert.lengthOf(hook.requests, 9)
    })
  )

  for (const [historyAge, ttl] of [
    [7_200_000, "7200s"],
    [0, ""]
  ] as const)
    scenario(
      `is known for as long as the history is kept: ${ttl === "" ? "for ever" : ttl}`,
      () =>
        Effect.gen(function* () {
          const { ask, jsm, names } = yield* natsClients
          yield* endpoint()
          yield* publishMany(1)
          yield* replayTo("hook")
          const bucket = names.buckets.workers
          const last_by_subj = `$KV.${bucket}.replay.acme.hook.first`
          const record = yield* ask("look at the record", () =>
            jsm.streams.getMessage(`KV_${bucket}`, { last_by_subj })
          )
          assert.strictEqual(record?.header.get("Nats-TTL"), ttl)
        }),
      { historyAge }
    )

  scenario("is not done twice under one name, nor under the name of another", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      yield* publishMany(2)
      yield* replayTo("hook")
      const again = yield* Effect.flip(replayTo("hook"))
      assert.match(String(again), /replayed already.*`id`/)
      const other = yield* Effect.flip(replayTo("hook", { asked: "something else" }))
      assert.match(String(other), /of other events/)
    })
  )

  scenario(
    "of what was skipped makes up for the time in which the endpoint was disabled, once",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: `${hook.url}/hook` })
        const facts = yield* history
        yield* worker()
        const name = { skipped: true, mayFollow: true }
        const skipped = (type: string) =>
          facts
            .plans()
            .filter((fact) => fact.type === type && fact.plan?.skipped.length === 1)
            .map(({ event }) => event)
            .sort()
        const missed = (type: string) =>
          Effect.gen(function* () {
            yield* disableEndpoint({ tenant: "acme", endpoint: "hook" }, "maintenance", "cli")
            // Until the router has seen it, too, and leaves out what comes.
            while (skipped(type).length < 3) {
              const before = facts.plans().length
              yield* publish(type)
              yield* facts.planned(before + 1)
            }
            yield* enableEndpoint({ tenant: "acme", endpoint: "hook" }, "cli")
          })
        yield* publishMany(2, "invoice.taken")
        yield* facts.count("delivered", 2)
        yield* missed("invoice.missed")
        const first = skipped("invoice.missed")
        assert.isAbove(first.length, 0)
        assert.strictEqual((yield* replayTo("hook", name)).begun, first.length)
        yield* quiet
        assert.strictEqual((yield* replayTo("hook", name)).begun, 0)

        yield* missed("invoice.later")
        const second = skipped("invoice.later")
        assert.strictEqual((yield* replayTo("hook", name)).begun, second.length)
        yield* quiet
        const replayed = facts.of("replayed").map(({ event }) => event)
        // What is published at the same time may be stored in any order.
        assert.deepStrictEqual(replayed.slice(0, first.length).toSorted(), first)
        assert.deepStrictEqual(replayed.slice(first.length).toSorted(), second)
        const came = idsAt(hook, "/hook")
        assert.strictEqual(new Set(came).size, came.length)
        for (const id of replayed) assert.include(came, id)
      })
  )

  scenario("of what is missing leaves out what the endpoint has taken or will be sent anyway", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({
        answer: ({ headers }) => ({
          status: headers["webhook-id"] === "invoice.paid-1" ? 400 : 200
        })
      })
      yield* endpoint({ url: `${hook.url}/hook` })
      const facts = yield* history
      const first = yield* worker()
      yield* publishMany(3)
      yield* facts.count("dead-lettered", 1)
      yield* facts.count("delivered", 2)
      // A worker that starts knows of the pause before it routes.
      yield* first.stop
      yield* pauseEndpoint({ tenant: "acme", endpoint: "hook" }, undefined, "cli")
      yield* worker()
      yield* publishMany(1, "invoice.waiting")
      yield* facts.planned(4)
      hook.answer({})
      const counts = yield* replayTo("hook", { onlyMissing: true })
      assert.deepStrictEqual(counts, {
        begun: 1,
        finished: 0,
        before: 0,
        gone: 0,
        own: 0,
        delivered: 2,
        open: 1,
        unrouted: 0
      })
      assert.strictEqual(nth(facts.of("replayed"), 0).event, "invoice.paid-1")
      yield* resumeEndpoint({ tenant: "acme", endpoint: "hook" }, "cli")
      yield* facts.count("delivered", 4)
      yield* quiet
      assert.deepStrictEqual(
        idsAt(hook, "/hook"),
        [...paid(0, 1, 1, 2), "invoice.waiting-0"].sort()
      )
    })
  )

  scenario("of what is missing leaves to the router what it has not routed yet", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ id: "old", types: ["none"] })
      const facts = yield* history
      const { stop } = yield* worker()
      yield* publishMany(2, "invoice.early")
      yield* facts.planned(2)
      yield* quiet
      yield* stop
      yield* endpoint({ url: hook.url })
      yield* publishMany(3)
      const planned = yield* plannedFor("hook", { onlyMissing: true })
      assert.include(planned, { delivered: 0, open: 0, unrouted: 3 })
      assert.strictEqual(planned.count, 2)
      assert.include(yield* replayTo("hook", { onlyMissing: true }), { begun: 2, unrouted: 3 })
      yield* worker({ id: "second" })
      yield* consistentRounds
      assert.lengthOf(hook.requests, 5)
    })
  )

  scenario("of what is missing sends what went to others while an older event is under way", () =>
    Effect.gen(function* () {
      const slow = yield* gate
      const hook = yield* receiver()
      yield* endpoint({ id: "slow", url: slow.url, types: ["slow"] })
      yield* endpoint({ id: "other", url: `${hook.url}/other`, types: ["invoice.paid"] })
      const facts = yield* history
      yield* worker()
      yield* publish("slow")
      yield* slow.received(1)
      yield* publishMany(3)
      yield* facts.count("delivered", 3)
      yield* endpoint({ url: `${hook.url}/hook`, types: ["invoice.paid"] })
      const missing = { types: ["invoice.paid"], onlyMissing: true }
      assert.include(yield* replayTo("hook", missing), { begun: 3, unrouted: 0 })
      yield* slow.open
      yield* consistentRounds
      assert.deepStrictEqual(idsAt(hook, "/hook"), paid(0, 1, 2))
    })
  )
})
