import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { Failpoint } from "../../src/broker/failpoint.ts"
import { pauseEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { eraseUnderWay } from "../../src/history/rounds-under-way.ts"
import { finishAbandoned, readAbandoned } from "../../src/rounds/finish-abandoned.ts"
import { allFacts, consistentRounds, quiet } from "../kit/consistency.ts"
import { endpoint, history, nth, publishMany, worker } from "../kit/engine.ts"
import { tellMissing } from "../kit/missing-fact.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { idsAt, paid, replayTo, upTo } from "./replaying.ts"

const { scenario } = onServer()

/** Replays, and dies when it comes to a step for the so manieth time. */
const breakOff = (id: string, step: string, arrival: number) =>
  Effect.gen(function* () {
    let arrivals = 0
    const broken = yield* Effect.exit(
      Effect.provideService(replayTo(id), Failpoint, (reached) => {
        if (reached === step && ++arrivals === arrival) throw new Error("dies here")
      })
    )
    assert.strictEqual(broken._tag, "Failure")
  })

describe.concurrent("a replay that was broken off", () => {
  for (const step of ["round-claimed", "round-stored"])
    scenario(
      `goes on with the same events, and sends none twice: at ${step}`,
      () =>
        Effect.gen(function* () {
          const hook = yield* receiver()
          yield* endpoint({ id: "old", types: ["none"] })
          const facts = yield* history
          yield* worker()
          yield* publishMany(40)
          yield* facts.planned(40)
          yield* endpoint({ id: "new", url: `${hook.url}/new` })
          yield* breakOff("new", step, 9)
          assert.isBelow(facts.of("replayed").length, 40)
          // The broker has forgotten the ids of what has come and gone.
          yield* quiet
          // Beyond the end of the first try: the second has the same end.
          const later = yield* Effect.sync(() => Date.now() + 1)
          yield* publishMany(3, "invoice.later")
          yield* facts.until(
            (all) =>
              all.filter(({ kind, type }) => kind === "delivered" && type === "invoice.later")
                .length === 3
          )
          const counts = yield* replayTo("new", { until: later + 60_000 })
          yield* consistentRounds
          assert.strictEqual(counts.before + counts.begun + counts.finished, 40)
          assert.isAbove(counts.begun, 0)
          assert.isAbove(counts.before, 0)
          assert.lengthOf(facts.of("replayed"), 40)
          const came = idsAt(hook, "/new").filter((id) => id.startsWith("invoice.paid"))
          assert.deepStrictEqual(came, paid(...upTo(40)))
        }),
      { moveDedupe: 100 }
    )

  scenario(
    "goes on with what it had claimed, though a watch has told of it as missing",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ id: "old", types: ["none"] })
        const facts = yield* history
        yield* worker()
        yield* publishMany(1)
        yield* facts.planned(1)
        yield* endpoint({ id: "new", url: `${hook.url}/new` })
        yield* breakOff("new", "round-claimed", 1)
        yield* facts.count("replayed", 1)
        yield* tellMissing(nth(facts.of("replayed"), 0))
        assert.deepInclude(yield* replayTo("new"), { begun: 0, finished: 1, before: 0 })
        yield* consistentRounds
        assert.deepStrictEqual(idsAt(hook, "/new"), paid(0))
      }),
    { moveDedupe: 100 }
  )

  scenario(
    "ends what it had claimed of an event that is not kept any more",
    () =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const hook = yield* receiver()
        yield* endpoint({ id: "old", types: ["none"] })
        const facts = yield* history
        yield* worker()
        yield* publishMany(1)
        yield* facts.planned(1)
        yield* endpoint({ id: "new", url: hook.url })
        yield* breakOff("new", "round-claimed", 1)
        yield* ask("forget the event", () => jsm.streams.purge(names.events))
        // A worker ends it, once it finds that its process has died.
        const waits = (yield* audit({})).judgement.tally
        assert.include(waits, { begun: 1, pending: 1, missing: 0 })

        const [left, ...others] = yield* readAbandoned
        assert.lengthOf(others, 0)
        const ends: Array<string> = []
        if (left !== undefined) yield* finishAbandoned(left, (_, begun) => ends.push(begun))
        assert.deepStrictEqual(ends, ["gone"])
        const [account] = yield* consistentRounds
        assert.deepInclude(nth(account?.ends ?? [], 0), { round: "rfirst", reason: "gone" })
        const { tally } = (yield* audit({})).judgement
        assert.include(tally, { begun: 1, deadLettered: 1, missing: 0 })
        assert.lengthOf(hook.requests, 0)
      }),
    { moveDedupe: 100 }
  )

  scenario(
    "is missing where nothing is stored of whoever began it, so that nobody ends it",
    () =>
      Effect.gen(function* () {
        yield* endpoint({ id: "old", types: ["none"] })
        const facts = yield* history
        yield* worker()
        yield* publishMany(1)
        yield* facts.planned(1)
        yield* endpoint({ id: "new" })
        yield* breakOff("new", "round-claimed", 1)
        for (const { instance } of yield* readAbandoned) yield* eraseUnderWay(instance)
        const { judgement } = yield* audit({})
        assert.strictEqual(judgement.verdict, "problems")
        assert.include(judgement.tally, { begun: 1, pending: 0, missing: 1 })
      }),
    { moveDedupe: 100 }
  )

  scenario(
    "gives what it had claimed for an endpoint that is gone its end, and begins no more",
    () =>
      Effect.gen(function* () {
        yield* endpoint({ id: "old", types: ["none"] })
        const facts = yield* history
        yield* worker()
        yield* publishMany(30)
        yield* facts.planned(30)
        yield* endpoint({ id: "new" })
        yield* pauseEndpoint({ tenant: "acme", endpoint: "new" }, undefined, "test")
        yield* breakOff("new", "round-claimed", 1)
        const claimed = (yield* allFacts).filter(({ kind }) => kind === "replayed").length
        yield* removeEndpoint("acme", "new")
        assert.isBelow(claimed, 30)
        for (const left of yield* readAbandoned) yield* finishAbandoned(left)
        assert.deepInclude(yield* replayTo("new"), { begun: 0, gone: 0 })
        const accounts = yield* consistentRounds
        assert.deepStrictEqual(
          accounts.flatMap(({ ends }) => ends.map(({ reason }) => reason)),
          Array.from({ length: claimed }, () => "endpoint-removed")
        )
      }),
    { moveDedupe: 100 }
  )
})
