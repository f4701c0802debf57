import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { endpoint, history, publishMany, quickRetry, worker } from "../kit/engine.ts"
import { latencies, quantile } from "../kit/latency.ts"
import { about } from "../kit/outcomes.ts"
import { receiver, tcpServer } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

/** Answers with a header that never ends, a byte at a time. */
const slowLoris = tcpServer((socket) => {
  socket.write("HTTP/1.1 200 OK\r\nx-slow: ")
  const timer = setInterval(() => socket.write("a"), 50)
  socket.on("close", () => clearInterval(timer))
})

const neverAnswers = tcpServer((socket) => socket.resume())

const resets = tcpServer((socket) => socket.once("data", () => socket.resetAndDestroy()))

describe("endpoints that behave badly, each in its way", () => {
  scenario(
    "hold up nobody but themselves, and end as their own policies say",
    () =>
      Effect.gen(function* () {
        const well = yield* receiver()
        const busy = yield* receiver({ answer: { status: 429, headers: { "retry-after": "60" } } })
        const bad = {
          loris: `http://${(yield* slowLoris).host}`,
          silent: `http://${(yield* neverAnswers).host}`,
          resets: `http://${(yield* resets).host}`
        }
        for (const [id, url] of Object.entries(bad)) {
          yield* endpoint({
            id,
            url,
            types: ["bad"],
            timeout: "2 seconds",
            retry: quickRetry({ maxAttempts: 2 }),
            circuit: {}
          })
        }
        yield* endpoint({ id: "busy", url: busy.url, types: ["bad"], circuit: {} })
        yield* endpoint({ id: "well", url: well.url, types: ["good"] })
        const facts = yield* history
        yield* worker()
        yield* latencies(well, "good", 50)
        const before = yield* latencies(well, "good", 300)
        yield* publishMany(60, "bad")
        const during = yield* latencies(well, "good", 300)
        yield* facts.until(
          (all) => new Set(all.flatMap(({ error }) => error?.class ?? [])).size >= 2
        )
        const after = yield* latencies(well, "good", 300)
        const [usual, ...others] = [before, during, after].map((times) => quantile(times, 0.99))
        // A wide margin, for a machine that does other things too: held up, it would be seconds.
        for (const p99 of others) assert.isAtMost(p99, 1.5 * (usual ?? 0) + 1_000)
        for (const id of Object.keys(bad))
          yield* facts.until((all) => about(all, id).some(({ kind }) => kind === "circuit-opened"))
        const classes = (id: string) =>
          new Set(about(facts.facts, id).flatMap(({ error }) => error?.class ?? []))
        assert.deepStrictEqual([...classes("silent")], ["timeout"])
        assert.deepStrictEqual([...classes("loris")], ["timeout"])
        assert.deepStrictEqual([...classes("resets")], ["reset"])
        // Those that were under way when it first said so.
        assert.isAtMost(busy.requests.length, 10)
        yield* facts.count("delivered", 950)
      }),
    { partitions: 1 }
  )
})
