import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { vi } from "vitest"
import type { AlertRecord } from "../../src/alerts/alert-store.ts"
import { alertKey, listAlerts, storeTenantThresholds } from "../../src/alerts/alert-store.ts"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { eraseValue, writeValue } from "../../src/broker/values.ts"
import type { Alert, AlertName, DeadLetterAttempts } from "../../src/domain/alert.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { disableEndpoint, enableEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { consistentRounds } from "../kit/consistency.ts"
import {
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishMany,
  quickRetry,
  secret,
  worker
} from "../kit/engine.ts"
import { readByHand, writeByHand } from "../kit/live-endpoints.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"
import { plannedFor } from "./replaying.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

const quick = { window: "2 seconds", samples: 5 } as const
const alertEvery = 100
const once = quickRetry({ maxAttempts: 1 })
const raisedType = "petrel.alert.dead-letters"
const ownTypes = "types whose first token is petrel belong to Petrel's own events: choose another"

type DeadLetterAttempt = DeadLetterAttempts["attempts"][number]

/** Raisings and clearings by alert: `success-low` as `raised` or `cleared`. */
const story = (facts: ReadonlyArray<Fact>, name: AlertName, id = "hook") =>
  facts
    .filter(({ alert, endpoint }) => alert?.name === name && endpoint === id)
    .map(({ kind }) => kind.replace("alert-", ""))

/** The first that was told of an endpoint's alert; there may be one of the same name about its tenant. */
const told = (
  facts: ReadonlyArray<Fact>,
  name: AlertName,
  kind: Fact["kind"] = "alert-raised",
  id = "hook"
) =>
  nth(
    facts.filter((fact) => fact.alert?.name === name && fact.kind === kind && fact.endpoint === id),
    0
  )

describe.concurrent("an alert about an endpoint", () => {
  scenario("is raised once and cleared once, though its owner changes meanwhile", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      // Longer than it takes one owner to follow another on a loaded machine: nothing bad is quiet.
      const alerts = { ...quick, window: "6 seconds", deadLetters: "off" } as const
      const heard: Array<string> = []
      connection.subscribe(names.subjects.failures("acme", "hook", "alert-raised"), {
        callback: (_, message) => {
          heard.push(/alert_[^"]+/.exec(message.string())?.[0] ?? "")
        }
      })
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({ url: hook.url, retry: once, alerts, contact: "ops@acme.example" })
      const facts = yield* history
      const first = yield* worker({ alertEvery })
      yield* publishMany(30, "a")
      yield* facts.until((all) => story(all, "success-critical").length === 1)
      yield* first.stop

      yield* worker({ id: "w2", alertEvery })
      yield* publishMany(30, "b")
      yield* facts.count("dead-lettered", 60)
      hook.answer({ status: 200 })
      yield* publishMany(10, "c")
      yield* facts.until((all) => story(all, "success-critical").length === 2)
      assert.deepStrictEqual(story(facts.facts, "success-critical"), ["raised", "cleared"])
      const critical = told(facts.facts, "success-critical")
      assert.deepInclude(critical.alert, {
        about: "endpoint",
        level: "critical",
        value: 0,
        threshold: 95,
        unit: "percent",
        windowMs: 6_000,
        contact: "ops@acme.example",
        lastStatus: 503
      })
      assert.isAtLeast(critical.alert?.failuresInRow ?? 0, 5)
      const cleared = told(facts.facts, "success-critical", "alert-cleared")
      assert.strictEqual(cleared.alert?.id, critical.alert?.id)
      assert.strictEqual(cleared.worker, "w2")
      yield* eventually(listAlerts("raised.endpoint.>"), (all) => all.length === 0)
      const raised = facts.of("alert-raised").filter(({ endpoint }) => endpoint === "hook")
      assert.deepStrictEqual(
        heard,
        raised.map(({ alert }) => alert?.id)
      )
    })
  )

  scenario("says that its circuit has opened, until it has been closed for a whole window", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({
        url: hook.url,
        retry: quickRetry({ maxAttempts: 100 }),
        alerts: { window: "1 second" },
        circuit: { failures: 3, coolDown: "200 millis", maxCoolDown: "300 millis", successes: 1 }
      })
      const facts = yield* history
      yield* worker({ alertEvery })
      yield* publishMany(5, "a")
      yield* facts.count("circuit-opened", 4)
      assert.deepStrictEqual(story(facts.facts, "circuit-opened"), ["raised"])
      hook.answer({ status: 200 })
      yield* facts.until((all) => story(all, "circuit-opened").length === 2)
      const closed = nth(facts.of("circuit-closed"), 0)
      assert.isAtLeast(told(facts.facts, "circuit-opened", "alert-cleared").at, closed.at + 500)
    })
  )

  scenario("says that it is disabled, and none stays of one that is removed", () =>
    Effect.gen(function* () {
      yield* storeTenantThresholds("acme", { contact: "ops" })
      yield* endpoint({ alerts: {} })
      yield* endpoint({ id: "other", alerts: {}, contact: "ana" })
      const facts = yield* history
      yield* worker({ alertEvery })
      for (const id of ["hook", "other"])
        yield* disableEndpoint({ tenant: "acme", endpoint: id }, "by hand", "cli")
      yield* facts.count("alert-raised", 2)
      const contacts = facts.of("alert-raised").map((fact) => [fact.endpoint, fact.alert?.contact])
      assert.deepStrictEqual(Object.fromEntries(contacts), { hook: "ops", other: "ana" })
      yield* enableEndpoint({ tenant: "acme", endpoint: "hook" }, "cli")
      yield* removeEndpoint("acme", "other")
      yield* facts.count("alert-cleared", 2)
      assert.deepStrictEqual(story(facts.facts, "endpoint-disabled"), ["raised", "cleared"])
      assert.deepStrictEqual(story(facts.facts, "endpoint-disabled", "other"), [
        "raised",
        "cleared"
      ])
    })
  )

  scenario(
    "stays where nobody can read the endpoint's configuration, until somebody can",
    () =>
      Effect.gen(function* () {
        yield* endpoint({ alerts: {} })
        yield* endpoint({ id: "other", alerts: {} })
        const facts = yield* history
        const first = yield* worker({ alertEvery })
        yield* disableEndpoint({ tenant: "acme", endpoint: "hook" }, "by hand", "cli")
        yield* facts.count("alert-raised", 1)
        yield* first.stop
        const good = yield* readByHand("acme.hook")
        yield* writeByHand("acme.hook", JSON.stringify({ ...JSON.parse(good), v: 2 }))
        yield* worker({ id: "w2", alertEvery })
        const other = { tenant: "acme", endpoint: "other" }
        yield* disableEndpoint(other, "by hand", "cli")
        yield* facts.count("alert-raised", 2)
        yield* enableEndpoint(other, "cli")
        yield* facts.until((all) => story(all, "endpoint-disabled", "other").length === 2)
        assert.deepStrictEqual(story(facts.facts, "endpoint-disabled"), ["raised"])

        yield* writeByHand("acme.hook", good)
        yield* enableEndpoint({ tenant: "acme", endpoint: "hook" }, "cli")
        yield* facts.until((all) => story(all, "endpoint-disabled").length === 2)
        const cleared = facts.of("alert-cleared").find(({ endpoint }) => endpoint === "hook")
        assert.strictEqual(cleared?.reason, "it is well again")
      }),
    // So that both endpoints are judged at the same looks.
    { partitions: 1 }
  )

  scenario("that a former owner wrote when its successor had begun is told, and cleared", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const made = yield* endpoint({ alerts: quick })
      yield* endpoint({ id: "other", alerts: {} })
      const facts = yield* history
      yield* worker({ alertEvery })
      const other = { tenant: "acme", endpoint: "other" }
      yield* disableEndpoint(other, "by hand", "cli")
      yield* facts.count("alert-raised", 1)

      const alert: Alert = {
        id: "alert_late",
        name: "dead-letters",
        about: "endpoint",
        level: "warn",
        threshold: 1,
        unit: "dead letters",
        windowMs: 2_000,
        raisedAt: 1
      }
      const named = { tenant: "acme", endpoint: "hook" }
      const unrecorded: Fact = { v: 1, kind: "alert-raised", at: 1, ...named, alert, worker: "w0" }
      const { generation } = made.endpoint
      const record: AlertRecord = { v: 1, generation, raised: [alert], unrecorded }
      yield* writeValue(names.buckets.alerts, alertKey(named), JSON.stringify(record))
      yield* facts.until((all) => story(all, "dead-letters").length === 2)
      assert.deepStrictEqual(story(facts.facts, "dead-letters"), ["raised", "cleared"])
      assert.strictEqual(told(facts.facts, "dead-letters").worker, "w0")
      const cleared = told(facts.facts, "dead-letters", "alert-cleared")
      assert.strictEqual(cleared.reason, "nothing of that kind for a whole window")

      // What it has cleared so late is raised anew where it is as bad as before.
      yield* eraseValue(names.buckets.alerts, alertKey(other))
      yield* facts.until((all) => story(all, "endpoint-disabled", "other").length === 2)
      assert.deepStrictEqual(story(facts.facts, "endpoint-disabled", "other"), ["raised", "raised"])
    })
  )

  scenario("is not raised for three deliveries of which one fails, nor where nobody wants it", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({
        answer: ({ body }) => ({ status: body.toString() === "1" ? 503 : 200 })
      })
      yield* endpoint({ url: hook.url, alerts: { window: "10 seconds", deadLetters: "off" } })
      yield* endpoint({ id: "silent", url: hook.url, retry: once, alerts: "off" })
      const facts = yield* history
      const { stop } = yield* worker({ alertEvery })
      yield* publishMany(3, "a")
      yield* facts.count("dead-lettered", 2)
      yield* stop
      assert.deepStrictEqual(facts.of("alert-raised"), [])
    })
  )
})

describe.concurrent("what is wrong with one endpoint", () => {
  scenario("is one alert, the worst, told once with each change, until all of it is over", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const heard: Array<Fact> = []
      connection.subscribe(names.subjects.failures("*", "*", "alert-raised"), {
        callback: (_, message) => {
          heard.push(message.json<Fact>())
        }
      })
      const [hook, ops] = [yield* receiver({ answer: { status: 401 } }), yield* receiver()]
      const statuses = {
        "401": { retry: { attempts: 1_000, window: "1 minute" }, alert: 3 }
      } as const
      const backoff = { kind: "fixed", delay: "200 millis" } as const
      const retry = quickRetry({ backoff, maxAttempts: 1_000, statuses })
      yield* endpoint({
        url: hook.url,
        types: ["a"],
        retry,
        alerts: { ...quick, window: "8 seconds" }
      })
      yield* endpoint({ id: "ops", url: ops.url, types: ["petrel.alert.>"], alerts: "off" })
      yield* storeTenantThresholds("acme", { samples: 1_000 })
      const facts = yield* history
      yield* worker({ alertEvery })
      const told = () => facts.of("alert-raised", "alert-cleared")
      yield* publishMany(30, "a")
      yield* facts.until((all) => story(all, "success-critical").length === 1)
      // Each further reading is as bad as before by now.
      yield* facts.count("attempt-failed", 40)
      const first = nth(told(), 0).alert
      assert.include(
        [["success-critical"], ["status-repeated", "success-critical"]].map(String),
        String(told().map(({ alert }) => alert?.name))
      )
      const worst = facts.of("alert-raised").at(-1)?.alert
      assert.includeMembers([...(worst?.also ?? [])], ["success-low", "status-repeated"])
      assert.strictEqual(worst?.replaces, first === worst ? undefined : "status-repeated")

      hook.answer({ status: 200 })
      yield* facts.count("alert-cleared", 1)
      yield* ops.received(told().length)
      yield* consistentRounds
      // What remains for a moment, such as many retries, is told as the same alert.
      assert.deepStrictEqual([...new Set(told().map(({ alert }) => alert?.id))], [first?.id])
      assert.strictEqual(told().at(-1)?.kind, "alert-cleared")
      yield* eventually(listAlerts("raised.endpoint.>"), (all) => all.length === 0)
      assert.deepStrictEqual(
        heard.map(({ alert }) => alert?.name),
        facts.of("alert-raised").map(({ alert }) => alert?.name)
      )
      yield* ops.received(told().length)
      const states = ops.requests.map(({ body }) => JSON.parse(body.toString()).data)
      assert.sameMembers(
        states.map(({ name, state }) => `${state} ${name}`),
        told().map(({ alert, kind }) => `${kind.replace("alert-", "")} ${alert?.name}`)
      )
    })
  )
})

describe.concurrent("an alert about a tenant", () => {
  scenario("sums up what all owners have counted, and follows what is set for the tenant", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({
        answer: ({ path }) => ({ status: path === "/bad" ? 400 : 200 })
      })
      yield* storeTenantThresholds("acme", {
        successCriticalPercent: "off",
        samples: 30,
        contact: "ops@acme.example"
      })
      for (const id of ["a", "b", "c", "d"]) yield* endpoint({ id, url: hook.url, alerts: "off" })
      yield* endpoint({ id: "bad", url: `${hook.url}/bad`, alerts: "off" })
      const facts = yield* history
      yield* worker({ alertEvery })
      yield* worker({ id: "w2", alertEvery })
      yield* publishMany(10, "x")
      yield* facts.count("alert-raised", 1)
      const { alert, endpoint: about, tenant } = nth(facts.of("alert-raised"), 0)
      assert.deepStrictEqual([tenant, about], ["acme", "_"])
      const contact = "ops@acme.example"
      assert.deepInclude(alert, { name: "success-low", about: "tenant", threshold: 99, contact })
      // 80 in the end; it is raised as soon as there are samples enough.
      assert.isBelow(alert?.value ?? 100, 95)
      yield* eventually(
        Effect.map(listAlerts("raised.tenant.*"), (all) => all[0]?.record.unrecorded),
        (unrecorded) => unrecorded === undefined
      )
      assert.strictEqual(facts.of("alert-raised").length, 1)
    })
  )
})

describe.concurrent("the operational endpoint of a tenant", () => {
  scenario(
    "gets alerts of its tenant as signed events, and none about itself; nobody else does",
    () =>
      Effect.gen(function* () {
        const bad = yield* receiver({ answer: { status: 400 } })
        const ops = yield* receiver()
        const all = yield* receiver()
        const alerts = { ...quick, samples: 100 }
        yield* endpoint({ id: "bad", url: bad.url, types: ["a"], alerts, contact: "ana" })
        yield* endpoint({ id: "all", url: all.url, types: [">"] })
        yield* endpoint({ id: "ops", url: ops.url, types: ["petrel.alert.>", "b"], alerts })
        const facts = yield* history
        yield* worker({ alertEvery })
        yield* publish("a")
        yield* ops.received(1)
        const { body, headers } = nth(ops.requests, 0)
        const names = Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, String(value)])
        )
        const event = new Webhook(secret).verify(body.toString(), names)
        const raised = nth(facts.of("alert-raised"), 0)
        assert.deepStrictEqual(event, {
          type: raisedType,
          timestamp: new Date(raised.at).toISOString(),
          data: { state: "raised", tenant: "acme", endpoint: "bad", ...raised.alert }
        })
        assert.strictEqual(raised.alert?.contact, "ana")

        ops.answer({ status: 400 })
        yield* publish("b")
        yield* facts.until((all) => story(all, "dead-letters", "ops").length === 2)
        yield* facts.until((all) => story(all, "dead-letters", "bad").length === 2)
        // An alert is an event soon after it is told: a and b, and that the first is over.
        yield* facts.count("dead-lettered", 3)
        yield* consistentRounds
        const types = facts.plans().map(({ type }) => type)
        assert.deepStrictEqual(types.toSorted(), ["a", "b", raisedType, raisedType])
        assert.strictEqual(all.requests.length, 2)
        const { judgement } = yield* audit({ tenant: "acme" })
        assert.strictEqual(judgement.events.stored, 4)
        const again = (...types: ReadonlyArray<string>) =>
          Effect.map(plannedFor("ops", { types }), ({ types }) => types)
        assert.deepStrictEqual(yield* again("petrel.alert.*"), [[raisedType, 2]])
        assert.deepStrictEqual(yield* again("petrel.>", "b"), [
          [raisedType, 2],
          ["b", 1]
        ])
        assert.deepStrictEqual(yield* again(">"), [
          ["a", 1],
          ["b", 1]
        ])
      })
  )

  scenario(
    "gets the attempts of the delivery that was given up, also as a message for a chat",
    () =>
      Effect.gen(function* () {
        const bad = yield* receiver({ answer: byAttempt(503, 503, 500) })
        const [ops, chat] = [yield* receiver(), yield* receiver()]
        const retry = quickRetry({ maxAttempts: 3 })
        yield* endpoint({ id: "bad", url: bad.url, types: ["a"], retry, alerts: {} })
        yield* endpoint({ id: "ops", url: ops.url, types: [raisedType] })
        const chats = { id: "chat", url: chat.url, format: "slack", sign: "none" } as const
        yield* endpoint({ ...chats, types: [raisedType] })
        yield* worker({ alertEvery })
        yield* publish("a")
        yield* Effect.all([ops.received(1), chat.received(1)])
        const { data } = JSON.parse(nth(ops.requests, 0).body.toString())
        assert.deepInclude(data.lastDeadLetter, {
          delivery: `${nth(bad.requests, 0).headers["webhook-id"]}.bad`,
          type: "a",
          reason: "attempts"
        })
        assert.deepStrictEqual(
          data.lastDeadLetter.attempts.map(({ attempt, status }: DeadLetterAttempt) => [
            attempt,
            status
          ]),
          [
            [1, 503],
            [2, 503],
            [3, 500]
          ]
        )
        const { body, headers } = nth(chat.requests, 0)
        assert.include(JSON.parse(body.toString()).text, "after 503 ×2, 500 (reason: attempts)")
        assert.notProperty(headers, "webhook-signature")
      })
  )

  scenario("gets no alert that a publisher made up", () =>
    Effect.gen(function* () {
      const ops = yield* receiver()
      yield* endpoint({ id: "ops", url: ops.url, types: ["petrel.>", "petrel"] })
      const facts = yield* history
      yield* worker()
      for (const type of [raisedType, "petrel"]) {
        const { seq } = yield* publish(type, `{"type":"${type}"}`)
        yield* facts.until((all) =>
          all.some(({ eventSeq, kind }) => eventSeq === seq && kind !== "routed")
        )
      }
      assert.deepStrictEqual(
        facts.facts.map(({ kind, reason }) => [kind, reason]),
        [1, 2].map(() => ["unroutable", ownTypes])
      )
      yield* consistentRounds
      assert.lengthOf(ops.requests, 0)
    })
  )

  scenario("gets no alert that the broker was made to publish, as its answer to a publisher", () =>
    Effect.gen(function* () {
      const ops = yield* receiver()
      yield* endpoint({ id: "ops", url: ops.url, types: ["petrel.>"] })
      const facts = yield* history
      yield* worker()
      const { connection, names } = yield* natsClients
      connection.publish(names.subjects.event("acme", "a"), "{}", {
        reply: names.subjects.alertEvent("acme", raisedType)
      })
      yield* facts.until((all) =>
        all.some(({ eventSeq, kind }) => eventSeq === 2 && kind !== "routed")
      )
      const about = facts.facts.filter(({ eventSeq }) => eventSeq === 2)
      assert.deepStrictEqual(
        about.map(({ kind, reason, tenant }) => [kind, reason, tenant]),
        [["unroutable", "it has no id, which each event of Petrel's own has", "acme"]]
      )
      yield* consistentRounds
      assert.deepStrictEqual((yield* plannedFor("ops", { types: ["petrel.>"] })).types, [])
      assert.lengthOf(ops.requests, 0)
    })
  )
})
