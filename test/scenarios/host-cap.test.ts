import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { setTenant } from "../../src/operations/tenants/tenant-settings.ts"
import { consistentRounds, quiet } from "../kit/consistency.ts"
import { endpoint, eventually, history, publish, publishMany, worker } from "../kit/engine.ts"
import { eight } from "../kit/owners.ts"
import type { Received, Script } from "../kit/receiver.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** A script that answers after `time` (ms), and counts the requests in flight whose host is capped. */
const countingAll = (time: number, isCapped: (request: Received) => boolean) => {
  const counts = { now: 0, most: 0 }
  const answer: Script = async (request) => {
    if (!isCapped(request)) return { status: 200 }
    counts.most = Math.max(counts.most, ++counts.now)
    await latency(time)
    counts.now--
    return { status: 200 }
  }
  return { answer, counts }
}

const isCapped = ({ headers }: Pick<Received, "headers">) =>
  String(headers.host).startsWith("127.0.0.1")

describe.concurrent("a cap of requests to one host", () => {
  const cap = 3
  const events = 6

  scenario(
    "is kept by two workers within one request, each endpoint has its turn, and one worker that is left keeps it exactly",
    () =>
      Effect.gen(function* () {
        yield* setTenant("acme", { hostCap: cap }, "ana")
        const { answer, counts } = countingAll(40, isCapped)
        const hook = yield* receiver({ answer })
        yield* Effect.forEach(eight, (id) => endpoint({ id, url: `${hook.url}/${id}` }))
        yield* endpoint({ id: "elsewhere", url: `${hook.url.replace("127.0.0.1", "localhost")}/x` })
        const facts = yield* history
        const first = yield* worker({ id: "w1" })
        const second = yield* worker({ id: "w2" })
        assert.lengthOf(yield* second.delivering, 4)

        yield* publishMany(events)
        yield* facts.count("delivered", 9 * events)
        assert.isAtMost(counts.most, cap + 1)
        assert.isAtLeast(counts.most, 2)
        const capped = hook.requests.filter(isCapped)
        // Every endpoint has had a turn when half of the requests have come.
        const half = capped.slice(0, capped.length / 2).map(({ path }) => path)
        assert.deepStrictEqual(new Set(half), new Set(eight.map((id) => `/${id}`)))
        // The other host has had all when the capped one has not.
        const lastElsewhere = hook.requests.findLastIndex((request) => !isCapped(request))
        assert.isBelow(lastElsewhere, hook.requests.length - events)

        // While partitions change owners, what began under the former shares counts beside.
        yield* publishMany(events, "invoice.open")
        yield* facts.count("delivered", 12 * events)
        yield* second.stop
        yield* facts.count("delivered", 18 * events)
        assert.isAtMost(counts.most, 2 * (cap + 1))

        // What one worker may take, once it has all partitions.
        counts.most = 0
        yield* publishMany(events, "invoice.sent")
        yield* facts.count("delivered", 27 * events)
        assert.isAtMost(counts.most, cap)
        for (const { ends } of yield* consistentRounds)
          assert.strictEqual(ends[0]?.kind, "delivered")
        assert.strictEqual(hook.requests.length, 27 * events)
        yield* first.stop
      }),
    { partitions: 8 }
  )

  scenario("of the system holds over tenants, and can be changed while a worker runs", () =>
    Effect.gen(function* () {
      const { answer, counts } = countingAll(30, isCapped)
      const hook = yield* receiver({ answer })
      yield* Effect.forEach(["a", "b", "c"], (id) => endpoint({ id, url: `${hook.url}/${id}` }))
      const facts = yield* history
      yield* worker()
      yield* publishMany(10, "before")
      yield* facts.count("delivered", 30)
      assert.isAbove(counts.most, 2)

      const changed = yield* setTenant(undefined, { hostCap: 2 }, "ana")
      assert.deepStrictEqual(changed.changed, ["hostCap"])
      yield* facts.count("settings-changed", 1)
      const [fact] = facts.of("settings-changed")
      assert.deepInclude(fact, { tenant: "_", endpoint: "_", by: "ana" })
      assert.deepStrictEqual(fact?.settings, { revision: changed.revision, now: { hostCap: 2 } })

      // The worker sees the change with its watch: one that is added after it comes after it.
      yield* endpoint({ id: "d", url: `${hook.url}/d`, types: ["probe"] })
      yield* eventually(publish("probe"), () => hook.requests.some(({ path }) => path === "/d"))
      yield* quiet
      counts.most = 0
      const before = hook.requests.length
      yield* publishMany(10, "after")
      yield* hook.received(before + 30)
      assert.strictEqual(counts.most, 2)
    })
  )
})
