import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { NewEvent, Outcome } from "../../src/client/client.ts"
import { eventually, nth } from "../kit/engine.ts"
import type { Answer, Received } from "../kit/receiver.ts"
import { broken, clientOf, eventsIn, inOrder, json, problem, rejected } from "./answering.ts"

/** Answers for each event of a batch. */
const answering =
  (statusOf: (id: string) => number) =>
  (request: Received): Answer => {
    const events = eventsIn(request).map(({ id }) => ({ id, status: statusOf(id) }))
    const count = (status: number) => events.filter((one) => one.status === status).length
    return json({
      stored: count(201),
      duplicates: count(200),
      failed: events.length - count(201) - count(200),
      events
    })
  }

const stored = answering(() => 201)

const numbered = (count: number, data: unknown = 1): ReadonlyArray<NewEvent> =>
  Array.from({ length: count }, (_, n) => ({ type: "a", id: `e${n}`, data }))

const idsIn = (request: Received) => eventsIn(request).map(({ id }) => id)

describe("publishing with the client", () => {
  it.live("gives an event an id, and sends it again with that", () =>
    Effect.gen(function* () {
      const answer = json({ tenant: "acme", id: "acme.x", duplicate: false }, 201)
      const { petrel, requests } = yield* clientOf(
        inOrder(broken, problem(503, "unavailable"), answer)
      )
      yield* Effect.promise(() => petrel.publish({ type: "a", data: 1 }))
      const bodies = requests.map(({ body }) => body.toString("utf8"))
      assert.lengthOf(bodies, 3)
      assert.match(nth(bodies, 0), /"id":"[0-9a-f]{32}"/)
      assert.lengthOf(new Set(bodies), 1)
    })
  )

  it.live("gives bytes an id as well, and sends them as they are", () =>
    Effect.gen(function* () {
      const answer = json({ tenant: "acme", id: "acme.x", duplicate: false }, 201)
      const { petrel, requests } = yield* clientOf(inOrder(broken, answer))
      const body = Uint8Array.of(0, 255, 10)
      yield* Effect.promise(() =>
        petrel.publishRaw({ type: "a.b", body, contentType: "image/x", tracestate: "t=1" })
      )
      for (const one of requests) {
        assert.deepStrictEqual([...one.body], [...body])
        assert.deepInclude(one, { path: "/v1/tenants/acme/raw-events/a.b" })
        assert.deepInclude(one.headers, { "content-type": "image/x", tracestate: "t=1" })
      }
      const keys = requests.map(({ headers }) => headers["idempotency-key"])
      assert.match(String(keys[0]), /^[0-9a-f]{32}$/)
      assert.lengthOf(new Set(keys), 1)
    })
  )

  it.live("takes bytes in an ArrayBuffer or a part of one, and text, and nothing else", () =>
    Effect.gen(function* () {
      const answer = json({ tenant: "acme", id: "acme.x", duplicate: false }, 201)
      const { petrel, requests } = yield* clientOf(answer)
      const { buffer } = Uint8Array.of(1, 2, 3, 4)
      const raw = (body: unknown) => petrel.publishRaw({ type: "a", body } as never)
      yield* Effect.promise(async () => {
        for (const body of [buffer, new DataView(buffer, 1, 2), "ü"]) await raw(body)
      })
      assert.deepStrictEqual(
        requests.map(({ body }) => [...body]),
        [
          [1, 2, 3, 4],
          [2, 3],
          [0xc3, 0xbc]
        ]
      )
      for (const body of [{ a: 1 }, [1, 2], 5, null, undefined])
        assert.strictEqual(
          String(yield* Effect.promise(() => rejected(raw(body)))),
          "TypeError: publishRaw needs body as bytes or text: for data there is publish"
        )
      assert.lengthOf(requests, 3)
    })
  )

  it.live("makes smaller batches where a proxy takes no larger ones", () =>
    Effect.gen(function* () {
      const mebibyte = 1024 * 1024
      const html = { "content-type": "text/html" }
      const { petrel, requests } = yield* clientOf((request) =>
        request.body.length > mebibyte
          ? { status: 413, headers: html, body: "<h1>413 Request Entity Too Large</h1>" }
          : stored(request)
      )
      const seen: Array<string> = []
      const onOutcome = ({ event, answer }: Outcome) =>
        void seen.push(`${event.id} ${answer.status}`)
      const some = numbered(600, "x".repeat(20_000))
      const large = { type: "a", id: "large", data: "x".repeat(mebibyte) }
      const sum = yield* Effect.promise(() =>
        petrel.publishAll([...some, large], { onOutcome, concurrency: 1 })
      )
      assert.include(sum, { stored: 600, duplicates: 0, failed: 1 })
      assert.deepInclude(nth(sum.failures, 0), { event: large })
      assert.deepStrictEqual(
        seen.toSorted(),
        [...some.map(({ id }) => `${id} 201`), "large 413"].toSorted()
      )
      // Once it knows, it does not try larger ones any more.
      const refused = requests.filter(({ body }) => body.length > mebibyte)
      assert.isAtMost(refused.length, 5)
    })
  )

  it.live("makes batches of as many events and bytes as it should", () =>
    Effect.gen(function* () {
      const { petrel, requests } = yield* clientOf(stored)
      const some = yield* Effect.promise(() => petrel.publishAll(numbered(25), { batch: 10 }))
      assert.deepStrictEqual(some, { stored: 25, duplicates: 0, failed: 0, failures: [] })
      assert.deepStrictEqual(
        requests.map((one) => eventsIn(one).length),
        [10, 10, 5]
      )
      const large = "x".repeat(900_000)
      yield* Effect.promise(() => petrel.publishAll(numbered(9, large)))
      const sizes = requests.slice(3).map((one) => [eventsIn(one).length, one.body.length])
      // They are on their way together, and arrive in any order.
      assert.deepStrictEqual(sizes.map(([count]) => count).toSorted(), [1, 4, 4])
      for (const [, bytes = 0] of sizes) assert.isAtMost(bytes, 4 * 1024 * 1024)
    })
  )

  it.live("sends again what was not known to be stored, and nothing else", () =>
    Effect.gen(function* () {
      let asked = 0
      const { petrel, requests } = yield* clientOf((request) => {
        const first = asked++ === 0
        return answering((id) =>
          first && id === "e2" ? 503 : id === "e1" ? 409 : id === "e0" ? 200 : 201
        )(request)
      })
      const outcomes: Array<string> = []
      const summary = yield* Effect.promise(() =>
        petrel.publishAll(numbered(4), {
          onOutcome: ({ answer, event }) => outcomes.push(`${event.id} ${answer.status}`)
        })
      )
      assert.deepStrictEqual(requests.map(idsIn), [["e0", "e1", "e2", "e3"], ["e2"]])
      assert.deepStrictEqual(outcomes, ["e0 200", "e1 409", "e3 201", "e2 201"])
      assert.deepInclude(summary, { stored: 2, duplicates: 1, failed: 1 })
      assert.strictEqual(nth(summary.failures, 0).event.id, "e1")
    })
  )

  it.live("waits as long as the answer says before it sends events again", () =>
    Effect.gen(function* () {
      const events = [
        { status: 201 },
        { status: 503, retryAfter: 3 },
        { status: 503, retryAfter: 30 }
      ]
      const { petrel, requests } = yield* clientOf(
        json({ stored: 1, duplicates: 0, failed: 2, events })
      )
      // As long as it may take in all is over before.
      const away = yield* Effect.promise(() =>
        rejected(petrel.publishAll(numbered(3), { retryForMs: 20_000 }))
      )
      assert.deepInclude(away, { code: "unavailable", status: 503, retryAfter: 30 })
      assert.lengthOf(requests, 1)
    })
  )

  it.live("reads its source as fast as events are stored", () =>
    Effect.gen(function* () {
      const held: Array<() => void> = []
      const { petrel, received, requests } = yield* clientOf((request) => {
        const answer = stored(request)
        return new Promise((resolve) => {
          held.push(() => resolve(answer))
        })
      })
      let read = 0
      function* source() {
        for (const event of numbered(1_000)) {
          read++
          yield event
        }
      }
      const all = petrel.publishAll(source(), { batch: 10, concurrency: 3 })
      yield* received(3)
      // That it sends and reads no more has no event: a fourth request would have come by then.
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 50)))
      assert.lengthOf(requests, 3)
      assert.isAtMost(read, 31)
      held.shift()?.()
      yield* received(4)
      assert.isAtMost(read, 41)
      const release = setInterval(() => held.shift()?.(), 1)
      const summary = yield* Effect.promise(() => all)
      clearInterval(release)
      assert.strictEqual(summary.stored, 1_000)
    })
  )

  it.live("does not let an event wait for others that do not come", () =>
    Effect.gen(function* () {
      const { petrel, received, requests } = yield* clientOf(stored)
      const { promise: more, resolve: go } = Promise.withResolvers<void>()
      async function* source() {
        yield* numbered(2)
        await more
        yield { type: "a", id: "late", data: 1 }
      }
      const all = petrel.publishAll(source())
      yield* received(1)
      assert.deepStrictEqual(requests.map(idsIn), [["e0", "e1"]])
      go()
      yield* Effect.promise(() => all)
      assert.deepStrictEqual(requests.map(idsIn), [["e0", "e1"], ["late"]])
    })
  )

  it.live("ends its source where the server refuses all, or never stores", () =>
    Effect.gen(function* () {
      const { answer, petrel, requests } = yield* clientOf(problem(401, "unauthorized"))
      let isEnded = false
      const source = async function* () {
        try {
          for (const event of numbered(1_000)) yield event
        } finally {
          isEnded = true
        }
      }
      const options = { batch: 1, concurrency: 1, retryForMs: 500 }
      const refused = yield* Effect.promise(() => rejected(petrel.publishAll(source(), options)))
      assert.deepInclude(refused, { code: "unauthorized" })
      assert.lengthOf(requests, 1)
      yield* eventually(
        Effect.sync(() => isEnded),
        (isEnded) => isEnded
      )
      answer(answering(() => 503))
      const away = yield* Effect.promise(() => rejected(petrel.publishAll(source(), options)))
      assert.deepInclude(away, { code: "unavailable", status: 503 })
      assert.lengthOf(new Set(requests.slice(1).flatMap(idsIn)), 1)
    })
  )

  it.live("ends with its signal, also while its source gives nothing", () =>
    Effect.gen(function* () {
      const { petrel, received } = yield* clientOf(stored)
      const controller = new AbortController()
      const source = async function* (): AsyncGenerator<NewEvent> {
        yield { type: "a", data: 1 }
        await new Promise(() => undefined)
      }
      const all = rejected(petrel.publishAll(source(), { signal: controller.signal }))
      yield* received(1)
      controller.abort(new Error("enough"))
      assert.deepStrictEqual(yield* Effect.promise(() => all), new Error("enough"))
    })
  )

  it.live("refuses bounds that are none", () =>
    Effect.gen(function* () {
      const { petrel } = yield* clientOf(stored)
      const error = yield* Effect.promise(() => rejected(petrel.publishAll([], { batch: 1_001 })))
      assert.strictEqual(
        String(error),
        "TypeError: batch must be a whole number from 1 to 1000: it is 1001"
      )
    })
  )
})
