import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import type { ConfigurationChange } from "../../src/domain/configuration.ts"
import type { Fact, Plan } from "../../src/domain/fact.ts"
import { disableEndpoint, enableEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { changeEndpoint, removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { Facts } from "../../src/history/facts.ts"
import { isClean, quiet } from "../kit/consistency.ts"
import {
  endpoint,
  erasableHistory,
  history,
  nth,
  publish,
  publishMany,
  worker
} from "../kit/engine.ts"
import { change, readByHand, writeByHand } from "../kit/live-endpoints.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 60_000 })

const { longScenario, scenario } = onServer()

/** What an audit finds, as kind, event and endpoint. */
const found = Effect.map(audit({}), ({ judgement }) =>
  judgement.problems.list
    .map(({ endpoint = "", eventSeq = 0, kind }) => `${kind} ${eventSeq} ${endpoint}`.trimEnd())
    .sort()
)

/** Two endpoints, and a third that wants something else; each event was delivered, and nobody works any more. */
const afterWork = Effect.gen(function* () {
  const hook = yield* receiver()
  const facts = yield* history
  yield* endpoint({ id: "all", url: hook.url })
  yield* endpoint({ id: "paid", url: hook.url, types: ["invoice.*"] })
  yield* endpoint({ id: "other", url: hook.url, types: ["order.>"] })
  yield* Effect.scoped(
    Effect.gen(function* () {
      yield* worker()
      yield* publishMany(4)
      yield* facts.count("delivered", 8)
    })
  )
  yield* isClean
  return { facts, url: hook.url }
})

/** Puts another plan in the place of an event's. */
const replan = (facts: ReadonlyArray<Fact>, eventSeq: number, plan: (plan: Plan) => Plan) =>
  Effect.gen(function* () {
    const { ask, jsm, names } = yield* natsClients
    const history = yield* Facts
    const fact = nth(
      facts.filter((fact) => fact.eventSeq === eventSeq && fact.plan !== undefined),
      0
    )
    assert(fact.plan !== undefined)
    const about = { seq: 0 }
    yield* ask("look for the plan", async () => {
      for (let seq = 1; about.seq === 0; seq++) {
        const message = await jsm.streams.getMessage(names.history, { seq })
        if (message?.json<Fact>().plan !== undefined && message.json<Fact>().eventSeq === eventSeq)
          about.seq = seq
      }
      await jsm.streams.deleteMessage(names.history, about.seq)
    })
    yield* history.append({ ...fact, plan: plan(fact.plan) }, `replan-${eventSeq}`)
  })

describe.concurrent("an audit that makes the plans again", () => {
  scenario("finds an endpoint that a plan leaves out, adds, or takes from another revision", () =>
    Effect.gen(function* () {
      yield* erasableHistory
      const { facts } = yield* afterWork
      const all = facts.plans()
      const other = nth(
        facts.changes.filter((fact) => fact.endpoint === "other"),
        0
      ).change
      assert(other?.now !== undefined)
      const { generation } = other.now
      const { revision } = other
      yield* replan(all, 1, (plan) => ({
        ...plan,
        endpoints: plan.endpoints
          .slice(0, 1)
          .map((each) => ({ ...each, deadline: each.deadline - 1 }))
      }))
      yield* replan(all, 2, (plan) => ({
        ...plan,
        endpoints: [...plan.endpoints, { id: "other", generation, revision, deadline: 0 }]
      }))
      // Before `paid` was there.
      yield* replan(all, 3, (plan) => ({ ...plan, directory: 1 }))
      yield* replan(all, 4, (plan) => ({
        ...plan,
        endpoints: plan.endpoints.map((each) => ({ ...each, revision: 99 }))
      }))
      const problems = (yield* found).filter((problem) => problem.startsWith("plan-"))
      assert.deepStrictEqual(problems, [
        "plan-adds 2 other",
        "plan-adds 3 paid",
        "plan-adds 3 paid",
        "plan-adds 4 all",
        "plan-adds 4 paid",
        "plan-deadline 1 all",
        "plan-deadline 2 other",
        "plan-omits 1 paid"
      ])
    })
  )

  scenario("finds a change that was made up", () =>
    Effect.gen(function* () {
      const { facts } = yield* afterWork
      const history = yield* Facts
      const real = nth(
        facts.changes.filter((fact) => fact.endpoint === "paid"),
        0
      )
      assert(real.change?.now !== undefined)
      const { now, revision, storedAt } = real.change
      const forged = {
        storedAt: storedAt + 1,
        revision: revision + 1,
        now: { ...now, types: ["x"] as const }
      }
      yield* history.append({ ...real, change: forged }, "forged")
      yield* history.append({ ...real, change: { ...forged, revision: 100 } }, "forged later")
      // The revision is another endpoint's, so no plan is judged by it.
      assert.deepStrictEqual(yield* found, [
        "configuration-conflict 0 paid",
        "configuration-differs 0 paid"
      ])
    })
  )

  scenario("finds a change that was made up under a revision that exists", () =>
    Effect.gen(function* () {
      const { facts } = yield* afterWork
      const history = yield* Facts
      let forgeries = 0
      const forge = (
        id: string,
        alter: (change: ConfigurationChange) => Partial<ConfigurationChange>,
        endpoint = id
      ) => {
        const real = nth(
          facts.changes.filter((fact) => fact.endpoint === id),
          0
        )
        assert(real.change !== undefined)
        const change = { ...real.change, ...alter(real.change) }
        return history.append({ ...real, endpoint, change }, `forged ${forgeries++}`)
      }
      const aimed = ({ now }: ConfigurationChange) =>
        now === undefined ? {} : { now: { ...now, origin: "https://elsewhere.example" } }
      // The same facts once more are no problem: a broker that lost its end may get them again.
      yield* forge("other", () => ({}))
      yield* isClean
      yield* forge("other", aimed)
      yield* forge("paid", (change) => ({ ...aimed(change), storedAt: change.storedAt + 1 }))
      yield* forge("all", ({ storedAt }) => ({ storedAt: storedAt - 1 }))
      yield* forge("all", () => ({}), "another")
      assert.deepStrictEqual(yield* found, [
        "configuration-conflict 0 all",
        "configuration-conflict 0 another",
        "configuration-conflict 0 other",
        "configuration-differs 0 paid"
      ])
    })
  )

  scenario("takes no offence at what was changed by hand, or while nobody worked", () =>
    Effect.gen(function* () {
      const { facts, url } = yield* afterWork
      const value = JSON.parse(yield* readByHand("acme.other"))
      yield* writeByHand("acme.other", JSON.stringify({ ...value, types: ["invoice.paid"] }))
      yield* endpoint({ id: "new", url })
      yield* removeEndpoint("acme", "all", "ana")
      yield* publishMany(2, "invoice.sent")
      yield* worker()
      yield* facts.planned(6)
      yield* writeByHand("acme.other", JSON.stringify({ ...value, types: ["order.>"] }))
      yield* writeByHand("acme.odd", "{")
      yield* facts.until(() => facts.changes.some(({ endpoint }) => endpoint === "odd"))
      yield* publish("invoice.late")
      yield* facts.planned(7)
      yield* quiet
      const told = facts.changes.map(({ by, change, endpoint }) => {
        const types =
          change?.now?.types.join(" ") ?? (change?.isUnreadable ? "unreadable" : "removed")
        return `${endpoint}: ${types}${by === undefined ? "" : ` by ${by}`}`
      })
      assert.sameMembers(told, [
        "all: >",
        "paid: invoice.*",
        "other: order.>",
        "other: invoice.paid",
        "new: >",
        "all: removed by ana",
        "other: order.>",
        "odd: unreadable"
      ])
      const { reading, judgement } = yield* audit({})
      assert.deepStrictEqual(judgement.problems.list, [])
      assert.strictEqual(judgement.verdict, "clean")
      assert.strictEqual(reading.planCheck.recomputed, 7)
    })
  )

  longScenario("never cries wolf beside workers, kills and changes", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const facts = yield* history
      const ids = ["a", "b", "c", "d", "e"]
      yield* Effect.forEach(ids, (id) => endpoint({ id, url: hook.url }))
      const start = (id: string) => workerProcess(place, { id, leaseTtl: 2_000 })
      const first = yield* start("first")
      const second = yield* start("second")
      yield* first.delivering
      yield* second.delivering
      let isOver = false
      const until = <E, R>(effect: Effect.Effect<unknown, E, R>) =>
        Effect.forkScoped(
          Effect.whileLoop({ while: () => !isOver, body: () => effect, step: () => {} })
        )
      let turn = 0
      let round = 0
      const publishing = yield* until(Effect.suspend(() => publishMany(3, `invoice.n${round++}`)))
      const changing = yield* until(
        Effect.suspend(() => {
          const id = ids[turn++ % ids.length] ?? ""
          const target = { tenant: "acme", endpoint: id }
          switch (turn % 4) {
            case 0:
              return change(id, { types: ["order.>"] })
            case 1:
              return change(id, { types: ["invoice.>", "order.paid"] })
            case 2:
              return disableEndpoint(target, "asked to", "cli")
            default:
              return enableEndpoint(target, "cli")
          }
        })
      )
      const audits = yield* until(isClean)
      // Each of the four changes is made to each of the five endpoints, before and after the kill.
      yield* facts.until(() => facts.changes.length > 20)
      yield* first.kill9
      const third = yield* start("third")
      yield* third.delivering
      const changes = facts.changes.length
      yield* facts.until(() => facts.changes.length > changes + 20)
      isOver = true
      yield* Fiber.joinAll([publishing, changing, audits])
      yield* Effect.forEach(ids, (id) =>
        changeEndpoint("acme", id, ({ disabled: _, ...rest }) => Effect.succeed(rest))
      )
      yield* quiet
      yield* isClean
    })
  )
})
