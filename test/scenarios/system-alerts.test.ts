import { assert, describe } from "@effect/vitest"
import { Clock, Duration, Effect } from "effect"
import { vi } from "vitest"
import type { AlertRecord } from "../../src/alerts/alert-store.ts"
import {
  alertKey,
  listAlerts,
  storeSystemThresholds,
  storeTenantThresholds
} from "../../src/alerts/alert-store.ts"
import { Broker } from "../../src/broker/broker.ts"
import { writeValue } from "../../src/broker/values.ts"
import {
  forgetOutbox,
  type OutboxReport,
  OutboxReporter
} from "../../src/cluster/outbox-reports.ts"
import { type ReconcileReport, writeReconcileReport } from "../../src/cluster/reconcile-reports.ts"
import { readSurvey } from "../../src/delivery/introspection/survey.ts"
import type { Alert, AlertName } from "../../src/domain/alert.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { Facts } from "../../src/history/facts.ts"
import { testAlert } from "../../src/operations/alerts/alerts.ts"
import { discard, listQuarantined } from "../../src/operations/sources/manage-quarantine.ts"
import { statusOf } from "../../src/operations/status/status-report.ts"
import { zonedTime } from "../../src/text/quantities.ts"
import {
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishMany,
  publishTo,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { startGateway, stripeEvent, stripeSource, stripeWebhook } from "../kit/gateway.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { crashAt } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

const alertEvery = 50
const window = Duration.seconds(2)

const story = (facts: ReadonlyArray<Fact>, name: AlertName) =>
  facts.filter(({ alert }) => alert?.name === name).map(({ kind }) => kind.replace("alert-", ""))

describe.concurrent("an alert about the system", () => {
  scenario("tells that more waits than goes out, until no more waits than a window ago", () =>
    Effect.gen(function* () {
      const named = { tenant: "acme", endpoint: "hook" }
      yield* storeSystemThresholds({ waitingGrowth: 50, window })
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      yield* pauseEndpoint(named, undefined, "cli")
      const facts = yield* history
      yield* worker({ alertEvery })
      let rounds = 0
      const more = Effect.suspend(() => publishMany(10, `a${rounds++}`))
      yield* eventually(more, () => facts.of("alert-raised").length > 0)
      const raised = nth(facts.of("alert-raised"), 0)
      assert.deepStrictEqual([raised.tenant, raised.endpoint], ["_", "_"])
      assert.deepInclude(raised.alert, { name: "waiting-growing", about: "system", threshold: 50 })
      assert.isAtLeast(raised.alert?.value ?? 0, 50)
      const { alerts } = yield* readSurvey
      assert.deepStrictEqual(
        alerts.map(({ alert }) => alert.name),
        ["waiting-growing"]
      )
      yield* resumeEndpoint(named, "cli")
      yield* facts.count("alert-cleared", 1)
      assert.deepStrictEqual(story(facts.facts, "waiting-growing"), ["raised", "cleared"])
    })
  )

  scenario("counts the dead letters of a tenant and of all, apart from those of an endpoint", () =>
    Effect.gen(function* () {
      // A look that a busy machine delays still sees all six.
      yield* storeSystemThresholds({
        ...{ tenantDeadLetters: 4, systemDeadLetters: 6 },
        window: Duration.seconds(5)
      })
      const hook = yield* receiver({ answer: { status: 503 } })
      const retry = quickRetry({ maxAttempts: 1 })
      yield* endpoint({ id: "one", url: hook.url, types: ["a"], retry, alerts: { deadLetters: 1 } })
      yield* endpoint({ id: "two", url: hook.url, types: ["b"], retry })
      const facts = yield* history
      yield* worker({ alertEvery })
      for (let n = 0; n < 3; n++) yield* publish("a")
      yield* facts.until((all) => story(all, "dead-letters").length === 1)
      assert.deepStrictEqual(story(facts.facts, "tenant-dead-letters"), [])
      for (let n = 0; n < 6; n++) yield* publish("b")
      yield* facts.until((all) => story(all, "tenant-dead-letters").length === 2)
      yield* facts.until((all) => story(all, "system-dead-letters").length === 2)
      const named = (name: AlertName) =>
        facts.of("alert-raised").find(({ alert }) => alert?.name === name)
      assert.deepInclude(named("tenant-dead-letters"), { tenant: "acme", endpoint: "_" })
      assert.deepInclude(named("system-dead-letters"), { tenant: "_", endpoint: "_" })
      assert.isAtLeast(named("tenant-dead-letters")?.alert?.value ?? 0, 4)
      assert.isAtLeast(named("system-dead-letters")?.alert?.value ?? 0, 6)
    })
  )

  scenario(
    "goes to the operational endpoints of the tenant that is named for it, and a test too",
    () =>
      Effect.gen(function* () {
        const ops = yield* receiver()
        yield* storeSystemThresholds({
          ...{ systemDeadLetters: 1, systemAlertsTo: "platform" },
          window: Duration.minutes(1)
        })
        const hook = yield* receiver({ answer: { status: 410 } })
        yield* endpoint({ url: hook.url, alerts: { deadLetters: "off" } })
        yield* endpoint({ tenant: "platform", id: "ops", url: ops.url, types: ["petrel.alert.>"] })
        yield* worker({ alertEvery })
        const heard: Array<unknown> = []
        const { listen, names } = yield* Broker
        listen(names.subjects.failures("*", "*", "alert-raised"), (message) =>
          heard.push(message.json<Fact>().alert?.id)
        )
        const { alert, event, ...sent } = yield* testAlert(undefined, "ana")
        const subject = names.subjects.failures("_", "_", "alert-raised")
        assert.deepStrictEqual(sent, { subject, tenant: "platform", endpoints: [{ id: "ops" }] })
        yield* ops.received(1)
        assert.deepStrictEqual(heard, [alert.id])
        const test = nth(ops.requests, 0)
        assert.strictEqual(test.headers["webhook-id"], event)
        assert.deepInclude(JSON.parse(test.body.toString()), { type: "petrel.alert.test" })
        yield* publish("a")
        yield* ops.received(2)
        const { data, type } = JSON.parse(nth(ops.requests, 1).body.toString())
        assert.strictEqual(type, "petrel.alert.system-dead-letters")
        assert.deepInclude(data, { about: "system", state: "raised" })
        assert.notProperty(data, "tenant")
      })
  )

  scenario("tells of events that no router takes, until they are routed", () =>
    Effect.gen(function* () {
      yield* storeSystemThresholds({ unroutedTime: Duration.seconds(1), window })
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      yield* worker({ roles: ["deliver"], alertEvery })
      yield* publish("a")
      yield* facts.until((all) => story(all, "events-unrouted").length === 1)
      const raised = facts.of("alert-raised")[0]?.alert
      assert.deepInclude(raised, { about: "system", level: "critical", threshold: 1_000 })
      const { problems } = statusOf(Object.assign(yield* readSurvey, { at: Date.now() + 31_000 }))
      assert.includeMembers(
        problems.map(({ code }) => code),
        ["no-router", "routing-stopped"]
      )
      yield* worker({ id: "router", roles: ["router"] })
      yield* facts.until((all) => story(all, "events-unrouted").length === 2)
      const after = statusOf(Object.assign(yield* readSurvey, { at: Date.now() + 31_000 }))
      assert.deepStrictEqual(after.problems, [])
    })
  )

  scenario("tells of an outbox that waits, whose relay is silent, or with rows set aside", () =>
    Effect.gen(function* () {
      yield* storeSystemThresholds({ window })
      const facts = yield* history
      yield* worker({ alertEvery })
      const reporter = new OutboxReporter()
      const told = (changes: Partial<OutboxReport>) =>
        Effect.flatMap(Clock.currentTimeMillis, (at) => {
          const well = { v: 1, name: "shop", at, relay: "r", pending: 0, oldestMs: 0, setAside: 0 }
          return reporter.write({ ...well, ...changes } as OutboxReport, true)
        })
      const times = (name: AlertName, count: number) =>
        facts.until((all) => story(all, name).length === count)
      yield* told({ pending: 5, oldestMs: 61_000 })
      yield* times("outbox-stuck", 1)
      const raised = facts.of("alert-raised")[0]?.alert
      assert.deepInclude(raised, { about: "system", level: "critical", threshold: 60_000 })
      yield* told({})
      yield* times("outbox-stuck", 2)
      yield* told({ problem: "the database is away", problemMs: 61_000 })
      yield* times("outbox-stuck", 3)
      yield* told({})
      yield* times("outbox-stuck", 4)
      yield* told({ at: Date.now() - 61_000 })
      yield* times("outbox-stuck", 5)
      assert.isTrue(yield* forgetOutbox("shop"))
      assert.isFalse(yield* forgetOutbox("shop"))
      yield* times("outbox-stuck", 6)
      yield* told({}).pipe(Effect.repeat({ times: 1 }))
      yield* told({ setAside: 2 })
      yield* times("outbox-set-aside", 1)
      yield* told({})
      yield* times("outbox-set-aside", 2)
      assert.lengthOf(story(facts.facts, "outbox-stuck"), 6)
    })
  )

  scenario("about a tenant is not over while a circuit keeps its deliveries back", () =>
    Effect.gen(function* () {
      yield* storeSystemThresholds({ samples: 5, window })
      const hook = yield* receiver({ answer: { status: 503 } })
      const rest = { url: hook.url, retry: quickRetry({ maxAttempts: 1 }), alerts: "off" } as const
      const circuit = { coolDown: "1 hour", maxCoolDown: "1 hour" }
      yield* endpoint({ id: "kept-back", ...rest, circuit: { ...circuit, failures: 5 } })
      yield* endpoint({ tenant: "other", ...rest, circuit: { ...circuit, failures: 1_000 } })
      const facts = yield* history
      const storyOf = (all: ReadonlyArray<Fact>, tenant: string) =>
        story(
          all.filter((fact) => fact.tenant === tenant),
          "success-critical"
        )
      yield* worker({ alertEvery })
      yield* publishMany(5)
      yield* facts.count("circuit-opened", 1)
      yield* facts.until((all) => storyOf(all, "acme").length === 1)
      for (let n = 0; n < 5; n++) yield* publishTo("other.invoice.paid")
      // Nothing fails in a window of either: that of the other one is over.
      yield* facts.until((all) => storyOf(all, "other").length === 2)
      assert.deepStrictEqual(storyOf(facts.facts, "acme"), ["raised"])
      yield* pauseEndpoint({ tenant: "acme", endpoint: "kept-back" }, undefined, "test")
      yield* facts.until((all) => storyOf(all, "acme").length === 2)
    })
  )

  scenario("about a tenant tells of a source that refuses all, and of what is in quarantine", () =>
    Effect.gen(function* () {
      yield* storeSystemThresholds({ window })
      const facts = yield* history
      yield* worker({ alertEvery })
      yield* stripeSource()
      yield* stripeSource("other")
      const { post } = yield* startGateway({ reportMs: 50 })
      const times = (name: AlertName, count: number) =>
        facts.until((all) => story(all, name).length === count)
      const forged = stripeWebhook(stripeEvent("evt_1"), "whsec_another")
      for (let n = 0; n < 9; n++) yield* post("/in/acme/stripe", forged)
      yield* post("/in/acme/stripe", stripeWebhook(stripeEvent("evt_1")))
      for (let n = 0; n < 10; n++) yield* post("/in/acme/other", forged)
      yield* times("source-refusing", 1)
      const raised = facts.of("alert-raised")[0]
      assert.deepInclude(raised, { tenant: "acme", endpoint: "_" })
      assert.deepInclude(raised?.alert, { about: "tenant", value: 1, threshold: 1, level: "warn" })
      // A report counts for a fraction of a second here, and this machine may stand still for one.
      const refusing = yield* eventually(
        Effect.map(readSurvey, statusOf),
        ({ incoming }) => incoming?.gateways.length === 1
      )
      assert.deepStrictEqual(
        refusing.notices.flatMap(({ code, text }) => (code === "source-refusing" ? [text] : [])),
        refusing.incoming?.gateways.flatMap((gateway) =>
          gateway.refusing.map(
            ({ reason, since }) =>
              `acme/other has refused every request since ${zonedTime(since, refusing.at)} (${reason}): see \`petrel source show acme/other\``
          )
        )
      )
      yield* post("/in/acme/other", stripeWebhook(stripeEvent("evt_1")))
      yield* times("source-refusing", 2)
      yield* post("/in/acme/stripe", stripeWebhook({ no: "event" }))
      yield* times("quarantined", 1)
      const { alerts, incoming } = yield* readSurvey
      assert.deepInclude(incoming, { events: 2, notCopied: 0, quarantined: new Map([["acme", 1]]) })
      assert.deepStrictEqual(
        alerts.map(({ alert, tenant }) => [tenant, alert.name]),
        [["acme", "quarantined"]]
      )
      const [{ number } = { number: 0 }] = yield* listQuarantined("acme")
      yield* discard("acme", number, "ana")
      yield* times("quarantined", 2)
      assert.lengthOf(story(facts.facts, "source-refusing"), 2)
    })
  )

  scenario("about a tenant tells of what providers lost, until they lose none, or for a day", () =>
    Effect.gen(function* () {
      yield* storeSystemThresholds({ window })
      const facts = yield* history
      yield* worker({ alertEvery })
      const told = (missing: number, changes: Partial<ReconcileReport> = {}) => {
        const now = Date.now()
        const counts = { listed: 9, present: 0, missing, fetched: 0, asked: 0, tooOld: 0 }
        return writeReconcileReport({
          ...{ v: 1, tenant: "acme", source: "stripe", provider: "stripe", alertAbove: 0 },
          ...{ startedAt: now, endedAt: now },
          found: { since: 0, until: now, missingIds: [], ...counts },
          ...changes
        })
      }
      const times = (count: number) =>
        facts.until((all) => story(all, "provider-lost").length === count)
      yield* told(3)
      yield* times(1)
      assert.deepInclude(facts.of("alert-raised")[0], { tenant: "acme", endpoint: "_" })
      assert.deepInclude(facts.of("alert-raised")[0]?.alert, {
        ...{ about: "tenant", level: "warn", value: 3, threshold: 1 }
      })
      yield* told(0)
      yield* times(2)
      // Not more than may be missing of this source, and then more.
      yield* told(3, { alertAbove: 3, source: "other" })
      yield* told(1)
      yield* times(3)
      assert.strictEqual(facts.of("alert-raised")[1]?.alert?.value, 1)
      yield* told(5, { endedAt: Date.now() - 25 * 60 * 60_000 })
      yield* times(4)
    })
  )

  scenario("tells of many open circuits, and of what an audit has found missing", () =>
    Effect.gen(function* () {
      yield* storeSystemThresholds({ circuitsOpen: 3, window })
      const hook = yield* receiver({ answer: { status: 503 } })
      for (let n = 0; n < 6; n++)
        yield* endpoint({
          id: `hook-${n}`,
          url: hook.url,
          types: [`t${n}`],
          retry: quickRetry({ maxAttempts: 1_000 }),
          circuit: { failures: 1, coolDown: "1 second", maxCoolDown: "1 second", successes: 1 }
        })
      const facts = yield* history
      yield* worker({ alertEvery })
      for (let n = 0; n < 2; n++) yield* publish(`t${n}`)
      yield* facts.count("circuit-opened", 4)
      assert.deepStrictEqual(story(facts.facts, "circuits-open"), [])
      for (let n = 2; n < 6; n++) yield* publish(`t${n}`)
      yield* facts.until((all) => story(all, "circuits-open").length === 1)
      hook.answer({ status: 200 })
      yield* facts.until((all) => story(all, "circuits-open").length === 2)

      const at = yield* Clock.currentTimeMillis
      const missing: Fact = {
        v: 1,
        kind: "missing",
        at,
        tenant: "acme",
        endpoint: "hook-0",
        event: "evt_1",
        eventSeq: 1
      }
      yield* (yield* Facts).append(missing, "missing.1")
      yield* facts.until((all) => story(all, "deliveries-missing").length === 1)
      assert.strictEqual(
        facts.of("alert-raised").find(({ alert }) => alert?.name === "deliveries-missing")?.alert
          ?.level,
        "critical"
      )
    })
  )
})

describe.concurrent("an alert about an endpoint", () => {
  scenario("tells of failures in a row that open no circuit, until its next success", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({
        url: hook.url,
        retry: quickRetry({ maxAttempts: 1_000 }),
        circuit: { failures: 1_000, rate: "none" },
        alerts: { failuresInRow: 5 }
      })
      const facts = yield* history
      yield* worker({ alertEvery })
      yield* publish("a")
      yield* facts.until((all) => story(all, "failures-in-row").length === 1)
      const raised = facts
        .of("alert-raised")
        .find(({ alert }) => alert?.name === "failures-in-row")?.alert
      assert.deepInclude(raised, { about: "endpoint", threshold: 5, lastStatus: 503 })
      assert.isAtLeast(raised?.value ?? 0, 5)
      assert.isEmpty(facts.of("circuit-opened"))
      hook.answer({ status: 200 })
      yield* facts.until((all) => story(all, "failures-in-row").length === 2)
      assert.deepStrictEqual(story(facts.facts, "failures-in-row"), ["raised", "cleared"])
    })
  )
})

describe.concurrent("an alert about a tenant", () => {
  scenario("is raised however many other tenants have one already", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const alert: Alert = {
        id: "alert_1",
        name: "success-low",
        about: "tenant",
        level: "warn",
        threshold: 99,
        unit: "percent",
        windowMs: 600_000,
        raisedAt: 0
      }
      const record: AlertRecord = { v: 1, raised: [alert] }
      yield* Effect.forEach(
        Array.from({ length: 1_001 }, (_, n) => alertKey({ tenant: `t${n}`, endpoint: "_" })),
        (key) => writeValue(names.buckets.alerts, key, JSON.stringify(record)),
        { concurrency: 64, discard: true }
      )
      yield* storeTenantThresholds("acme", { samples: 5 })
      const hook = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      yield* worker({ alertEvery })
      yield* publishMany(10)
      yield* facts.until((all) => story(all, "success-critical").length === 1)
      assert.strictEqual(nth(facts.of("alert-raised"), 0).tenant, "acme")
    })
  )
})

describe.concurrent("an alert whose worker dies", () => {
  for (const step of ["alert-decided", "alert-stored"] as const)
    scenario(`at ${step} is told once by the next one`, (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 400 } })
        const alerts = { window: "1 hour" } as const
        yield* endpoint({ url: hook.url, alerts })
        const facts = yield* history
        yield* publish("a")
        yield* crashAt(place, step, 1, { alertEvery })
        yield* worker({ alertEvery })
        yield* eventually(
          Effect.map(listAlerts("raised.endpoint.>"), (all) => all[0]?.record),
          (record) => record?.unrecorded === undefined
        )
        yield* publish("b")
        yield* facts.count("dead-lettered", 2)
        assert.deepStrictEqual(story(facts.facts, "dead-letters"), ["raised"])
        assert.strictEqual(nth(facts.of("alert-raised"), 0).worker, "crashing")
      })
    )
})
