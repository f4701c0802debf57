import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  type CallOptions,
  httpClient,
  isProblem,
  type Job,
  NoAnswer,
  PetrelProblem
} from "../../src/client/client.ts"
import { nth } from "../kit/engine.ts"
import { broken, clientOf, inOrder, json, problem, rejected } from "./answering.ts"

const busy = problem(503, "unavailable", { "retry-after": "1" })

describe("a call of the client", () => {
  it.live("waits as long as Retry-After says, and asks the same again", () =>
    Effect.gen(function* () {
      const { petrel, requests } = yield* clientOf(inOrder(busy, json({ endpoints: [] })))
      const page = yield* Effect.promise(() => petrel.endpoints.list({ limit: 2 }).page())
      assert.deepStrictEqual(page, { endpoints: [] })
      const [first, second] = [nth(requests, 0), nth(requests, 1)]
      assert.isAtLeast(second.at - first.at, 999)
      assert.deepStrictEqual(
        [first.path, second.path],
        Array(2).fill("/v1/tenants/acme/endpoints?limit=2")
      )
    })
  )

  it.live("says what came between where an answer is none of Petrel's", () =>
    Effect.gen(function* () {
      const { answer, petrel } = yield* clientOf(json(null))
      const calls: ReadonlyArray<() => Promise<unknown>> = [
        () => petrel.endpoints.get({ id: "a" }),
        () => petrel.endpoints.list({}).page(),
        () => petrel.publish({ type: "a", data: 1 }),
        () => petrel.publishRaw({ type: "a", body: "1" }),
        () => petrel.publishAll([{ type: "a", data: 1 }])
      ]
      for (const status of [200, 304])
        for (const said of [null, {}]) {
          answer({ ...json(said), status })
          for (const call of status === 200 && said !== null ? calls.slice(1) : calls) {
            const error = yield* Effect.promise(() => rejected(call()))
            assert.isTrue(isProblem(error, "unknown"), String(error))
            assert.match(String(error), /an answer with status \d+ that is not Petrel's/)
          }
        }
    })
  )

  it.live("tells why nobody was reached", () =>
    Effect.gen(function* () {
      const petrel = httpClient({ url: "http://127.0.0.1:1", tenant: "acme", retryForMs: 0 })
      const error = yield* Effect.promise(() => rejected(petrel.endpoints.get({ id: "a" })))
      assert.match(String(error), /fetch failed: .+/)
    })
  )

  it.live("refuses values that path, query and headers cannot have", () =>
    Effect.gen(function* () {
      const { petrel, requests } = yield* clientOf(json({ endpoints: [], deliveries: [] }))
      const half = "\ud800"
      const none = null as never
      const refused: ReadonlyArray<readonly [RegExp, () => Promise<unknown>]> = [
        [
          /endpoint of log.list is not a text, number or time: leave it out/,
          () => petrel.log.list({ endpoint: none }).page()
        ],
        [/endpoint of log.list has half/, () => petrel.log.list({ endpoint: half }).page()],
        [/id of endpoints.get has half/, () => petrel.endpoints.get({ id: `a${half}` })],
        [/tenant of endpoints.get has half/, () => petrel.endpoints.get({ id: "a", tenant: half })],
        [
          /ifMatch of endpoints.patch is not a text, number or time: leave it out/,
          () => petrel.endpoints.patch({ id: "a" }, { ifMatch: none })
        ]
      ]
      for (const [said, call] of refused) {
        const error = yield* Effect.promise(() => rejected(call()))
        assert.instanceOf(error, TypeError)
        assert.match(String(error), said)
      }
      assert.lengthOf(requests, 0)
    })
  )

  it.live("about no tenant sends one that its body names, and not the client's own", () =>
    Effect.gen(function* () {
      const job = json({ id: "j", kind: "audit", state: "done" }, 202)
      const { petrel, requests } = yield* clientOf(inOrder(job, job))
      yield* Effect.promise(() => petrel.jobs.audit({ tenant: "globex" }))
      yield* Effect.promise(() => petrel.jobs.audit({}))
      assert.deepStrictEqual(
        requests.map(({ body, path }) => [path, JSON.parse(body.toString())]),
        [
          ["/v1/audits", { tenant: "globex" }],
          ["/v1/audits", {}]
        ]
      )
    })
  )

  it.live("that may be carried out once only is repeated with one key", () =>
    Effect.gen(function* () {
      const job = json({ id: "j", kind: "redelivery", state: "done" }, 202)
      const { petrel, requests } = yield* clientOf(inOrder(broken, job))
      yield* Effect.promise(() => petrel.jobs.redeliver({ all: true } as never))
      const keys = requests.map(({ headers }) => headers["idempotency-key"])
      assert.lengthOf(keys, 2)
      assert.match(String(keys[0]), /^[0-9a-f]{32}$/)
      assert.strictEqual(keys[1], keys[0])
    })
  )

  it.live("that cannot say that it is the same is not repeated, unless nothing was done", () =>
    Effect.gen(function* () {
      const { answer, petrel, requests } = yield* clientOf(broken)
      const lost = yield* Effect.promise(() => rejected(petrel.endpoints.rotate({ id: "a" })))
      assert.instanceOf(lost, NoAnswer)
      const changed = yield* Effect.promise(() =>
        rejected(petrel.endpoints.patch({ id: "a", maxInFlight: 2 }, { ifMatch: 7 }))
      )
      assert.instanceOf(changed, NoAnswer)
      assert.strictEqual(nth(requests, 1).headers["if-match"], '"7"')
      assert.lengthOf(requests, 2)
      answer(inOrder(problem(429, "too-many-requests", { "retry-after": "0" }), json({ id: "a" })))
      yield* Effect.promise(() => petrel.endpoints.rotate({ id: "a" }))
      assert.lengthOf(requests, 4)
    })
  )

  it.live("ends with the last problem once its time for repetitions is over", () =>
    Effect.gen(function* () {
      const { petrel, requests } = yield* clientOf(problem(503, "unavailable"))
      const error = yield* Effect.promise(() =>
        rejected(petrel.system.workers({}, { retryForMs: 1_000 }))
      )
      assert.isTrue(isProblem(error, "unavailable", "not-found"))
      assert.isFalse(isProblem(error, "not-found"))
      assert.isAbove(requests.length, 1)
      assert.isBelow(requests.length, 6)
    })
  )

  it.live("that nobody answers ends in time, and says what it was", () =>
    Effect.gen(function* () {
      const { petrel } = yield* clientOf(() => undefined)
      const error = yield* Effect.promise(() =>
        rejected(petrel.endpoints.get({ id: "a" }, { timeoutMs: 50, retryForMs: 0 }))
      )
      assert.instanceOf(error, NoAnswer)
      assert.strictEqual(error.message, "endpoints.get: there was no answer within 0.05 s")
    })
  )

  it.live("refuses times that no timer can wait, and repeats without end if it should", () =>
    Effect.gen(function* () {
      const soon = problem(503, "unavailable", { "retry-after": "0" })
      const { petrel, requests, url } = yield* clientOf(inOrder(soon, json({ id: "a" })))
      const job = { id: "j", kind: "replay", state: "running" } as Job
      const get = (options: CallOptions) => petrel.endpoints.get({ id: "a" }, options)
      const messages = yield* Effect.promise(() =>
        Promise.all(
          [
            ...[0, 2 ** 31, Number.POSITIVE_INFINITY].map((timeoutMs) => get({ timeoutMs })),
            get({ retryForMs: Number.NaN }),
            petrel.publishAll([], { lingerMs: Number.POSITIVE_INFINITY }),
            petrel.publishAll([], { retryForMs: -1 }),
            petrel.finish(job, { everyMs: 1e12 })
          ].map(async (asked) => String(await rejected(asked)))
        )
      )
      const must = (name: string, least: number, most: number, value: number) =>
        `TypeError: ${name} must be a number from ${least} to ${most} (ms): it is ${value}`
      const [longest, endless] = [2 ** 31 - 1, Number.POSITIVE_INFINITY]
      assert.deepStrictEqual(messages, [
        ...[0, 2 ** 31, endless].map((value) => must("timeoutMs", 1, longest, value)),
        must("retryForMs", 0, endless, Number.NaN),
        must("lingerMs", 0, longest, endless),
        must("retryForMs", 0, endless, -1),
        must("everyMs", 0, longest, 1e12)
      ])
      assert.throws(() => httpClient({ url, timeoutMs: 1e12 }), /^timeoutMs must be/)
      assert.lengthOf(requests, 0)
      yield* Effect.promise(() => get({ retryForMs: endless, timeoutMs: longest }))
      assert.lengthOf(requests, 2)
    })
  )

  it.live("that waits for a job says at once what is none", () =>
    Effect.gen(function* () {
      const { petrel, requests } = yield* clientOf(json({}))
      for (const job of [undefined, {}, { id: "j", state: "running" }, { replay: 3 }])
        assert.strictEqual(
          String(yield* Effect.promise(() => rejected(petrel.finish(job as never)))),
          "TypeError: finish needs a job as jobs.replay, jobs.getReplay and the like return it"
        )
      assert.lengthOf(requests, 0)
    })
  )

  it.live("ends with its signal, and so does its connection", () =>
    Effect.gen(function* () {
      const { petrel, quiet, received } = yield* clientOf(() => undefined)
      const controller = new AbortController()
      const asked = rejected(petrel.endpoints.get({ id: "a" }, { signal: controller.signal }))
      yield* received(1)
      const why = new Error("enough")
      controller.abort(why)
      assert.strictEqual(yield* Effect.promise(() => asked), why)
      yield* quiet
      const before = yield* Effect.promise(() =>
        rejected(petrel.endpoints.get({ id: "a" }, { signal: controller.signal }))
      )
      assert.strictEqual(before, why)
    })
  )

  it.live("that waits to ask again ends with its signal, too", () =>
    Effect.gen(function* () {
      const { petrel, received } = yield* clientOf(
        problem(503, "unavailable", { "retry-after": "30" })
      )
      const controller = new AbortController()
      const asked = rejected(petrel.endpoints.get({ id: "a" }, { signal: controller.signal }))
      yield* received(1)
      controller.abort(new Error("enough"))
      assert.deepStrictEqual(yield* Effect.promise(() => asked), new Error("enough"))
    })
  )

  it.live("says what is wrong field by field, and what is not Petrel's", () =>
    Effect.gen(function* () {
      const errors = [{ field: "url", message: "is missing" }]
      const { answer, petrel } = yield* clientOf(
        json({ type: "urn:petrel:problem:invalid-request", errors }, 400)
      )
      const put = () => rejected(petrel.endpoints.put({ id: "a" } as never, { retryForMs: 0 }))
      const invalid = yield* Effect.promise(put)
      assert.instanceOf(invalid, PetrelProblem)
      assert.deepInclude(invalid, { code: "invalid-request", status: 400, errors })
      assert.strictEqual(invalid.message, "endpoints.put: url is missing")
      answer({ status: 502, headers: { "content-type": "text/html" }, body: "<h1>Bad</h1>" })
      const foreign = yield* Effect.promise(put)
      assert.deepInclude(foreign, { code: "unknown", status: 502 })
      answer({ status: 200, headers: { "content-type": "text/html" }, body: "<h1>Log in</h1>" })
      assert.deepInclude(yield* Effect.promise(put), { code: "unknown", status: 200 })
    })
  )

  it.live("writes what it is given into path, query and body", () =>
    Effect.gen(function* () {
      const { petrel, requests } = yield* clientOf(json({ deliveries: [] }))
      const since = new Date("2026-03-04T10:30:00Z")
      yield* Effect.promise(() =>
        petrel.log.list({ tenant: "*", status: ["404", "5xx"], since, endpoint: undefined }).page()
      )
      yield* Effect.promise(() => petrel.deliveries.event({ event: "a b/c?" }))
      yield* Effect.promise(() => petrel.endpoints.disable({ id: "a", reason: "moved" }))
      assert.deepStrictEqual(
        requests.map(({ body, method, path }) => `${method} ${path} ${body}`),
        [
          "GET /v1/tenants/*/deliveries?status=404&status=5xx&since=2026-03-04T10%3A30%3A00.000Z ",
          "GET /v1/tenants/acme/events/a%20b%2Fc%3F ",
          'POST /v1/tenants/acme/endpoints/a/disable {"reason":"moved"}'
        ]
      )
    })
  )

  it.live("refuses what can be no request before it is one", () =>
    Effect.gen(function* () {
      const { petrel, requests, url } = yield* clientOf(json({}))
      const messages = yield* Effect.promise(async () =>
        Promise.all(
          [
            petrel.endpoints.get({} as never),
            petrel.endpoints.get({ id: ".." }),
            httpClient({ url }).endpoints.get({ id: "a" }),
            petrel.endpoints.get({ id: "a", colour: "red" } as never)
          ].map(async (asked) => String(await rejected(asked)))
        )
      )
      assert.deepStrictEqual(messages, [
        "TypeError: endpoints.get needs id, which must not be empty, nor . or ..",
        "TypeError: endpoints.get needs id, which must not be empty, nor . or ..",
        "TypeError: endpoints.get needs a tenant: give one to the client, or to the call",
        "TypeError: colour is not a field of endpoints.get: it has id"
      ])
      assert.lengthOf(requests, 0)
      assert.throws(() => httpClient({ url: "127.0.0.1:4280" }), /url must be of http or https/)
    })
  )

  it.live("asks for its token each time, and shows it only where one is needed", () =>
    Effect.gen(function* () {
      let asked = 0
      const { requests, url } = yield* clientOf(json({ status: "ok", endpoints: [] }))
      const petrel = httpClient({ url, tenant: "acme", token: async () => `ptl_${++asked}` })
      yield* Effect.promise(() => petrel.endpoints.list().page())
      yield* Effect.promise(() => petrel.health.health())
      yield* Effect.promise(() => petrel.endpoints.list().page())
      assert.deepStrictEqual(
        requests.map(({ headers }) => headers.authorization),
        ["Bearer ptl_1", undefined, "Bearer ptl_2"]
      )
    })
  )

  it.live("of a list asks for a page only when it is needed", () =>
    Effect.gen(function* () {
      const { petrel, requests } = yield* clientOf(({ path }) =>
        path.includes("cursor=b")
          ? json({ endpoints: [{ id: "3" }] })
          : json({ endpoints: [{ id: "1" }, { id: "2" }], next: "b" })
      )
      const list = petrel.endpoints.list({ limit: 2 })
      const ids = async (most: number) => {
        const found: Array<string> = []
        for await (const { id } of list) if (found.push(id) === most) break
        return found
      }
      assert.lengthOf(requests, 0)
      assert.deepStrictEqual(yield* Effect.promise(() => ids(2)), ["1", "2"])
      assert.lengthOf(requests, 1)
      assert.deepStrictEqual(yield* Effect.promise(() => ids(9)), ["1", "2", "3"])
      assert.lengthOf(requests, 3)
    })
  )
})
