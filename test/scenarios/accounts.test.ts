import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { jetstream } from "@nats-io/jetstream"
import { RequestError } from "@nats-io/transport-node"
import { Duration, Effect, Layer, Result, type Scope } from "effect"
import { vi } from "vitest"
import { storeSystemThresholds, storeTenantThresholds } from "../../src/alerts/alert-store.ts"
import { accessTo } from "../../src/broker/access.ts"
import type { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { readGatewayReports } from "../../src/cluster/gateway-reports.ts"
import {
  type ReconcileReport,
  readReconcileReport,
  writeReconcileReport
} from "../../src/cluster/reconcile-reports.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { pauseEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { Facts } from "../../src/history/facts.ts"
import { changeSource } from "../../src/intake/source-store.ts"
import { readLastAudit } from "../../src/operations/audit/run-audit.ts"
import { standingAudit } from "../../src/operations/audit/standing-audit.ts"
import { runJobs } from "../../src/operations/jobs/job-runner.ts"
import { setSource } from "../../src/operations/sources/manage-sources.ts"
import { exportTraces, readTracePosition } from "../../src/operations/traces/export-traces.ts"
import { parseNetwork } from "../../src/policy/address.ts"
import { DeliveryLog } from "../../src/projection/delivery-log.ts"
import { serveProjection } from "../../src/projection/remote-log.ts"
import { reconcileBySchedule } from "../../src/reconcile/schedule.ts"
import { announceBypass, readBypass } from "../../src/routing/bypass-store.ts"
import { startNatsService } from "../../src/service/nats-service.ts"
import type { WorkerOptions } from "../../src/worker/worker.ts"
import { run } from "../cli/in-process.ts"
import { start } from "../cli/running.ts"
import { attribute, spanCollector } from "../kit/collector.ts"
import type { Answer } from "../kit/console.ts"
import { startConsole } from "../kit/console.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  quickRetry,
  testTopology,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { source, startGateway, stripeEvent, stripeSource, stripeWebhook } from "../kit/gateway.ts"
import { disable } from "../kit/live-endpoints.ts"
import type { AccountsServer } from "../kit/nats-accounts.ts"
import { startWithAccounts } from "../kit/nats-accounts.ts"
import { askOverNats } from "../kit/nats-requests.ts"
import { owners } from "../kit/owners.ts"
import { providerApi, stripeEvents } from "../kit/provider-api.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, quiet } from "../kit/scenario.ts"
import { endLeases, workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const connectionOf = (url: string) => ({
  url,
  prefix: "PETREL_",
  eventRoot: "events",
  publishTimeoutMs: 1_000
})

/** Everybody as whom they are in nats.conf: the story itself is the operator's. */
const cast = (server: AccountsServer) => {
  const asWorker = Layer.build(Layer.fresh(connectTo(connectionOf(server.url("worker")))))
  return {
    server,
    worker: (options: Partial<WorkerOptions> = {}) =>
      Effect.flatMap(asWorker, (broker) => Effect.provideContext(worker(options), broker)),
    /** Publishes so many events in the tenant's account. */
    publish: (type: string, count = 1) =>
      Effect.gen(function* () {
        const connection = yield* Effect.promise(() => server.as("acme"))
        const js = jetstream(connection)
        for (let n = 0; n < count; n++)
          yield* Effect.promise(() => js.publish(`events.acme.${type}`, `{"n":${n}}`))
      })
  }
}

/** Told with the accounts of nats.conf; fails where the broker refused anybody anything. */
const scenario = <E>(
  name: string,
  story: (
    people: ReturnType<typeof cast>
  ) => Effect.Effect<unknown, E, Broker | Facts | Scope.Scope>
) =>
  it.live(name, () =>
    Effect.gen(function* () {
      const server = yield* Effect.promise(() => startWithAccounts())
      const operator = connectTo(connectionOf(server.url("operator")))
      const { violations } = server
      // What lacks a permission may wait for ever.
      const refused = eventually(
        Effect.sync(() => violations),
        ({ length }) => length > 0
      )
      yield* Effect.andThen(init(testTopology), story(cast(server))).pipe(
        Effect.scoped,
        Effect.raceFirst(refused),
        Effect.provide(Facts.layer.pipe(Layer.provideMerge(operator))),
        Effect.provide(accessTo(connectionOf(server.url("access_operator")))),
        Effect.ensuring(Effect.promise(server.stop)),
        Effect.provide(quiet)
      )
      assert.deepStrictEqual(violations, [])
    })
  )

describe.concurrent("with the accounts of nats.conf, a gateway", () => {
  scenario("takes what comes in, puts aside what it cannot read, and tells of it", (people) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      yield* stripeSource()
      yield* people.worker()
      const facts = yield* history
      const broker = yield* Layer.build(
        Layer.fresh(connectTo(connectionOf(people.server.url("ingest"))))
      )
      const { post } = yield* Effect.provideContext(startGateway({ reportMs: 50 }), broker)
      const path = "/in/acme/stripe"
      const webhook = stripeWebhook(stripeEvent("evt_1"))
      for (let n = 0; n < 2; n++) assert.strictEqual((yield* post(path, webhook)).status, 200)
      assert.strictEqual((yield* post(path, stripeWebhook({}))).status, 200)
      for (let n = 0; n < 10; n++)
        assert.strictEqual((yield* post(path, { body: "{}" })).status, 401)
      yield* hook.received(1)
      yield* facts.count("quarantined", 1)
      yield* facts.count("source-refusing", 1)
      yield* eventually(readGatewayReports, ([report]) => report?.refusing[0]?.source === "stripe")
    })
  )

  scenario("fetches by schedule what never came in, and looks for it among old events", (people) =>
    Effect.gen(function* () {
      yield* stripeSource()
      const old = Math.floor(Date.now() / 1_000) - 3_600
      const lost = [0, 1].map((n) => ({ ...stripeEvent(`evt_${n}`), created: old - n }))
      const ofStripe = stripeEvents(lost)
      const updated_at = new Date(Date.now() - 1_800_000).toISOString()
      const api = yield* providerApi((asked) =>
        asked.path === "/orders.json"
          ? { json: { orders: [{ id: 7, updated_at }] } }
          : ofStripe(asked)
      )
      const name = { tenant: "acme", id: "stripe" }
      yield* changeSource(name, (source) => Effect.succeed({ ...source, createdAt: 1 }))
      const reconcile = Duration.hours(1)
      yield* setSource(name, { apiKey: "sk_test_1", apiUrl: api.url, reconcile }, "test")
      const facts = yield* history
      const ingest = yield* Layer.build(
        Layer.fresh(connectTo(connectionOf(people.server.url("ingest"))))
      )
      // What is gone from the intake may be an event still.
      const gateway = yield* Effect.provideContext(startGateway(), ingest)
      yield* gateway.post("/in/acme/stripe", stripeWebhook(stripeEvent("evt_9")))
      const { ask, jsm, names } = yield* natsClients
      yield* ask("purge", () => jsm.streams.purge(names.intake))
      const networks = [Result.getOrThrow(parseNetwork("127.0.0.1"))]
      yield* Effect.provideContext(
        reconcileBySchedule({ networks, done: () => {}, lookMs: 200 }),
        ingest
      )
      yield* facts.count("provider-lost", 1)
      yield* facts.count("reconciled", 1)
      assert.deepInclude(facts.of("reconciled")[0], { user: "ingest" })
      assert.deepInclude(facts.of("reconciled")[0]?.reconciled, { missing: 2, fetched: 2 })
      // Shopify's list is compared with the bodies of what came in.
      const shop = {
        provider: "shopify",
        secrets: ["hush"],
        apiKey: "shpat_1",
        webhookId: "orders"
      }
      yield* source("shop", { ...shop, apiUrl: api.url, reconcile })
      yield* changeSource({ tenant: "acme", id: "shop" }, (added) =>
        Effect.succeed({ ...added, createdAt: 1 })
      )
      yield* eventually(
        Effect.sync(() => facts.of("reconciled").length),
        (count) => count === 2
      )
      assert.deepInclude(facts.of("reconciled")[1]?.reconciled, { missing: 1, fetched: 1 })
      // As one leaves it that is killed after its fact.
      const report = yield* readReconcileReport(name)
      const [first] = facts.of("provider-lost")
      assert.isDefined(report)
      yield* writeReconcileReport({
        ...(report as ReconcileReport),
        unrecorded: { facts: [first as Fact], after: 0 }
      })
      yield* eventually(
        readReconcileReport(name),
        (noted) => noted !== undefined && noted.unrecorded === undefined
      )
      assert.lengthOf(facts.of("provider-lost"), 2)
    })
  )
})

describe.concurrent("with the accounts of nats.conf, a worker", () => {
  scenario("delivers, repeats by NAK and by schedule, and ends what does not succeed", (people) =>
    Effect.gen(function* () {
      const good = yield* receiver()
      const flaky = yield* receiver({ answer: byAttempt(500, 500, 200) })
      const bad = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ id: "good", url: good.url, types: ["a"] })
      yield* endpoint({ id: "flaky", url: flaky.url, types: ["a", "b"] })
      yield* endpoint({ id: "bad", url: bad.url, types: ["a"] })
      const facts = yield* history
      const first = yield* people.worker()
      yield* people.publish("a")
      yield* facts.count("delivered", 2)
      yield* facts.count("dead-lettered", 1)
      yield* people.publish("un$routable")
      yield* facts.count("unroutable", 1)
      bad.answer({ status: 410 })
      yield* people.publish("a")
      yield* facts.count("endpoint-disabled", 1)
      assert.deepInclude(facts.of("endpoint-disabled")[0], { worker: "w1", user: "worker" })
      yield* facts.count("delivered", 4)
      yield* first.stop

      yield* people.worker({ id: "w2", maxWaiting: 0 })
      yield* people.publish("b")
      yield* facts.count("delivered", 5)
      const waits = facts.of("attempt-failed").map(({ wait }) => wait)
      assert.includeMembers(waits, ["nak", "schedule"])
    })
  )

  scenario("keeps back, drains, probes and sweeps, and takes over from one that died", (people) =>
    Effect.gen(function* () {
      const slow = yield* gate
      const ill = yield* receiver({ answer: byAttempt(500, 500, 500, 200) })
      const later = yield* receiver({ answer: { status: 503 } })
      const hourly = quickRetry({ backoff: { kind: "fixed", delay: "1 hour" }, window: "9 hours" })
      yield* endpoint({ id: "slow", url: slow.url, types: ["slow"], maxInFlight: 2 })
      yield* endpoint({
        id: "ill",
        url: ill.url,
        types: ["ill"],
        circuit: { failures: 2, coolDown: "200 millis", maxCoolDown: "300 millis", successes: 1 }
      })
      yield* endpoint({ id: "paused", types: ["p"], retry: quickRetry({ window: "2 seconds" }) })
      yield* endpoint({ id: "disabled", url: later.url, types: ["d"], retry: hourly })
      yield* endpoint({ id: "removed", url: later.url, types: ["d"], retry: hourly })
      yield* pauseEndpoint({ tenant: "acme", endpoint: "paused" }, undefined, "cli")
      const facts = yield* history
      const dying = yield* workerProcess(connectionOf(people.server.url("worker")), {
        maxWaiting: 1
      })
      yield* dying.delivering
      yield* people.publish("slow", 40)
      yield* people.publish("d", 3)
      yield* people.publish("p")
      yield* eventually(backlogged, (count) => count >= 30)
      yield* facts.count("attempt-failed", 6)
      yield* dying.kill9
      yield* endLeases

      yield* people.worker()
      yield* people.publish("ill")
      yield* facts.count("circuit-closed", 1)
      yield* slow.open
      yield* facts.count("delivered", 41)
      yield* disable("disabled")
      yield* removeEndpoint("acme", "removed")
      yield* facts.count("dead-lettered", 7)
      assert.sameMembers(
        [...new Set(facts.of("dead-lettered").map(({ reason }) => reason))],
        ["deadline", "endpoint-disabled", "endpoint-removed"]
      )
      yield* eventually(waitingMessages, (count) => count === 0)
    })
  )

  scenario("hands partitions over to one that joins", (people) =>
    Effect.gen(function* () {
      const first = yield* people.worker()
      assert.deepStrictEqual(yield* first.delivering, [0, 1])
      const second = yield* people.worker({ id: "w2" })
      assert.lengthOf(yield* second.delivering, 1)
      yield* first.stop
      yield* eventually(owners(2), (all) => all.every((owner) => owner === "w2"))
    })
  )

  scenario("lets events pass a flood by a consumer that it makes", (people) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      yield* endpoint({ tenant: "busy", url: hook.url })
      yield* people.worker()
      yield* announceBypass(yield* readBypass, { flooding: ["busy"], passing: ["acme"] })
      const { bypass } = yield* eventually(
        readBypass,
        ({ bypass }) => bypass === undefined || bypass.from !== undefined
      )
      assert.isDefined(bypass?.from)
      yield* people.publish("paid", 3)
      yield* hook.received(3)
    })
  )

  scenario("raises alerts about endpoints, tenants and the system, and sends them", (people) =>
    Effect.gen(function* () {
      const alerts = { window: "2 seconds", samples: 5 } as const
      yield* storeSystemThresholds({ circuitsOpen: 1, window: Duration.seconds(2) })
      yield* storeTenantThresholds("acme", { samples: 5 })
      const bad = yield* receiver({ answer: { status: 400 } })
      const ops = yield* receiver()
      yield* endpoint({ id: "ops", url: ops.url, types: ["petrel.alert.>"], alerts: {} })
      yield* endpoint({ id: "bad", url: bad.url, types: ["a"], alerts })
      const facts = yield* history
      // The owner of partition 0 asks the other one.
      const [first, second] = [{ alertEvery: 50 }, { id: "w2", alertEvery: 50 }]
      yield* people.worker(first)
      yield* people.worker(second)
      yield* people.publish("a", 10)
      const about = (what: string) =>
        facts.until((all) =>
          all.some(({ alert, kind }) => kind === "alert-raised" && alert?.about === what)
        )
      yield* Effect.all([about("endpoint"), about("tenant"), ops.received(1)])
      yield* endpoint({
        id: "ill",
        url: bad.url,
        types: ["b"],
        retry: quickRetry({ maxAttempts: 100 }),
        circuit: { failures: 1, coolDown: "1 minute" }
      })
      bad.answer({ status: 503 })
      yield* people.publish("b", 3)
      yield* about("system")
    })
  )
})

describe.concurrent("with the accounts of nats.conf, an operator", () => {
  scenario("has every command, beside a worker that is a process of its own", (people) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: byAttempt(400) })
      const petrel = (...args: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const { code, err, out } = yield* run(
            ...args,
            ...["--nats", people.server.url("operator")],
            ...["--access-nats", people.server.url("access_operator")]
          )
          assert.strictEqual(code, 0, [args.join(" "), ...out, ...err].join("\n"))
          return out
        })
      yield* petrel("init")
      const add = ["--url", hook.url, "--types", "invoice.>", "--allow-network", "127.0.0.0/8"]
      yield* petrel("endpoint", "add", "acme/billing", ...add.slice(0, 4))
      const facts = yield* history
      const user = people.server.url("worker")
      const running = yield* start("worker", "--nats", user, ...add.slice(4))
      yield* running.until((out) => out.some((line) => line.includes("delivers")))
      const connection = yield* Effect.promise(() => people.server.as("operator"))
      const stats = yield* askOverNats(connection, "$SRV.STATS.petrel-worker")
      assert.strictEqual(stats.json.name, "petrel-worker")
      yield* people.publish("invoice.paid", 2)
      yield* petrel("publish", "acme", "invoice.paid", "{}")
      yield* facts.count("dead-lettered", 3)
      hook.answer({ status: 200 })
      yield* petrel("dead", "list")
      yield* petrel("dead", "redeliver", "--endpoint", "acme/billing", "--by", "somebody")
      yield* facts.count("delivered", 3)
      yield* petrel("replay", "--to", "acme/billing", "--since", "1h")
      yield* facts.count("delivered", 6)
      yield* petrel("dead", "discard", "--all", "--yes")
      for (const action of ["pause", "resume", "disable", "enable", "rotate", "show"])
        yield* petrel("endpoint", action, "acme/billing")
      yield* petrel("tenant", "set", "acme", "--host-cap", "5", "--by", "somebody")
      yield* petrel("tenant", "show", "acme")
      // Whatever `--by` claims.
      for (const kind of [
        ...(["redelivered", "replayed", "discarded"] as const),
        ...([
          "endpoint-paused",
          "endpoint-resumed",
          "endpoint-disabled",
          "endpoint-enabled",
          "settings-changed"
        ] as const)
      ]) {
        yield* facts.count(kind, 1)
        for (const { user } of facts.of(kind)) assert.strictEqual(user, "operator", kind)
      }
      const lines = yield* petrel("history", "--endpoint", "acme/billing")
      assert.include(lines.join("\n"), "sent again by somebody (user operator)")
      const [status = ""] = yield* petrel("status", "--json")
      assert.deepStrictEqual(JSON.parse(status).problems, [])
      for (const command of [
        ["workers"],
        ["endpoint", "list"],
        ["endpoint", "diagnose", "acme/billing"],
        ["endpoint", "test", "acme/billing"],
        ["endpoint", "retry-now", "acme/billing"],
        ["alerts", "list"],
        ["history", "totals"],
        ["history", "totals", "--by-endpoint"],
        ["history", "--limit", "2"],
        ["dead", "list", "--open"],
        ["audit"],
        ["token", "create", "acme", "--scope", "all"],
        ["token", "list"]
      ])
        yield* petrel(...command)
      const { delivery = "" } = facts.of("delivered")[0] ?? {}
      yield* petrel("delivery", "show", delivery)
      yield* running.signal("SIGTERM")
      assert.strictEqual(yield* running.ended, 0)
      yield* petrel("repartition", "3")
      yield* petrel("rebuild", "health")
    })
  )
})

describe.concurrent("with the accounts of nats.conf, a console", () => {
  scenario("does all that its API can do, and makes no alerts", (people) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ id: "other", url: hook.url, types: ["other"] })
      const facts = yield* history
      const { delivering } = yield* people.worker()
      yield* delivering
      const asConsole = yield* Layer.build(
        Layer.fresh(
          Facts.layer.pipe(
            Layer.provideMerge(connectTo(connectionOf(people.server.url("console")))),
            Layer.merge(accessTo(connectionOf(people.server.url("access_console"))))
          )
        )
      )
      const data = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-console-"))),
        (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
      )
      const log = yield* serveProjection({
        broker: connectionOf(people.server.url("console")),
        data,
        keepMs: 3_600_000,
        maxBytes: 1_024 ** 3
      }).pipe(Effect.provideContext(asConsole))
      const {
        app,
        ask,
        refused,
        token: make
      } = yield* startConsole().pipe(
        Effect.provideService(DeliveryLog, log),
        Effect.provideContext(asConsole)
      )
      yield* startNatsService(app, { refused }).pipe(Effect.provideContext(asConsole))
      yield* runJobs("console").pipe(Effect.provideContext(asConsole))
      yield* standingAudit({ owner: "console", sinceMs: 60_000, everyMs: 100 }, () => {}).pipe(
        Effect.provideContext(asConsole),
        Effect.forkScoped
      )
      yield* eventually(readLastAudit, (audit) => audit !== undefined)
      const collector = yield* spanCollector()
      yield* exportTraces({
        ...{ name: "console", url: collector.url, headers: {}, version: "1" }
      }).pipe(Effect.provideContext(asConsole))
      yield* eventually(readTracePosition, ({ position }) => position !== undefined)
      const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`
      const token = yield* make({ tenant: "*" })
      const tenant = "/v1/tenants/acme"
      const must = Effect.fnUntraced(function* (method: string, path: string, body?: unknown) {
        const answer = yield* ask(path, { method, token, body })
        assert.isBelow(answer.status, 300, `${method} ${path}: ${answer.text}`)
        return answer
      })
      const done = (answer: Answer) =>
        eventually(
          ask(answer.headers.get("location") ?? "", { token }),
          ({ json }) => json.state === "done"
        )
      const one = `${tenant}/endpoints/billing`
      yield* must("PUT", one, { url: hook.url, types: ["invoice.>"] })
      yield* must("POST", `${tenant}/events`, [
        { type: "invoice.paid", id: "1", data: 1, headers: { traceparent } },
        { type: "invoice.paid", id: "2", data: 2 }
      ])
      yield* facts.count("dead-lettered", 2)
      const spans = yield* collector.different(2)
      for (const span of spans.filter(({ name }) => name === "POST"))
        assert.strictEqual(attribute(span, "url.full"), `${hook.url}/REDACTED`)
      hook.answer({ status: 200 })
      yield* eventually(ask("/v1/projection", { token }), ({ status }) => status === 200)
      for (const path of [
        ...["endpoints", "events/acme.1", "events/acme.1/body", "deliveries/acme.1.billing"],
        ...[
          "deliveries?type=invoice.*",
          "dead-letters",
          "dead-letters/1",
          "totals",
          "totals?by=endpoint",
          "alerts",
          "tokens"
        ],
        "endpoints/billing/secret",
        "endpoints/billing/diagnosis",
        "endpoints/billing/history",
        "retry-presets",
        "settings",
        "alert-thresholds"
      ])
        yield* must("GET", `${tenant}/${path}`)
      for (const path of ["status", "workers", "outboxes", "tenants", "audits", "projection"])
        yield* must("GET", `/v1/${path}`)
      yield* done(yield* must("POST", `${tenant}/redeliveries`, { endpoint: "billing" }))
      yield* facts.count("delivered", 2)
      yield* done(yield* must("POST", `${tenant}/replays`, { endpoint: "billing" }))
      yield* facts.count("delivered", 4)
      yield* done(yield* must("POST", "/v1/audits"))
      yield* must("POST", `${tenant}/deliveries/acme.1.billing/resend`)
      yield* must("DELETE", `${tenant}/dead-letters/1`)
      for (const action of ["test", "retry-now", "pause", "resume", "disable", "enable", "rotate"])
        yield* must("POST", `${one}/${action}`)
      yield* must("PATCH", `${tenant}/settings`, { hostCap: 5 })
      yield* must("PUT", `${tenant}/alert-thresholds`, { alerts: { successWarnPercent: 98 } })
      yield* must("PUT", `${tenant}/alert-thresholds`, { alerts: null })
      yield* done(yield* must("POST", `${tenant}/retries`, { all: true }))
      const since = new Date(0).toISOString()
      yield* done(yield* must("POST", `${one}/recover`, { since }))
      const live = yield* Effect.promise(() => people.server.as("console"))
      yield* Effect.sync(() => live.subscribe("petrel.failures.acme.>"))
      const asked = yield* run("projection", "status", "--nats", people.server.url("operator"))
      assert.strictEqual(asked.code, 0, asked.err.join("\n"))
      const acme = yield* Effect.promise(() => people.server.as("acme"))
      const over = (subject: string) =>
        Effect.promise(() =>
          acme.request(`petrel.api.v1.${subject}`, '{"id":"billing"}').then(
            (message) => message.json<{ readonly id?: string }>().id ?? "",
            (error: unknown) =>
              error instanceof RequestError && error.isNoResponders() ? "nobody" : ""
          )
        )
      yield* eventually(over("acme.endpoints.get"), (id) => id === "billing")
      assert.strictEqual(yield* over("globex.endpoints.get"), "nobody")
      assert.strictEqual(yield* over("_.system.status"), "nobody")
      const operator = yield* Effect.promise(() => people.server.as("access_operator"))
      const info = yield* Effect.promise(() => operator.request("$SRV.INFO.petrel"))
      assert.strictEqual(info.json<{ readonly name: string }>().name, "petrel")
      yield* must("PATCH", one, { contact: "ops" })
      yield* must("DELETE", one)
      const made = yield* must("POST", `${tenant}/tokens`, { scopes: ["events:publish"] })
      yield* must("DELETE", `${tenant}/tokens/${String(made.json.id)}`)
      for (const { user } of facts.of("redelivered")) assert.strictEqual(user, "console")
    })
  )
})

describe("with the accounts of nats.conf, a backup", () => {
  scenario("is made by its own user, and restored by the operator to the same accounts", (people) =>
    Effect.gen(function* () {
      const directory = join(
        yield* Effect.acquireRelease(
          Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-backup-"))),
          (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
        ),
        "copy"
      )
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      const first = yield* people.worker()
      yield* people.publish("a", 3)
      yield* facts.count("delivered", 3)
      yield* first.stop
      const flagsFor = (server: AccountsServer, user: "backup" | "operator") => [
        ...["--nats", server.url(user)],
        ...["--access-nats", server.url(user === "backup" ? "access_backup" : "access_operator")]
      ]
      const made = yield* run("backup", directory, ...flagsFor(people.server, "backup"))
      assert.strictEqual(made.code, 0, made.err.join("\n"))
      const dry = yield* run(
        "restore",
        directory,
        "--dry-run",
        ...flagsFor(people.server, "backup")
      )
      assert.match(dry.err.join("\n"), /all files of the backup are intact, but there is an inst/)
      const without = yield* run("restore", directory, "--nats", people.server.url("operator"))
      assert.include(without.err.join("\n"), "in an account of their own")

      const other = yield* Effect.acquireRelease(
        Effect.promise(() => startWithAccounts()),
        ({ stop }) => Effect.promise(stop)
      )
      const done = yield* run("restore", directory, ...flagsFor(other, "operator"))
      assert.strictEqual(done.code, 0, done.err.join("\n"))
      const again = yield* run("audit", "--nats", other.url("operator"))
      assert.strictEqual(again.code, 0, again.err.join("\n"))
      assert.include(again.out.join("\n"), "Caution: restored")
      const tokens = yield* run("token", "list", ...flagsFor(other, "operator"))
      assert.strictEqual(tokens.code, 0, tokens.err.join("\n"))
    })
  )

  scenario("names the users who may make one to another, and leaves no folder behind", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-backup-"))),
        (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
      )
      const directory = join(folder, "copy")
      // Not the story's own broker, on which nobody is to be refused anything.
      const { url } = yield* Effect.acquireRelease(
        Effect.promise(() => startWithAccounts()),
        ({ stop }) => Effect.promise(stop)
      )
      const operator = ["--nats", url("operator"), "--access-nats", url("access_operator")]
      const made = yield* run("init", ...operator)
      assert.strictEqual(made.code, 0, made.err.join("\n"))
      for (const [user, access] of [
        ["worker", "access_backup"],
        ["console", "access_console"]
      ] as const) {
        const flags = ["--nats", url(user), "--access-nats", url(access)]
        const refused = yield* run("backup", directory, ...flags)
        assert.strictEqual(refused.code, 1)
        assert.match(
          refused.err.join("\n"),
          /the broker does not let this user make a backup: .*`backup`.*`access_backup`/
        )
        assert.notInclude(refused.err.join("\n"), "Violation")
        assert.deepStrictEqual(yield* Effect.promise(() => readdir(folder)), [], user)
      }
    })
  )
})
