import { createHmac } from "node:crypto"
import { assert, describe } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Result } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { Failpoint, type FailpointName } from "../../src/broker/failpoint.ts"
import {
  lostByTenant,
  type ReconcileReport,
  readReconcileReport,
  readReconcileReports,
  writeReconcileReport
} from "../../src/cluster/reconcile-reports.ts"
import { readSurvey } from "../../src/delivery/introspection/survey.ts"
import type { Source } from "../../src/domain/source.ts"
import { listQuarantine } from "../../src/intake/quarantine.ts"
import { checkAccount } from "../../src/intake/source-account.ts"
import { changeSource, getSource } from "../../src/intake/source-store.ts"
import { removeSource, setSource } from "../../src/operations/sources/manage-sources.ts"
import { statusOf } from "../../src/operations/status/status-report.ts"
import { parseNetwork } from "../../src/policy/address.ts"
import type { Missing } from "../../src/reconcile/comparison.ts"
import { type ReconcileOptions, reconcile } from "../../src/reconcile/reconcile.ts"
import { reconcileBySchedule } from "../../src/reconcile/schedule.ts"
import { openList } from "../../src/reconcile/walk.ts"
import { program } from "../cli/command-line.ts"
import { start, startNode } from "../cli/running.ts"
import { idsForgotten } from "../kit/consistency.ts"
import { endpoint, eventually, history, nth, worker } from "../kit/engine.ts"
import {
  source as gatewaySource,
  startGateway,
  stripeEvent,
  stripeSource,
  stripeWebhook
} from "../kit/gateway.ts"
import { providerApi, stripeEvents } from "../kit/provider-api.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const minuteMs = 60_000
const local = [Result.getOrThrow(parseNetwork("127.0.0.0/8"))]
const stripe = { tenant: "acme", id: "stripe" }

/** Events of the last minutes: evt_0 is the newest. */
const events = (count: number, changes: object = {}) => {
  const now = Math.floor(Date.now() / 1_000)
  return Array.from({ length: count }, (_, index) => ({
    ...stripeEvent(`evt_${index}`, changes),
    created: now - 10 * 60 - index
  }))
}

const accountOf = (source: Source, changes: Partial<Source>) =>
  Result.getOrThrow(checkAccount({ ...source, apiKey: "sk_test_1", ...changes }, true))

/** Reconciles acme/stripe with an API of this machine. */
const run = Effect.fnUntraced(function* (url: string, options: Partial<ReconcileOptions> = {}) {
  const missing: Array<Missing> = []
  const { source } = yield* getSource(stripe)
  const asked = { since: Date.now() - 60 * minuteMs, until: Date.now() - 5 * minuteMs }
  const list = yield* openList(accountOf(source, { apiUrl: url }), {
    ...{ asked, networks: local, firstPauseMs: 5 }
  })
  const reconciled = yield* reconcile({
    ...{ source, ...asked, list, alertAbove: 0 },
    onMissing: (one) =>
      Effect.sync(() => {
        missing.push(one)
      }),
    ...options
  })
  return { ...reconciled, missing }
}, Effect.scoped)

/** The same, by a process that ends at a failpoint. */
const runUntil = (url: string, step: FailpointName, arrival: number) => {
  let arrivals = 0
  return Effect.exit(
    Effect.provideService(run(url), Failpoint, (reached) => {
      if (reached === step && ++arrivals === arrival) throw new Error("killed")
    })
  )
}

const storedIn = (stream: "intake" | "events") =>
  Effect.gen(function* () {
    const { ask, jsm, names } = yield* natsClients
    const { state } = yield* ask("count", () => jsm.streams.info(names[stream]))
    return state.messages
  })

describe.concurrent("a reconciliation", () => {
  scenario("fetches what never came in, and it is delivered once", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url, types: ["stripe.invoice.>"] })
      yield* worker()
      yield* stripeSource()
      const facts = yield* history
      const sent = events(5)
      const { post } = yield* startGateway()
      for (const place of [0, 2, 4]) yield* post("/in/acme/stripe", stripeWebhook(nth(sent, place)))
      const api = yield* providerApi(stripeEvents(sent, 2))

      const { found, missing, problem } = yield* run(api.url)
      assert.strictEqual(problem, undefined)
      assert.deepInclude(found, { listed: 5, present: 3, missing: 2, fetched: 2, tooOld: 0 })
      assert.deepStrictEqual(found.missingIds, ["evt_1", "evt_3"])
      assert.deepStrictEqual(
        missing.map(({ became, type }) => [became, type]),
        [
          ["fetched", "invoice.paid"],
          ["fetched", "invoice.paid"]
        ]
      )
      // Pages of 2 of 5 events, one after the other.
      assert.lengthOf(api.requests, 3)
      yield* hook.received(5)
      const ids = hook.requests.map(({ headers }) => headers["webhook-id"])
      assert.sameMembers(
        ids,
        [0, 1, 2, 3, 4].map((n) => `acme.stripe.evt_${n}`)
      )
      yield* facts.count("reconciled", 1)
      yield* facts.count("provider-lost", 1)
      assert.deepInclude(facts.of("provider-lost")[0], {
        reason: "2 of 5 events had not come in",
        incoming: { source: "stripe", provider: "stripe" }
      })

      // The provider sends one late, in its webhook's own bytes, and it is listed again.
      const late = yield* post("/in/acme/stripe", stripeWebhook(nth(sent, 1)))
      assert.strictEqual(late.status, 200)
      assert.deepStrictEqual(yield* listQuarantine("acme"), [])
      const again = yield* run(api.url)
      assert.deepInclude(again.found, { listed: 5, present: 5, missing: 0, fetched: 0 })
      yield* facts.count("reconciled", 2)
      assert.lengthOf(facts.of("provider-lost"), 1)
      assert.strictEqual(yield* storedIn("intake"), 5)
      yield* eventually(storedIn("events"), (count) => count === 5)
      assert.lengthOf(hook.requests, 5)
    })
  )

  scenario("only counts what is missing with a dry run, each once though it is listed twice", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const facts = yield* history
      const sent = events(3)
      // The list grows while it is read, so that its pages overlap.
      const pages = [sent.slice(0, 2), sent.slice(1, 3), sent.slice(0, 1)]
      let asked = 0
      const api = yield* providerApi(() => ({
        json: { data: pages[asked], has_more: ++asked < pages.length }
      }))
      const { found, missing } = yield* run(api.url, { isDryRun: true })
      assert.deepInclude(found, { listed: 3, missing: 3, fetched: 0, present: 0 })
      assert.deepStrictEqual(
        missing.map(({ became, id }) => [id, became]),
        [0, 1, 2].map((n) => [`evt_${n}`, "found"])
      )
      assert.strictEqual(yield* storedIn("intake"), 0)
      assert.lengthOf(facts.of("reconciled"), 0)
      assert.lengthOf(facts.of("provider-lost"), 0)
    })
  )

  scenario("leaves out other types: those given, or those that the webhook does not get", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const [one, two, three] = events(3)
      const list = stripeEvents([
        { ...one, type: "charge.refunded" } as never,
        { ...two, type: "invoice.paid" } as never,
        { ...three, type: "invoice.voided" } as never
      ])
      const api = yield* providerApi((asked) =>
        asked.path === "/v1/webhook_endpoints/we_1"
          ? { json: { id: "we_1", enabled_events: ["invoice.paid", "invoice.sent"] } }
          : list(asked)
      )
      const given = yield* run(api.url, { isDryRun: true, types: ["charge.*"] })
      assert.deepStrictEqual(given.found.missingIds, ["evt_0"])
      const { source } = yield* getSource(stripe)
      const asked = { since: Date.now() - 60 * minuteMs, until: Date.now() }
      const account = accountOf(source, { apiUrl: api.url, webhookId: "we_1" })
      const subscribed = yield* Effect.scoped(
        Effect.flatMap(openList(account, { asked, networks: local }), (list) =>
          reconcile({ source, ...asked, list, alertAbove: 0, isDryRun: true })
        )
      )
      assert.deepStrictEqual(subscribed.found.missingIds, ["evt_1"])
    })
  )

  scenario(
    "goes on in the middle of a list after 5xx, and says how far it came where it cannot",
    () =>
      Effect.gen(function* () {
        yield* stripeSource()
        const facts = yield* history
        const sent = events(6)
        const list = stripeEvents(sent, 2)
        let failures = 3
        const api = yield* providerApi((asked) =>
          asked.query.get("starting_after") === "evt_1" && failures-- > 0
            ? { status: 502, json: "<html>" }
            : list(asked)
        )
        const first = yield* run(api.url, { isDryRun: true })
        assert.deepInclude(first.found, { listed: 6, missing: 6 })
        assert.deepStrictEqual(
          api.requests.map(({ query }) => query.get("starting_after")),
          [null, "evt_1", "evt_1", "evt_1", "evt_1", "evt_3"]
        )
        failures = 100
        const second = yield* run(api.url)
        assert.match(String(second.problem), /Stripe answers 502; it was asked 6 times/)
        assert.deepInclude(second.found, { listed: 2, missing: 2, fetched: 2 })
        yield* facts.count("reconcile-failed", 1)
        yield* facts.count("provider-lost", 1)
        assert.lengthOf(facts.of("reconciled"), 0)
        failures = 0
        const third = yield* run(api.url)
        assert.deepInclude(third.found, { listed: 6, present: 2, missing: 4, fetched: 4 })
      })
  )

  scenario("ends a list that never does, and one that is none", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const sent = events(2)
      const api = yield* providerApi(() => ({ json: { data: sent, has_more: true } }))
      const endless = yield* run(api.url, { isDryRun: true })
      assert.match(String(endless.problem), /lists the same page again and again/)
      assert.deepInclude(endless.found, { listed: 2, missing: 2 })
      for (const json of [{}, { data: 1 }, "<html>", [], null]) {
        api.answer(() => ({ json }))
        const other = yield* run(api.url, { isDryRun: true })
        assert.match(String(other.problem), /answers in another form than it documents/)
      }
      api.answer(() => ({ json: { data: [{ type: "x" }], has_more: false } }))
      const nameless = yield* run(api.url, { isDryRun: true })
      assert.match(String(nameless.problem), /has no id/)
    })
  )

  scenario("asks EVENTS for what INTAKE keeps no more, and does not guess beyond", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const { ask, jsm, names } = yield* natsClients
      const sent = events(4)
      const { post } = yield* startGateway()
      for (const place of [0, 1, 3]) yield* post("/in/acme/stripe", stripeWebhook(nth(sent, place)))
      yield* eventually(storedIn("events"), (count) => count === 3)
      // As the broker does by age.
      yield* ask("purge", () => jsm.streams.purge(names.intake))
      const api = yield* providerApi(stripeEvents(sent))
      const known = yield* run(api.url)
      assert.deepInclude(known.found, { listed: 4, present: 3, missing: 1, fetched: 1, tooOld: 0 })
      assert.deepStrictEqual(known.found.missingIds, ["evt_2"])
      yield* eventually(storedIn("events"), (count) => count === 4)
      yield* ask("purge", () => jsm.streams.purge(names.intake))
      yield* ask("purge", () => jsm.streams.purge(names.events))
      const unknown = yield* run(api.url)
      assert.deepInclude(unknown.found, { listed: 4, missing: 0, fetched: 0, tooOld: 4 })
      assert.strictEqual(yield* storedIn("intake"), 0)
    })
  )

  scenario("knows what came in of a provider whose clock is 10 minutes ahead", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const { ask, jsm, names } = yield* natsClients
      const created = Math.floor(Date.now() / 1_000) + 10 * 60
      const sent = [{ ...stripeEvent("evt_0"), created }]
      const { post } = yield* startGateway()
      yield* post("/in/acme/stripe", stripeWebhook(nth(sent, 0)))
      yield* eventually(storedIn("events"), (count) => count === 1)
      yield* ask("purge", () => jsm.streams.purge(names.intake))
      const { source } = yield* getSource(stripe)
      const api = yield* providerApi(stripeEvents(sent))
      const asked = { since: (created - 60) * 1_000, until: (created + 60) * 1_000 }
      const { found } = yield* Effect.scoped(
        Effect.flatMap(
          openList(accountOf(source, { apiUrl: api.url }), { asked, networks: local }),
          (list) => reconcile({ source, ...asked, list, alertAbove: 0 })
        )
      )
      assert.deepInclude(found, { listed: 1, present: 1, missing: 0, tooOld: 0 })
      assert.strictEqual(yield* storedIn("events"), 1)
    })
  )

  scenario(
    "of what things are now, fetches a state that came in no webhook, and no older one",
    () =>
      Effect.gen(function* () {
        const name = { tenant: "acme", id: "shop" }
        yield* gatewaySource("shop", { provider: "shopify", secrets: ["hush"] })
        const { post } = yield* startGateway()
        const sent = Date.now() - 30 * minuteMs
        const order = (id: number, minutes: number) => ({
          id,
          updated_at: new Date(sent + minutes * minuteMs).toISOString().replace(".000", "")
        })
        const webhook = (topic: string, body: object, id: string) => {
          const text = JSON.stringify(body)
          const mac = createHmac("sha256", "hush").update(text).digest("base64")
          const about = { "x-shopify-topic": topic, "x-shopify-webhook-id": id }
          const headers = { "x-shopify-hmac-sha256": mac, "content-type": "application/json" }
          return post("/in/acme/shop", { body: text, headers: { ...headers, ...about } })
        }
        yield* webhook("orders/create", order(1, 0), "w1")
        yield* webhook("orders/paid", order(1, 5), "w2")
        yield* webhook("orders/create", order(2, 0), "w3")
        yield* webhook("products/update", order(3, 9), "w4")
        // 1 came in as it is now; 2 has changed since, 3 is another thing, and 4 never came in.
        const orders = [order(1, 5), order(2, 7), order(3, 9), order(4, 1)]
        const api = yield* providerApi(() => ({ json: { orders } }))
        const { source } = yield* getSource(name)
        const account = accountOf(source, { apiUrl: api.url, webhookId: "orders" })
        const asked = { since: Date.now() - 60 * minuteMs, until: Date.now() }
        const again = Effect.flatMap(openList(account, { asked, networks: local }), (list) =>
          reconcile({ source, ...asked, list, alertAbove: 0 })
        ).pipe(Effect.scoped)
        const first = yield* again
        assert.deepInclude(first.found, { listed: 4, present: 1, missing: 3, fetched: 3 })
        const second = yield* again
        assert.deepInclude(second.found, { listed: 4, present: 4, missing: 0 })
        // Of events, where what came in is forgotten.
        const { ask, jsm, names } = yield* natsClients
        yield* eventually(storedIn("events"), (count) => count === 7)
        yield* ask("purge", () => jsm.streams.purge(names.intake))
        const third = yield* again
        assert.deepInclude(third.found, { listed: 4, present: 4, missing: 0, tooOld: 0 })
      })
  )

  scenario("tells of a loss above a threshold only", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const facts = yield* history
      const api = yield* providerApi(stripeEvents(events(3)))
      yield* run(api.url, { alertAbove: 3 })
      yield* facts.count("reconciled", 1)
      assert.lengthOf(facts.of("provider-lost"), 0)
      api.answer(stripeEvents(events(3).map((one) => ({ ...one, id: `${one.id}_b` }))))
      yield* run(api.url, { alertAbove: 2 })
      yield* facts.count("provider-lost", 1)
    })
  )

  scenario(
    "by hand says what it waits for where the API is silent or refuses connections",
    (place) =>
      Effect.gen(function* () {
        yield* stripeSource()
        const api = yield* providerApi(() => ({ hangs: true }))
        const closed = yield* Effect.scoped(providerApi(() => ({})))
        const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
        const command = (url: string) => {
          const asked = ["--api-url", url, "--allow-network", "127.0.0.0/8", "--dry-run"]
          const args = [program, "reconcile", "acme/stripe", ...asked, ...flags]
          return startNode(args, undefined, { PETREL_API_KEY: "sk_test_1" })
        }
        const silent = yield* command(api.url)
        const refused = yield* command(closed.url)
        yield* refused.until((_, err) =>
          /Stripe cannot be reached: connect ECONNREFUSED .*; next try in \d s, \d tries left within \d\d s/.test(
            err.join()
          )
        )
        yield* silent.until((_, err) =>
          err.join().includes("Stripe has not answered for 5 s: waiting for up to 30 s")
        )
        for (const running of [silent, refused]) {
          yield* running.signal("SIGINT")
          assert.strictEqual(yield* running.ended, 130)
          assert.lengthOf(running.out, 0)
        }
      })
  )

  scenario(
    "records what one has found that ended before it could, though nothing is missing by now",
    () =>
      Effect.gen(function* () {
        yield* stripeSource()
        const facts = yield* history
        const api = yield* providerApi(stripeEvents(events(3)))
        yield* runUntil(api.url, "reconciliation-reported", 1)
        assert.lengthOf(facts.of("reconciled"), 0)
        const { found } = yield* run(api.url)
        assert.deepInclude(found, { listed: 3, present: 3, missing: 0 })
        yield* facts.count("reconciled", 2)
        assert.deepStrictEqual(
          facts.of("reconciled").map(({ reconciled }) => reconciled?.fetched),
          [3, 0]
        )
        assert.lengthOf(facts.of("provider-lost"), 1)
      })
  )

  scenario("is done by one process at a time", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const sent = stripeEvents(events(3))
      let release = () => {}
      const held = new Promise<void>((resolve) => {
        release = resolve
      })
      const api = yield* providerApi(sent)
      const { source } = yield* getSource(stripe)
      const asked = { since: 0, until: Date.now() }
      const waiting = yield* Effect.forkChild(
        reconcile({
          ...{ source, ...asked, alertAbove: 0 },
          list: {
            types: Effect.promise(() => held).pipe(Effect.as(undefined)),
            walk: () => Effect.void,
            obtain: () => Effect.die("nothing is missing")
          }
        })
      )
      const refused = yield* eventually(
        Effect.map(Effect.result(run(api.url)), (result) =>
          Result.isFailure(result) ? result.failure.message : ""
        ),
        (message) => message !== ""
      )
      assert.match(refused, /acme\/stripe is being reconciled by another process/)
      release()
      assert.strictEqual((yield* Fiber.join(waiting)).problem, undefined)
      assert.strictEqual((yield* run(api.url)).problem, undefined)
    })
  )
})

describe.concurrent("reconciliations by schedule", () => {
  /** A gateway's reconciliations, with what it has done. */
  const scheduled = Effect.fnUntraced(function* () {
    const done: Array<string> = []
    yield* reconcileBySchedule({
      ...{ networks: local, lookMs: 100, firstPauseMs: 5 },
      done: (source, { found, problem }) => {
        done.push(
          `${source} ${found.listed} ${found.missing}${problem === undefined ? "" : " broken"}`
        )
      }
    })
    return done
  })

  const withApi = (url: string, changes: object = {}) =>
    setSource(
      stripe,
      { apiKey: "sk_test_1", apiUrl: url, reconcile: Duration.minutes(1), ...changes },
      "test"
    )

  for (const [step, arrival] of [
    ["reconciliation-reported", 1],
    ["reconciliation-recorded", 1],
    ["reconciliation-recorded", 2]
  ] as const)
    scenario(
      `tell of a loss once, if the one that found it ends at ${step} ${arrival}`,
      () =>
        Effect.gen(function* () {
          yield* stripeSource()
          const facts = yield* history
          const api = yield* providerApi(stripeEvents(events(3)))
          const broken = yield* runUntil(api.url, step, arrival)
          assert.strictEqual(broken._tag, "Failure")
          assert.strictEqual(yield* storedIn("intake"), 3)
          const lost = Effect.map(readReconcileReports, (reports) =>
            lostByTenant(reports, Date.now()).get("acme")
          )
          assert.strictEqual(yield* lost, 3)
          // The broker forgets the ids of the facts.
          yield* idsForgotten
          // It is not due for an hour, and what was found stays an alert until then.
          yield* withApi(api.url, { reconcile: Duration.hours(1) })
          const done = yield* scheduled()
          yield* facts.count("provider-lost", 1)
          yield* eventually(
            readReconcileReport(stripe),
            (report) => report !== undefined && report.unrecorded === undefined
          )
          assert.strictEqual(yield* lost, 3)
          assert.deepStrictEqual(done, [])
          const again = yield* run(api.url)
          assert.deepInclude(again.found, { listed: 3, present: 3, missing: 0 })
          yield* facts.count("reconciled", 2)
          assert.deepStrictEqual(
            facts.of("reconciled").map(({ reconciled }) => reconciled?.fetched),
            [3, 0]
          )
          assert.lengthOf(facts.of("provider-lost"), 1)
          assert.isUndefined(yield* lost)
        }),
      { moveDedupe: 100 }
    )

  scenario("are done by one of several gateways, from where the last one ended", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const facts = yield* history
      const api = yield* providerApi(stripeEvents(events(3)))
      // It was added before the events happened.
      yield* changeSource(stripe, (source) => Effect.succeed({ ...source, createdAt: 1 }))
      yield* withApi(api.url)
      const [one, two] = [yield* scheduled(), yield* scheduled()]
      yield* facts.count("reconciled", 1)
      yield* facts.count("provider-lost", 1)
      yield* eventually(
        Effect.sync(() => [...one, ...two]),
        (all) => all.length > 0
      )
      assert.deepStrictEqual([...one, ...two], ["acme/stripe 3 3"])
      assert.strictEqual(yield* storedIn("intake"), 3)
      const report = yield* readReconcileReport(stripe)
      assert.strictEqual(report?.coveredUntil, report?.found.until)

      // As if a minute had passed; what happened in between, however long it was, is asked for.
      const before = report?.found.until ?? 0
      yield* writeReconcileReport({ ...(report as ReconcileReport), endedAt: 1 })
      yield* facts.count("reconciled", 2)
      const [, second] = facts.of("reconciled")
      assert.deepInclude(second?.reconciled, { listed: 3, since: before - 10 * minuteMs })
      assert.strictEqual(yield* storedIn("intake"), 3)
    })
  )

  scenario(
    "are done by another gateway after kill -9, which tells of all that was fetched",
    (place) =>
      Effect.gen(function* () {
        yield* stripeSource()
        const facts = yield* history
        const list = stripeEvents(events(6), 2)
        let isHeld = true
        const held = yield* Deferred.make<void>()
        const api = yield* providerApi((asked) => {
          if (!isHeld || asked.query.get("starting_after") === null) return list(asked)
          Deferred.doneUnsafe(held, Effect.void)
          return { hangs: true }
        })
        yield* changeSource(stripe, (source) => Effect.succeed({ ...source, createdAt: 1 }))
        yield* withApi(api.url)
        const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
        const networks = ["--allow-network", "127.0.0.0/8"]
        const gateway = yield* start("ingest", "--listen", "127.0.0.1:0", ...flags, ...networks)
        yield* Deferred.await(held)
        assert.strictEqual(yield* storedIn("intake"), 2)
        const other = yield* scheduled()
        yield* gateway.signal("SIGKILL")
        yield* gateway.ended
        isHeld = false
        yield* eventually(
          Effect.sync(() => other),
          (done) => done.length > 0
        )
        assert.deepStrictEqual(other, ["acme/stripe 6 6"])
        yield* facts.count("reconciled", 1)
        const [told] = facts.of("reconciled")
        assert.deepInclude(told?.reconciled, { listed: 6, present: 0, missing: 6, fetched: 6 })
        yield* facts.count("provider-lost", 1)
        assert.strictEqual(facts.of("provider-lost")[0]?.reason, "6 of 6 events had not come in")
        assert.strictEqual(yield* storedIn("intake"), 6)
        yield* eventually(storedIn("events"), (count) => count === 6)

        // What was told once is not told again.
        const again = yield* run(api.url)
        assert.deepInclude(again.found, { listed: 6, present: 6, missing: 0, fetched: 0 })
        yield* facts.count("reconciled", 2)
        assert.lengthOf(facts.of("provider-lost"), 1)
      })
  )

  scenario("go on after one that was broken off, and are told of a wrong account", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const facts = yield* history
      const api = yield* providerApi(() => ({ status: 401, json: {} }))
      const refused = yield* Effect.flip(withApi("ftp://x", { apiKey: null }))
      assert.match(refused.message, /apiKey is missing: .*apiUrl must be the URL of an API/)
      yield* changeSource(stripe, (source) => Effect.succeed({ ...source, createdAt: 1 }))
      yield* withApi(api.url)
      yield* scheduled()
      yield* facts.count("reconcile-failed", 1)
      assert.match(String(facts.of("reconcile-failed")[0]?.reason), /refuses the credentials/)
      const report = yield* eventually(
        readReconcileReport(stripe),
        (written) => written !== undefined
      )
      assert.isUndefined(report?.coveredUntil)
      const said = Effect.map(readSurvey, (survey) =>
        statusOf(survey).notices.map(({ text }) => text)
      )
      assert.match(
        (yield* said).join("\n"),
        /last reconciliation of acme\/stripe was interrupted at .* \(Stripe refuses the credentials/
      )
      api.answer(stripeEvents(events(2)))
      yield* writeReconcileReport({ ...(report as ReconcileReport), endedAt: 1 })
      yield* facts.count("reconciled", 1)
      assert.deepInclude(facts.of("reconciled")[0]?.reconciled, { missing: 2, fetched: 2 })
      yield* eventually(said, (texts) => !texts.join().includes("broken off"))
      yield* removeSource(stripe, "test")
      assert.isUndefined(yield* readReconcileReport(stripe))
    })
  )
})
