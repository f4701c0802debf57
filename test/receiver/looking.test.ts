import { assert, describe, it } from "vitest"
import { type Alert, makeAlerts, type Result } from "../../src/receiver/alerts.ts"
import type { LogLine } from "../../src/receiver/log.ts"
import { receiver } from "../../src/receiver/receiver.ts"
import { memoryStore } from "../../src/receiver/stores/memory.ts"
import { promtool, withoutPrometheus } from "../kit/prometheus.ts"
import { event, sender, signed } from "./sender.ts"

const post = (hooks: Pick<ReturnType<typeof receiver>, "fetch">, request: RequestInit) =>
  hooks.fetch("shop")(new Request("http://shop.test/in", request))

const make = (more: Partial<Parameters<typeof receiver<undefined>>[0]> = {}) => {
  const lines: Array<LogLine> = []
  const hooks = receiver<undefined>({
    ...{ store: memoryStore(), sources: { shop: sender() }, log: (line) => lines.push(line) },
    ...more
  })
  return { hooks, lines }
}

const result = (changes: Partial<Result> = {}): Result => ({
  ...{ at: 0, isSuccess: true, isRetry: false, isPermanent: false, ms: 10 },
  ...changes
})

/** What is told of a window that has so many of these results among 200. */
const toldOf = (count: number, changes: Partial<Result>): ReadonlyArray<string> => {
  const told: Array<Alert> = []
  const alerts = makeAlerts((alert) => told.push(alert))
  for (let at = 0; at < 200; at++) alerts.add("shop", result(at < count ? changes : {}))
  alerts.look(2_000)
  return told.filter(({ isRaised }) => isRaised).map(({ name }) => name)
}

describe("What a receiver tells of itself", () => {
  it.each([
    ["success-low", 10, 11, { isSuccess: false }],
    ["retries-high", 20, 21, { isRetry: true }],
    ["permanent-high", 2, 3, { isPermanent: true }],
    ["slow", 99, 101, { ms: 5_001 }]
  ] as const)(
    "is the alert %s beyond its threshold, and none at it",
    (name, at, beyond, changes) => {
      assert.deepStrictEqual(toldOf(at, changes), [])
      assert.deepStrictEqual(toldOf(beyond, changes), [name])
    }
  )

  it("is no alert where there are few results, and its end when they have grown old", () => {
    const told: Array<string> = []
    const alerts = makeAlerts(({ isRaised, name }) => told.push(`${name} ${isRaised}`))
    for (let at = 0; at < 19; at++) alerts.add("shop", result({ isSuccess: false }))
    alerts.look(2_000)
    assert.deepStrictEqual(told, [])
    alerts.add("shop", result({ isSuccess: false }))
    alerts.look(4_000)
    assert.deepStrictEqual(told, ["success-low true"])
    alerts.look(300_001)
    assert.deepStrictEqual(told, ["success-low true", "success-low false"])
  })

  it("is a line for each receipt, which leads to those of other programs and shows no secret", async () => {
    const { hooks, lines } = make()
    hooks.once("*", () => undefined)
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    const secrets = { authorization: "Bearer s3cret", cookie: "sid=s3cret", "x-api-key": "s3cret" }
    const headers = [
      { traceparent: `00-${trace}-00f067aa0ba902b7-01`, "x-request-id": "req-1" },
      { "x-request-id": "req-1" },
      {}
    ]
    for (const [at, more] of headers.entries()) {
      const request = signed(`evt_${at}`, { type: "invoice.paid" }, { ...secrets, ...more })
      await post(hooks, request)
      assert.notInclude(JSON.stringify(lines), request.headers["webhook-signature"])
    }
    assert.deepStrictEqual(
      lines.map(({ correlationId }) => correlationId),
      [trace, "req-1", "evt_2"]
    )
    for (const { attempt, latencyMs, outcome, status, type } of lines) {
      assert.deepStrictEqual(
        { attempt, outcome, status, type },
        { ...{ attempt: 1, outcome: "done", status: 200, type: "invoice.paid" } }
      )
      assert.isAtLeast(latencyMs ?? -1, 0)
    }
    assert.notInclude(JSON.stringify(lines), "s3cret")
  })

  it.skipIf(withoutPrometheus !== undefined)("is text that Prometheus reads", async () => {
    const { hooks } = make()
    hooks.once("*", () => undefined)
    await post(hooks, event("evt_1"))
    assert.deepStrictEqual(promtool(["check", "metrics"], await hooks.metrics()), {
      ...{ code: 0, text: "" }
    })
  })
})

describe("The figures of a receiver whose store is away", () => {
  it.each(["away", "silent"])("are those of the process (%s)", async (how) => {
    const store = memoryStore()
    const { queue } = store
    if (queue === undefined) throw new Error("the store has a queue")
    const waiting = () =>
      how === "away" ? Promise.reject(new Error("gone")) : new Promise<never>(() => undefined)
    const { hooks, lines } = make({
      ...{ store: { ...store, queue: { ...queue, waiting } }, storeWithinMs: 20 }
    })
    hooks.once("*", () => undefined)
    await post(hooks, event("evt_1"))
    assert.include(await hooks.metrics(), 'receipts_total{source="shop",outcome="done"} 1')
    assert.isTrue(lines.some(({ text }) => text === "what waits could not be counted"))
  })
})

describe("What a receiver bounds and clears away by itself", () => {
  it("is the bytes of bodies in memory: what is more is answered 503", async () => {
    const { hooks } = make({ maxBytesInFlight: 5_000, maxBodyBytes: 4_000 })
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    hooks.once("*", () => ended)
    const large = (id: string) => event(id, "invoice.paid", { text: "x".repeat(2_000) })
    const first = [post(hooks, large("evt_1")), post(hooks, large("evt_2"))]
    const third = await post(hooks, large("evt_3"))
    assert.deepStrictEqual([third.status, third.headers.get("retry-after")], [503, "2"])
    end()
    for (const answer of await Promise.all(first)) assert.strictEqual(answer.status, 200)
    assert.strictEqual((await post(hooks, large("evt_3"))).status, 200)
  })

  it("is keys that are old, also where nothing but `once` is used, a thousand in a statement", async () => {
    const limits: Array<number> = []
    let over: () => void = () => undefined
    const isOver = new Promise<void>((resolve) => {
      over = resolve
    })
    const left = [1_000, 1_000, 3]
    const prune = async (limit: number) => {
      limits.push(limit)
      const pruned = left.shift() ?? 0
      if (left.length === 0) over()
      return pruned
    }
    const { hooks } = make({ store: { ...memoryStore(), queue: undefined, prune } })
    hooks.once("*", () => undefined)
    await post(hooks, event("evt_1"))
    await isOver
    await post(hooks, event("evt_2"))
    assert.deepStrictEqual(limits, [1_000, 1_000, 1_000])
  })
})
