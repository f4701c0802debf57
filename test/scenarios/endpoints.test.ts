import { assert, describe } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { natsClients } from "../../src/broker/clients.ts"
import { enableEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { makeConditions } from "../kit/conditions.ts"
import { consistentRounds } from "../kit/consistency.ts"
import {
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishTo,
  quickRetry,
  secret,
  worker
} from "../kit/engine.ts"
import { change, disable, publishUntil, readByHand, writeByHand } from "../kit/live-endpoints.ts"
import { patientRetry } from "../kit/outcomes.ts"
import type { Received } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const verify = (key: string, { body, headers }: Received) =>
  new Webhook(key).verify(body.toString(), headers as Record<string, string>)

const isSignedWith = (key: string) => (request: Received) => {
  try {
    new Webhook(key).verify(request.body.toString(), request.headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}

describe.concurrent("while a worker runs", () => {
  scenario("an endpoint that is added, changed, disabled or enabled counts at once", () =>
    Effect.gen(function* () {
      const first = yield* receiver()
      const second = yield* receiver()
      const facts = yield* history
      yield* worker()

      yield* endpoint({ url: first.url, types: ["a"] })
      yield* publishUntil(first, "a", () => true)

      yield* change("hook", { url: `${second.url}/new` })
      yield* publishUntil(second, "a", ({ path }) => path === "/new")

      const fresh = `whsec_${Buffer.alloc(32, 9).toString("base64")}`
      yield* change("hook", { secrets: [{ value: fresh, createdAt: 0 }] })
      yield* publishUntil(second, "a", isSignedWith(fresh))

      yield* change("hook", { headers: { "x-key": "7" } })
      yield* publishUntil(second, "a", ({ headers }) => headers["x-key"] === "7")

      yield* change("hook", { types: ["b", "c"] })
      yield* publishUntil(second, "b", () => true)
      const { seq } = yield* publish("a")
      yield* facts.until((all) =>
        all.some(({ eventSeq, plan }) => eventSeq === seq && plan !== undefined)
      )
      assert.deepStrictEqual(
        facts.plans().find(({ eventSeq }) => eventSeq === seq)?.plan?.endpoints,
        []
      )

      second.answer({ status: 500 })
      yield* change("hook", {
        retry: quickRetry({ backoff: { kind: "fixed", delay: "7 millis" }, maxAttempts: 2 })
      })
      yield* eventually(publish("b"), () =>
        facts
          .of("attempt-failed")
          .some(({ at, nextAttemptAt }) => nextAttemptAt !== undefined && nextAttemptAt - at === 7)
      )
      yield* facts.count("dead-lettered", 1)
      second.answer({ status: 200 })

      yield* disable("hook")
      const skipped = () =>
        facts.plans().filter(({ plan }) => plan?.skipped.some(({ id }) => id === "hook") === true)
      yield* eventually(publish("b"), () => skipped().length > 0)
      const { eventSeq, plan } = nth(skipped(), 0)
      assert.deepStrictEqual(plan?.skipped, [{ id: "hook", reason: "endpoint-disabled" }])
      assert.deepStrictEqual(plan?.endpoints, [])

      yield* enableEndpoint({ tenant: "acme", endpoint: "hook" }, "cli")
      yield* publishUntil(second, "b", () => true)
      assert.strictEqual(facts.of("endpoint-disabled").length, 1)
      assert.strictEqual(facts.of("endpoint-enabled").length, 1)
      assert.isFalse(facts.of("delivered").some((fact) => fact.eventSeq === eventSeq))

      yield* removeEndpoint("acme", "hook")
      yield* eventually(
        Effect.gen(function* () {
          const { seq } = yield* publish("b")
          yield* facts.until((all) => all.some((fact) => fact.eventSeq === seq))
          return facts.plans().find((fact) => fact.eventSeq === seq)?.plan?.endpoints
        }),
        (endpoints) => endpoints?.length === 0
      )
    })
  )
})

describe.concurrent("while a secret is being rotated", () => {
  scenario("both secrets sign, until the old one's time is over", () =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const fresh = `whsec_${Buffer.alloc(32, 9).toString("base64")}`
      const rotating = yield* receiver()
      const rotated = yield* receiver()
      const secrets = (until: number) => [
        { value: fresh, createdAt: now },
        { value: secret, createdAt: now - 1_000, until }
      ]
      yield* endpoint({ id: "rotating", url: rotating.url, secrets: secrets(now + 600_000) })
      yield* endpoint({ id: "rotated", url: rotated.url, secrets: secrets(now - 1) })
      yield* worker()
      yield* publish("a", "[1]")
      yield* rotating.received(1)
      yield* rotated.received(1)
      verify(fresh, nth(rotating.requests, 0))
      verify(secret, nth(rotating.requests, 0))
      verify(fresh, nth(rotated.requests, 0))
      assert.throws(() => verify(secret, nth(rotated.requests, 0)), /No matching signature/)
    })
  )
})
describe.concurrent("a receiver that answers 410 Gone", () => {
  scenario("gets nothing more: its endpoint is disabled, and it is said so", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const gone = yield* receiver({
        answer: ({ body }) => ({ status: body.toString() === "gone" ? 410 : 500 })
      })
      yield* endpoint({ url: gone.url, retry: patientRetry })
      const conditions = makeConditions()
      const alerts: Array<string> = []
      const subscription = connection.subscribe(names.subjects.failures("acme", "hook", "*"), {
        callback: (_, { subject }) => {
          alerts.push(subject.split(".").at(-1) ?? "")
          conditions.changed()
        }
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => subscription.unsubscribe()))
      const facts = yield* history
      yield* worker()
      yield* publish("a", "waits")
      yield* facts.count("attempt-failed", 1)
      yield* publish("a", "gone")
      yield* facts.count("dead-lettered", 2)
      assert.deepStrictEqual(
        facts
          .of("dead-lettered")
          .map(({ reason, status }) => [reason, status])
          .sort(),
        [
          ["endpoint-disabled", 500],
          ["permanent", 410]
        ]
      )
      yield* facts.count("endpoint-disabled", 1)
      assert.deepInclude(nth(facts.of("endpoint-disabled"), 0), {
        tenant: "acme",
        endpoint: "hook",
        reason: "the receiver answered 410 Gone",
        worker: "w1"
      })
      yield* conditions.until(() => alerts.includes("endpoint-disabled"))
      const stored: { readonly disabled?: unknown } = JSON.parse(yield* readByHand("acme.hook"))
      assert.deepInclude(stored.disabled, { by: "w1", reason: "the receiver answered 410 Gone" })

      const before = gone.requests.length
      yield* eventually(publish("a", "more"), () =>
        facts.plans().some(({ plan }) => plan?.skipped.length === 1)
      )
      assert.isFalse(gone.requests.slice(before).some(({ body }) => body.toString() === "waits"))
    })
  )
})

describe.concurrent("a configuration that does not parse", () => {
  const garbage = ["{", "", "null", '{"v":2}', "[]"]

  scenario("is passed over, and what is known of the endpoint stays in force", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      yield* worker()
      for (const [index, value] of garbage.entries()) yield* writeByHand(`acme.bad${index}`, value)
      yield* writeByHand("lonely", "{")
      yield* writeByHand("a.b.c", "{")
      yield* writeByHand("other.hook", yield* readByHand("acme.hook"))
      const good = yield* readByHand("acme.hook")
      yield* writeByHand("acme.hook", good.slice(0, -20))
      yield* endpoint({ id: "late", url: `${url}/late`, types: ["b"] })
      yield* eventually(publish("b"), () => requests.some(({ path }) => path === "/late"))
      const { seq } = yield* publish("a", "[1]")
      yield* facts.until((all) =>
        all.some(({ eventSeq, kind }) => kind === "delivered" && eventSeq === seq)
      )
      assert.deepStrictEqual(
        facts
          .plans()
          .find(({ eventSeq }) => eventSeq === seq)
          ?.plan?.endpoints.map(({ id }) => id),
        ["hook"]
      )
      yield* received(2)
    })
  )

  scenario("is named as skipped where nothing is known from before, until it is mended", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const mended = yield* receiver()
      for (const id of ["a", "z"]) yield* endpoint({ id, url: hook.url })
      yield* writeByHand("acme.early", '{"v":2}')
      const facts = yield* history
      const planOf = Effect.fnUntraced(function* ({ seq }: { readonly seq: number }) {
        const plan = () => facts.plans().find(({ eventSeq }) => eventSeq === seq)?.plan
        yield* facts.until(() => plan() !== undefined)
        return {
          endpoints: plan()?.endpoints.map(({ id }) => id) ?? [],
          skipped: plan()?.skipped.map(({ id, reason }) => `${id}: ${reason}`) ?? []
        }
      })
      const next = Effect.flatMap(publish("a"), planOf)
      yield* worker()
      assert.deepStrictEqual(yield* next, {
        endpoints: ["a", "z"],
        skipped: ["early: endpoint-unreadable"]
      })
      yield* writeByHand("acme.late", '{"v":2}')
      const both = yield* eventually(next, ({ skipped }) => skipped.length > 1)
      assert.deepStrictEqual(both, {
        endpoints: ["a", "z"],
        skipped: ["early: endpoint-unreadable", "late: endpoint-unreadable"]
      })
      const none = { endpoints: [], skipped: [] }
      assert.deepStrictEqual(yield* planOf(yield* publishTo("other.a")), none)

      const good: object = JSON.parse(yield* readByHand("acme.a"))
      yield* removeEndpoint("acme", "late")
      yield* writeByHand("acme.early", JSON.stringify({ ...good, id: "early", url: mended.url }))
      const all = yield* eventually(next, ({ endpoints }) => endpoints.length > 2)
      assert.deepStrictEqual(all, { endpoints: ["a", "early", "z"], skipped: [] })
      const accounts = yield* consistentRounds
      assert.isTrue(accounts.every(({ ends }) => ends[0]?.kind === "delivered"))
      assert.strictEqual(mended.requests.length, 1)
    })
  )

  scenario("makes a worker that knows no other wait until it does", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const first = yield* worker({ id: "r", roles: ["router"] })
      yield* publish("a", "[1]")
      yield* facts.planned(1)
      yield* first.stop
      const good = yield* readByHand("acme.hook")
      yield* writeByHand("acme.hook", good.slice(0, -20))
      yield* worker()
      yield* eventually(
        Effect.flatMap(natsClients, ({ ask, jsm, names }) =>
          ask("look", () =>
            Promise.all(
              [0, 1].map((index) =>
                jsm.consumers.info(names.deliveries(index), names.deliverConsumer)
              )
            )
          )
        ),
        (infos) => infos.some(({ delivered }) => delivered.consumer_seq > 0)
      )
      yield* writeByHand("acme.hook", good)
      yield* received(1)
      assert.strictEqual(nth(requests, 0).body.toString(), "[1]")
      yield* facts.count("delivered", 1)
      assert.strictEqual(nth(facts.of("delivered"), 0).attempt, 1)
      assert.deepStrictEqual(facts.of("attempt-failed", "dead-lettered"), [])
    })
  )
})
