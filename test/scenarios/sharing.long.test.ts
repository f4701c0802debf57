import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { parse } from "../cli/command-line.ts"
import { start } from "../cli/running.ts"
import { consistentRounds } from "../kit/consistency.ts"
import { counting } from "../kit/counting.ts"
import type { Installation } from "../kit/engine.ts"
import { endpoint, nth, quickRetry } from "../kit/engine.ts"
import type { Received } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { steadyPublisher } from "../kit/steady-publisher.ts"

vi.setConfig({ testTimeout: 120_000 })

const { scenario } = onServer()

/** One endpoint in each of 8 partitions. */
const endpoints = ["a", "b", "c", "d", "e", "f", "g", "h"]
const maxInFlight = 3

/** `petrel worker`; it has its share once it has said so. */
const petrelWorker = Effect.fnUntraced(function* (place: Installation, id: string) {
  const { eventRoot, prefix, url } = place
  const running = yield* start(
    ...["worker", "--id", id, "--allow-network", "127.0.0.0/8", "--log-level", "warn"],
    ...["--nats", url, "--prefix", prefix, "--events", eventRoot, "--json"]
  )
  const share = Effect.map(
    running.until((out) => out.length > 1),
    () => parse(nth(running.out, 1)).partitions
  )
  return { ...running, share }
})

/** Every seventh delivery fails at first. */
const failSome = ({ headers }: Received): number => {
  const number = Number(String(headers["webhook-id"]).split("-").at(-1))
  return number % 7 === 0 && headers["petrel-attempt"] === "1" ? 503 : 200
}

const keyOf = ({ headers, path }: Received) =>
  `${headers["webhook-id"]} to ${path}, attempt ${headers["petrel-attempt"]}`

describe("three workers under load, of which one is killed, one stops and one is added", () => {
  scenario(
    "lose nothing, exceed no cap, and repeat only what the killed one had in flight",
    (place) =>
      Effect.gen(function* () {
        const { answer, most } = counting(40, failSome)
        const hook = yield* receiver({ answer })
        yield* Effect.forEach(endpoints, (id) =>
          endpoint({
            id,
            url: `${hook.url}/${id}`,
            maxInFlight,
            retry: quickRetry({ backoff: { kind: "fixed", delay: "300 millis" } })
          })
        )
        const [killed, stopped, staying] = yield* Effect.forEach(
          ["killed", "stopped", "staying"] as const,
          (id) => petrelWorker(place, id),
          { concurrency: "unbounded" }
        )
        assert.isDefined(killed)
        assert.isDefined(stopped)
        assert.isDefined(staying)
        yield* Effect.forEach([killed, stopped, staying], ({ share }) => share)

        const publisher = yield* steadyPublisher("invoice.paid", 25)
        const more = (count: number) =>
          Effect.suspend(() => hook.received(hook.requests.length + count))
        yield* more(200)

        yield* killed.signal("SIGKILL")
        yield* killed.ended
        const killedAt = Date.now()
        yield* more(150)
        yield* stopped.signal("SIGTERM")
        assert.strictEqual(yield* stopped.ended, 0)
        yield* more(100)
        const added = yield* petrelWorker(place, "added")
        const share = yield* added.share
        assert.isTrue(Array.isArray(share) && share.length >= 2, `has ${share}`)
        yield* more(200)
        const published = yield* publisher.stop

        const accounts = yield* consistentRounds
        assert.strictEqual(accounts.length, published * endpoints.length)
        for (const { ends, event } of accounts)
          assert.strictEqual(ends[0]?.kind, "delivered", event)
        assert.deepStrictEqual(
          new Set(accounts.flatMap(({ ends }) => ends.map(({ worker }) => worker))),
          new Set(["killed", "stopped", "staying", "added"])
        )

        assert.strictEqual(most(), maxInFlight)
        const seen = new Map<string, Array<number>>()
        for (const request of hook.requests) {
          const times = seen.get(keyOf(request)) ?? []
          seen.set(keyOf(request), [...times, request.at])
        }
        const repeated = [...seen].filter(([, { length }]) => length > 1)
        for (const [key, [first = 0, ...again]] of repeated) {
          assert.lengthOf(again, 1, key)
          assert.isTrue(first <= killedAt && killedAt <= nth(again, 0), key)
        }
        assert.isAtMost(repeated.length, 3 * maxInFlight)
      }),
    { partitions: 8 }
  )
})
