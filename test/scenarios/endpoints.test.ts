import { assert, describe } from "@effect/vitest"
import { Clock, Deferred, Effect, Schema } from "effect"
import { Webhook } from "standardwebhooks"
import { Broker } from "../../src/broker/connection.ts"
import {
  changeEndpoint,
  disableEndpoint,
  enableEndpoint,
  removeEndpoint
} from "../../src/delivery/endpoint-store.ts"
import { deliveryHeaders, untried } from "../../src/domain/delivery.ts"
import type { EndpointJson } from "../../src/domain/endpoint.ts"
import { Endpoint } from "../../src/domain/endpoint.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { makeConditions } from "../conditions.ts"
import {
  deadLetters,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  quickRetry,
  waitingMessages,
  worker
} from "../engine.ts"
import type { Received, Receiver } from "../receiver.ts"
import { receiver } from "../receiver.ts"
import { byAttempt, onServer } from "../scenario.ts"

const { scenario } = onServer()

const decode = Schema.decodeUnknownSync(Endpoint)
const encode = Schema.encodeSync(Endpoint)

const change = (id: string, changes: Partial<EndpointJson>) =>
  changeEndpoint("acme", id, (found) => Effect.succeed(decode({ ...encode(found), ...changes })))

const disable = (id: string) => disableEndpoint({ tenant: "acme", endpoint: id }, "asked to", "cli")

/** Writes into the bucket as only a person with `nats kv put` would. */
const writeByHand = (key: string, value: string) =>
  Effect.gen(function* () {
    const { ask, bucket, names } = yield* Broker
    const kv = yield* bucket(names.buckets.endpoints)
    return yield* ask("put", () => kv.put(key, value))
  })

const readByHand = (key: string) =>
  Effect.gen(function* () {
    const { ask, bucket, names } = yield* Broker
    const kv = yield* bucket(names.buckets.endpoints)
    const entry = yield* ask("get", () => kv.get(key))
    return entry?.string() ?? ""
  })

/** Waits far longer than any test. */
const patientRetry = quickRetry({
  backoff: { kind: "fixed", delay: "30 minutes" },
  window: "2 hours"
})

const of = (facts: ReadonlyArray<Fact>, id: string) => facts.filter((fact) => fact.endpoint === id)

const reasons = (facts: ReadonlyArray<Fact>) =>
  facts.map(({ attempt, kind, reason }) => [kind, attempt, reason])

/** Publishes events until one of them has come as it should; changes take a moment to be seen. */
const publishUntil = (
  { requests }: Receiver,
  type: string,
  holds: (request: Received) => boolean
) =>
  Effect.gen(function* () {
    const before = requests.length
    const start = yield* Clock.currentTimeMillis
    yield* eventually(publish(type), () => requests.slice(before).some(holds))
    assert.isBelow((yield* Clock.currentTimeMillis) - start, 5_000)
  })

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
        facts.of("routed").find(({ eventSeq }) => eventSeq === seq)?.plan?.endpoints,
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
        facts
          .of("routed")
          .filter(({ plan }) => plan?.skipped.some(({ id }) => id === "hook") === true)
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
          return facts.of("routed").find((fact) => fact.eventSeq === seq)?.plan?.endpoints
        }),
        (endpoints) => endpoints?.length === 0
      )
    })
  )
})

describe.concurrent("what waits for an endpoint", () => {
  scenario("ends when the endpoint is removed or disabled, wherever it waits", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 500 } })
      for (const id of ["removed", "disabled", "stays"])
        yield* endpoint({ id, url: busy.url, retry: patientRetry, maxInFlight: 1 })
      const facts = yield* history
      yield* worker({ maxWaiting: 3 })
      for (let event = 0; event < 4; event++) yield* publish("a")
      yield* facts.count("attempt-failed", 12)
      const waits = new Set(facts.of("attempt-failed").map(({ wait }) => wait))
      assert.deepStrictEqual(waits, new Set(["nak", "schedule"]))

      yield* removeEndpoint("acme", "removed")
      yield* disable("disabled")
      yield* facts.count("dead-lettered", 8)
      for (const id of ["removed", "disabled"])
        assert.deepStrictEqual(
          reasons(of(facts.of("dead-lettered"), id)),
          Array.from({ length: 4 }, () => ["dead-lettered", 1, `endpoint-${id}`])
        )
      yield* eventually(waitingMessages, (count) => count === 4)
      assert.strictEqual((yield* deadLetters).length, 8)
      assert.strictEqual(busy.requests.length, 12)
      assert.strictEqual(of(facts.of("dead-lettered"), "stays").length, 0)
    })
  )

  scenario("also when that happened while no worker was running", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 500 } })
      const ids = ["removed", "disabled", "renewed", "stays"]
      for (const id of ids) yield* endpoint({ id, url: busy.url, retry: patientRetry })
      const facts = yield* history
      const first = yield* worker()
      yield* publish("a")
      yield* facts.count("attempt-failed", 4)
      yield* first.stop
      for (const id of ["removed", "renewed"]) yield* removeEndpoint("acme", id)
      yield* disable("disabled")
      yield* endpoint({ id: "renewed", url: busy.url })
      yield* worker({ id: "w2" })
      yield* facts.count("dead-lettered", 3)
      assert.deepStrictEqual(
        Object.fromEntries(facts.of("dead-lettered").map((fact) => [fact.endpoint, fact.reason])),
        {
          removed: "endpoint-removed",
          disabled: "endpoint-disabled",
          renewed: "endpoint-removed"
        }
      )
      yield* eventually(waitingMessages, (count) => count === 1)
      assert.strictEqual(busy.requests.length, 4)
    })
  )

  scenario("and when nothing but schedules was left of it", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 500 } })
      const ids = ["removed", "disabled", "renewed", "stays"]
      for (const id of ids) yield* endpoint({ id, url: busy.url, retry: patientRetry })
      const facts = yield* history
      const first = yield* worker({ maxWaiting: 0 })
      yield* publish("a")
      yield* facts.count("attempt-failed", 4)
      yield* first.stop
      for (const id of ["removed", "renewed"]) yield* removeEndpoint("acme", id)
      yield* disable("disabled")
      yield* endpoint({ id: "renewed", url: busy.url })
      yield* worker({ id: "w2" })
      yield* facts.count("dead-lettered", 3)
      yield* eventually(waitingMessages, (count) => count === 1)
      assert.strictEqual(of(facts.of("dead-lettered"), "stays").length, 0)
    })
  )

  scenario("does not go to another endpoint that is made under the same name", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 500 } })
      const next = yield* receiver()
      yield* endpoint({ url: busy.url, retry: patientRetry })
      const facts = yield* history
      yield* worker()
      yield* publish("old", "old")
      yield* facts.count("attempt-failed", 1)
      yield* removeEndpoint("acme", "hook")
      yield* endpoint({ url: next.url })
      yield* facts.count("dead-lettered", 1)
      assert.strictEqual(nth(facts.of("dead-lettered"), 0).reason, "endpoint-removed")
      yield* publishUntil(next, "new", () => true)
      assert.isTrue(next.requests.every(({ body }) => body.toString() === "{}"))
    })
  )

  scenario("ends also when it was on its way there and comes only afterwards", () =>
    Effect.gen(function* () {
      const { names, publisher } = yield* Broker
      const { connections, url } = yield* receiver()
      const former = yield* endpoint({ id: "former", url })
      const gone = yield* endpoint({ id: "gone", url })
      yield* endpoint({ id: "off", url })
      yield* removeEndpoint("acme", "former")
      yield* endpoint({ id: "former", url })
      yield* removeEndpoint("acme", "gone")
      const off = yield* disable("off")
      const facts = yield* history
      const { delivering } = yield* worker()
      yield* delivering
      const deadline = (yield* Clock.currentTimeMillis) + 600_000
      for (const { endpoint, revision } of [former, gone, off]) {
        const delivery = {
          tenant: "acme",
          endpoint: endpoint.id,
          event: "e1",
          eventSeq: 1,
          type: "a",
          round: "0",
          began: 0,
          deadline,
          generation: endpoint.generation,
          revision,
          content: {},
          progress: untried
        }
        const partition = partitionOf("acme", endpoint.id, 2)
        yield* publisher.publish(
          names.subjects.delivery(partition, "acme", endpoint.id),
          "{}",
          deliveryHeaders(delivery, `late.${endpoint.id}`)
        )
      }
      yield* facts.count("dead-lettered", 3)
      assert.deepStrictEqual(
        Object.fromEntries(
          facts
            .of("dead-lettered")
            .map(({ attempt, endpoint, reason }) => [endpoint, [attempt, reason]])
        ),
        {
          former: [0, "endpoint-removed"],
          gone: [0, "endpoint-removed"],
          off: [0, "endpoint-disabled"]
        }
      )
      assert.strictEqual(connections(), 0)
    })
  )

  scenario("ends soon after its attempt where that was under way at that moment", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const held = yield* receiver({
        answer: ({ path }) =>
          Effect.runPromise(Effect.as(Deferred.await(gate), { status: Number(path.slice(1)) }))
      })
      yield* endpoint({ id: "fails", url: `${held.url}/500`, retry: patientRetry })
      yield* endpoint({ id: "works", url: `${held.url}/200`, retry: patientRetry })
      yield* endpoint({ id: "other", url: `${held.url}/500`, retry: patientRetry })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* held.received(3)
      yield* removeEndpoint("acme", "fails")
      yield* removeEndpoint("acme", "works")
      yield* disable("other")
      yield* facts.count("endpoint-disabled", 1)
      yield* Deferred.succeed(gate, undefined)
      yield* facts.count("dead-lettered", 2)
      assert.deepStrictEqual(reasons(of(facts.facts, "fails")), [
        ["attempt-failed", 1, undefined],
        ["dead-lettered", 1, "endpoint-removed"]
      ])
      assert.deepStrictEqual(reasons(of(facts.facts, "works")), [["delivered", 1, undefined]])
      yield* eventually(waitingMessages, (count) => count === 0)
    })
  )
})

describe.concurrent("a receiver that answers 410 Gone", () => {
  scenario("gets nothing more: its endpoint is disabled, and it is said so", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* Broker
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
        facts.of("dead-lettered").map(({ reason, status }) => [reason, status]),
        [
          ["permanent", 410],
          ["endpoint-disabled", 500]
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
        facts.of("routed").some(({ plan }) => plan?.skipped.length === 1)
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
          .of("routed")
          .find(({ eventSeq }) => eventSeq === seq)
          ?.plan?.endpoints.map(({ id }) => id),
        ["hook"]
      )
      yield* received(2)
    })
  )

  scenario("makes a worker that knows no other wait until it does", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const first = yield* worker({ id: "r", roles: ["router"] })
      yield* publish("a", "[1]")
      yield* facts.count("routed", 1)
      yield* first.stop
      const good = yield* readByHand("acme.hook")
      yield* writeByHand("acme.hook", good.slice(0, -20))
      yield* worker()
      yield* eventually(
        Effect.flatMap(Broker, ({ ask, jsm, names }) =>
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

describe.concurrent("an endpoint on a private address", () => {
  scenario("is not even connected to where its network is not allowed", () =>
    Effect.gen(function* () {
      const private4 = yield* receiver()
      const retry = quickRetry({ maxAttempts: 2 })
      const urls = {
        literal: private4.url,
        name: `http://localhost:${private4.port}`,
        mapped: `http://[::ffff:127.0.0.1]:${private4.port}`,
        decimal: `http://2130706433:${private4.port}`,
        zero: `http://0.0.0.0:${private4.port}`
      }
      for (const [id, url] of Object.entries(urls)) yield* endpoint({ id, url, retry })
      const facts = yield* history
      yield* worker({ allowNetworks: [] })
      yield* publish("a")
      yield* facts.count("dead-lettered", Object.keys(urls).length)
      for (const id of Object.keys(urls)) {
        assert.deepStrictEqual(
          of(facts.of("attempt-failed"), id).map(({ attempt, error }) => [attempt, error?.class]),
          [
            [1, "address"],
            [2, "address"]
          ],
          id
        )
        assert.deepInclude(nth(of(facts.of("dead-lettered"), id), 0), { reason: "attempts" })
      }
      assert.strictEqual(private4.connections(), 0)
    })
  )
})

describe.concurrent("endpoints side by side", () => {
  scenario("never have more requests in flight than each allows", () =>
    Effect.gen(function* () {
      const counted = yield* Effect.forEach([1, 3, 50], (cap) =>
        Effect.gen(function* () {
          let now = 0
          let most = 0
          const made = yield* receiver({
            answer: () => {
              most = Math.max(most, ++now)
              return new Promise((resolve) =>
                setTimeout(() => {
                  now--
                  resolve({ status: 200 })
                }, 20)
              )
            }
          })
          yield* endpoint({ id: `cap${cap}`, url: made.url, maxInFlight: cap })
          return { cap, made, most: () => most }
        })
      )
      const facts = yield* history
      yield* worker()
      yield* Effect.forEach(Array.from({ length: 25 }), () => publish("a"), { concurrency: 20 })
      yield* facts.count("delivered", 75)
      for (const { cap, made, most } of counted) {
        assert.isAtMost(most(), cap)
        assert.strictEqual(made.requests.length, 25)
      }
      assert.strictEqual(counted[1]?.most(), 3)
    })
  )

  scenario(
    "do not wait for one of them that is slow",
    () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const slow = yield* receiver({
          answer: () => Effect.runPromise(Effect.as(Deferred.await(gate), {}))
        })
        const quick = yield* receiver()
        yield* endpoint({ id: "slow", url: slow.url, maxInFlight: 2 })
        yield* endpoint({ id: "quick", url: quick.url })
        const facts = yield* history
        yield* worker()
        const count = 300
        yield* Effect.forEach(Array.from({ length: count }), () => publish("a"), {
          concurrency: 50
        })
        yield* quick.received(count)
        assert.strictEqual(slow.requests.length, 2)
        yield* Deferred.succeed(gate, undefined)
        yield* facts.count("delivered", 2 * count)
        assert.strictEqual(slow.requests.length, count)
        assert.deepStrictEqual(facts.of("attempt-failed"), [])
      }),
    { partitions: 1 }
  )

  scenario("keep their own pace of retries", () =>
    Effect.gen(function* () {
      const failing = yield* receiver({ answer: { status: 500 } })
      const mending = yield* receiver({ answer: byAttempt(500, 200) })
      yield* endpoint({ id: "failing", url: failing.url, retry: patientRetry })
      yield* endpoint({ id: "mending", url: mending.url })
      const facts = yield* history
      yield* worker()
      yield* Effect.forEach(Array.from({ length: 50 }), () => publish("a"), { concurrency: 10 })
      yield* facts.count("delivered", 50)
      assert.strictEqual(mending.requests.length, 100)
      assert.strictEqual(of(facts.of("attempt-failed"), "failing").length, 50)
    })
  )
})
