import { assert, describe } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { readSurvey } from "../../src/delivery/introspection/survey.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { conditionsOf } from "../../src/operations/status/status-conditions.ts"
import { announceBypass, readBypass, readBypassFloor } from "../../src/routing/bypass-store.ts"
import { endpoint, history, publishTo, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** Waits until there is a bypass in a state. */
const bypassThat = (is: (bypass: Effect.Success<typeof readBypass>["bypass"]) => boolean) =>
  Effect.map(readBypass, ({ bypass }) => bypass).pipe(
    Effect.repeat({ until: is, schedule: Schedule.spaced(200) })
  )

const publishSome = (tenant: string, from: number, count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => from + n),
    (n) => publishTo(`${tenant}.invoice.paid`, `${n}`, { "Nats-Msg-Id": `${tenant}-${n}` }),
    { concurrency: 8, discard: true }
  )

describe("a bypass", () => {
  scenario("carries one tenant's events, which the routers' own consumer passes over", () =>
    Effect.gen(function* () {
      const { consumerInfo, names, streamInfo } = yield* Broker
      const calm = yield* receiver()
      const busy = yield* receiver()
      yield* endpoint({ tenant: "calm", url: calm.url })
      yield* endpoint({ tenant: "busy", url: busy.url })
      const facts = yield* history
      yield* worker({ id: "w1" })
      yield* worker({ id: "w2" })
      yield* publishSome("calm", 0, 10)
      yield* publishSome("busy", 0, 10)
      yield* facts.count("delivered", 20)

      yield* announceBypass(yield* readBypass, { flooding: ["busy"], passing: ["calm"] })
      // Nobody knows yet who routes these.
      yield* publishSome("calm", 10, 10)
      const open = yield* bypassThat((bypass) => bypass?.from !== undefined)
      assert.deepStrictEqual((yield* readSurvey).bypass, open)
      // It begins some events after the last one that was handed out.
      const { state: before } = yield* streamInfo("look", names.events)
      yield* publishSome("nobody", 0, (open?.from ?? 0) - before.last_seq)
      yield* publishSome("calm", 20, 30)
      yield* publishSome("busy", 20, 30)
      yield* facts.count("delivered", 90)

      // It closes by itself, as nothing waits, and goes on until its end.
      yield* bypassThat((bypass) => bypass?.until !== undefined)
      yield* publishSome("calm", 50, 10)
      yield* facts.count("delivered", 100)
      const passed = yield* consumerInfo("look", names.events, open?.consumer ?? "")
      assert.strictEqual(passed.delivered.consumer_seq, 40)
      // All is routed up to the floor of the routers' consumer, and so is the audit's word.
      const { state } = yield* streamInfo("look", names.events)
      const main = yield* consumerInfo("look", names.events, names.routerConsumer).pipe(
        Effect.repeat({
          until: ({ ack_floor }) => ack_floor.stream_seq >= state.last_seq,
          schedule: Schedule.spaced(200)
        })
      )
      assert.strictEqual(main.ack_floor.stream_seq, state.last_seq)
      const { judgement } = yield* audit({})
      assert.deepStrictEqual(judgement.problems.list, [])
      assert.strictEqual(judgement.tally.repeated, 0)
      assert.lengthOf(calm.requests, 60)
      assert.lengthOf(busy.requests, 40)
    })
  )

  scenario("waits for what its consumer was made to leave out, and says so", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const hook = yield* receiver()
      for (const tenant of ["calm", "other", "busy"]) yield* endpoint({ tenant, url: hook.url })
      const facts = yield* history
      yield* worker({ id: "w1" })
      const flood = { flooding: ["busy"], passing: ["calm", "other"] }
      yield* announceBypass(yield* readBypass, flood)
      const open = yield* bypassThat((bypass) => bypass?.from !== undefined)
      const { consumer = "", from = 0 } = open ?? {}
      const change = { filter_subjects: [names.subjects.eventsOf("other")] }
      yield* ask("change", () => jsm.consumers.update(names.events, consumer, change))
      yield* publishSome("nobody", 0, from)
      yield* publishSome("calm", 0, 10)
      yield* publishSome("other", 0, 10)
      yield* facts.count("delivered", 10)
      const survey = yield* readSurvey
      const { problems } = conditionsOf(survey)
      assert.deepStrictEqual(
        problems.map(({ code }) => code),
        ["consumer-changed"]
      )
      assert.include(
        problems[0]?.text,
        `the consumer ${consumer} of ${names.events} was changed with another tool (filter_subjects), `
      )
      assert.isUndefined(open && (yield* readBypassFloor(open)))

      yield* ask("remove", () => jsm.consumers.delete(names.events, consumer))
      yield* facts.count("delivered", 20)
      assert.lengthOf(hook.requests, 20)
    })
  )
})
