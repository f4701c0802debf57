import { setTimeout } from "node:timers/promises"
import { assert, describe, it, vi } from "vitest"
import type { LogLine } from "../../src/receiver/log.ts"
import { receiver } from "../../src/receiver/receiver.ts"
import type { ReceiverSettings } from "../../src/receiver/settings.ts"
import { type Queue, StoreUnavailable } from "../../src/receiver/store.ts"
import { memoryStore } from "../../src/receiver/stores/memory.ts"
import { event, sender, signed } from "./sender.ts"

const make = (settings: Partial<ReceiverSettings<undefined>> = {}) => {
  const lines: Array<LogLine> = []
  const store = settings.store ?? memoryStore()
  const hooks = receiver<undefined>({
    ...{ store, sources: { shop: sender() }, log: (line) => lines.push(line) },
    ...settings
  })
  const post = async (request: RequestInit) => {
    const response = await hooks.fetch("shop")(new Request("http://shop.test/in", request))
    return { status: response.status, text: (await response.text()).trim() }
  }
  return { hooks, lines, post, queue: store.queue as Queue<undefined> }
}

/** Waits until there is something, and returns it. */
const until = <A>(ask: () => A | Promise<A>) => vi.waitUntil(ask, { timeout: 20_000, interval: 5 })

describe("A receiver to which bad things happen", () => {
  it("gives up work that kills its process, when that has happened as often as it may", async () => {
    const dead: Array<string> = []
    const { hooks, post, queue } = make({ onDead: ({ error }) => dead.push(`${error}`) })
    let works = 0
    hooks.process(
      "*",
      () => {
        works += 1
      },
      { attempts: 3 }
    )
    await post(event("evt_1"))
    // Three processes have claimed it, begun, and were never heard of again.
    for (let at = 0; at < 3; at++) await until(async () => (await queue.claim(["shop"], 1, 1))[0])
    hooks.start({ pollMs: 5 })
    await until(() => dead[0])
    await hooks.stop()
    assert.match(dead[0] ?? "", /none of 3 attempts came to an end/)
    assert.strictEqual(works, 0)
    assert.lengthOf(await hooks.dead.list(), 1)
  })

  it("counts no attempt whose work could not begin, or that ended because the receiver stops", async () => {
    const store = memoryStore()
    const { queue } = store
    if (queue === undefined) throw new Error("the store has a queue")
    let isAway = true
    const work: Queue<undefined>["work"] = (...given) =>
      isAway ? Promise.reject(new StoreUnavailable("no connection is free")) : queue.work(...given)
    const { hooks, post } = make({ store: { ...store, queue: { ...queue, work } } })
    const attempts: Array<number> = []
    hooks.process(
      "*",
      async (_, { attempt, signal }) => {
        attempts.push(attempt)
        await new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason))
        })
      },
      { attempts: 1 }
    )
    await post(event("evt_1"))
    hooks.start({ pollMs: 5 })
    const entry = async () => (await queue.list({}))[0]
    const failed = await until(async () => {
      const found = await entry()
      return found?.error !== undefined && found
    })
    assert.deepInclude(failed, { state: "received", attempts: 0 })
    isAway = false
    await until(() => attempts[0])
    await hooks.stop()
    assert.deepInclude(await entry(), { state: "received", attempts: 0 })
    assert.deepStrictEqual(attempts, [1])
  })

  it("tells nobody of a dead event that another process has done meanwhile", async () => {
    const dead: Array<string> = []
    const { hooks, lines, post, queue } = make({ onDead: ({ key }) => dead.push(key) })
    hooks.process(
      "*",
      async () => {
        // Its lease is over, and another process takes it.
        const again = await until(async () => (await queue.claim(["shop"], 1, 60_000))[0])
        await queue.work(again, async () => undefined, new AbortController().signal)
        throw new Error("too late")
      },
      { attempts: 1 }
    )
    await post(event("evt_1"))
    hooks.start({ concurrency: 1, pollMs: 5, leaseMs: 50 })
    await until(() => lines.find(({ outcome }) => outcome === "lost"))
    await hooks.stop()
    assert.deepStrictEqual(dead, [])
    assert.lengthOf(await queue.list({ state: "done" }), 1)
  })

  it("goes on when the store does not answer a claim", async () => {
    const store = memoryStore()
    const { queue } = store
    if (queue === undefined) throw new Error("the store has a queue")
    let claims = 0
    const claim: Queue<undefined>["claim"] = (...given) => {
      claims += 1
      return claims === 1 ? new Promise(() => undefined) : queue.claim(...given)
    }
    const { hooks, lines, post } = make({ store: { ...store, queue: { ...queue, claim } } })
    const done: Array<string> = []
    hooks.process("*", (_, { key }) => {
      done.push(key)
    })
    hooks.start({ leaseMs: 50, pollMs: 5 })
    await post(event("evt_1"))
    await until(() => done[0])
    await hooks.stop()
    assert.isTrue(lines.some(({ error }) => /has not answered for 50 ms/.test(error ?? "")))
  })

  it("lets no source take all places for work, however much of it is stored", async () => {
    const { hooks, queue } = make({ sources: { shop: sender(), bank: sender() } })
    const post = (source: string, id: string) =>
      hooks.fetch(source)(new Request("http://shop.test/in", event(id)))
    let underWay = 0
    let most = 0
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const done: Array<string> = []
    hooks.process("*", async (_, { source }) => {
      if (source === "shop") {
        underWay += 1
        most = Math.max(most, underWay)
        await ended
        underWay -= 1
      }
      done.push(source)
    })
    for (let at = 0; at < 20; at++) await post("shop", `evt_${at}`)
    hooks.start({ concurrency: 4, pollMs: 5 })
    await until(() => underWay === 2)
    // It is stored last, and 18 events are before it.
    await post("bank", "evt_1")
    await until(() => done[0])
    assert.deepStrictEqual(done, ["bank"])
    end()
    await until(() => done.length === 21)
    await hooks.stop()
    assert.strictEqual(most, 2)
    assert.lengthOf(await queue.list({ state: "done" }), 21)
  })

  it("does not call an event missing whose id is too long to be stored as it is", async () => {
    const { hooks, post } = make({ key: ({ id }) => `${id}`.repeat(50) })
    hooks.once("*", () => undefined)
    await post(event("evt_1"))
    const [came, never] = ["evt_1".repeat(50), "evt_2".repeat(50)]
    assert.deepStrictEqual(await hooks.missing("shop", [came, never]), [never])
  })

  it("ends `once` that takes too long, and gives its place to others", async () => {
    const { hooks, post } = make({ maxInFlight: 1 })
    let isHung = true
    hooks.once("*", () => (isHung ? new Promise(() => undefined) : undefined), { withinMs: 20 })
    assert.deepStrictEqual(await post(event("evt_1")), { status: 500, text: "failed" })
    isHung = false
    assert.deepStrictEqual(await post(event("evt_1")), { status: 200, text: "done" })
  })

  it("gives the place of a request to others, though the store has fallen silent in `once`", async () => {
    const store = memoryStore()
    let isSilent = true
    const once: typeof store.once = (...given) =>
      isSilent ? new Promise(() => undefined) : store.once(...given)
    const { hooks, post } = make({
      ...{ store: { ...store, once } },
      maxInFlight: 1,
      storeWithinMs: 10
    })
    hooks.once("*", () => undefined, { withinMs: 10 })
    assert.deepStrictEqual(await post(event("evt_1")), { status: 503, text: "store-unavailable" })
    isSilent = false
    assert.deepStrictEqual(await post(event("evt_1")), { status: 200, text: "done" })
  })

  it("does not begin work when the store answers after its time: the sender repeats", async () => {
    const store = memoryStore()
    let [works, isSilent] = [0, true]
    const settled: Array<Promise<unknown>> = []
    const once: typeof store.once = (...given) => {
      if (!isSilent) return store.once(...given)
      const late = setTimeout(100).then(() => store.once(...given))
      settled.push(late.catch(() => undefined))
      return late
    }
    const { hooks, post } = make({ store: { ...store, once }, storeWithinMs: 10 })
    const count = () => {
      works += 1
    }
    hooks.once("*", count, { withinMs: 10 })
    assert.deepStrictEqual(await post(event("evt_1")), { status: 503, text: "store-unavailable" })
    await Promise.all(settled)
    assert.strictEqual(works, 0)
    isSilent = false
    assert.deepStrictEqual(await post(event("evt_1")), { status: 200, text: "done" })
    assert.strictEqual(works, 1)
  })

  it("does not begin stored work when the store answers after its time, and counts no attempt", async () => {
    const store = memoryStore()
    const { queue } = store
    if (queue === undefined) throw new Error("the store has a queue")
    let [works, isSilent] = [0, true]
    const settled: Array<Promise<unknown>> = []
    const work: Queue<undefined>["work"] = (...given) => {
      if (!isSilent) return queue.work(...given)
      const late = setTimeout(100).then(() => queue.work(...given))
      settled.push(late.catch(() => undefined))
      return late
    }
    const { hooks, lines, post } = make({ store: { ...store, queue: { ...queue, work } } })
    const count = () => {
      works += 1
    }
    hooks.process("*", count, { attempts: 1, withinMs: 10 })
    await post(event("evt_1"))
    hooks.start({ pollMs: 5, leaseMs: 1_000 })
    await until(() => lines.find(({ outcome }) => outcome === "failed"))
    await Promise.all(settled)
    assert.strictEqual(works, 0)
    assert.deepInclude((await queue.list({}))[0], { state: "received", attempts: 0 })
    isSilent = false
    await until(async () => (await queue.list({ state: "done" }))[0])
    await hooks.stop()
    assert.strictEqual(works, 1)
  })

  it("waits as usual where the application's backoff is no number, and takes no impossible settings", async () => {
    const { hooks, lines, post, queue } = make()
    hooks.process(
      "*",
      () => {
        throw new Error("no")
      },
      { backoffMs: () => Number.NaN }
    )
    await post(event("evt_1"))
    hooks.start({ pollMs: 5 })
    await until(() => lines.find(({ outcome }) => outcome === "failed"))
    await hooks.stop()
    const [entry] = await queue.list({})
    const wait = (entry?.nextAt ?? 0) - Date.now()
    assert.isTrue(wait > 0 && wait <= 1_200, `${wait}`)
    for (const options of [{ concurrency: 0 }, { leaseMs: Number.NaN }, { pollMs: -1 }])
      assert.throws(() => hooks.start(options), /must be a number above 0/)
    assert.throws(() => hooks.once("a", () => undefined, { withinMs: 0 }), /withinMs of a must be/)
  })

  it("stores an event whose sender names an impossible time", async () => {
    const provider = sender()
    const { hooks, post, queue } = make({
      sources: {
        shop: {
          ...provider,
          read: (request) => {
            const reading = provider.read(request)
            if (!reading.ok) return reading
            return { ok: true, events: reading.events.map((one) => ({ ...one, at: 1e300 })) }
          }
        }
      }
    })
    hooks.process("*", () => undefined)
    assert.deepStrictEqual(await post(event("evt_1")), { status: 200, text: "stored" })
    assert.strictEqual((await queue.list({}))[0]?.at, undefined)
  })

  it("asks a silent store no more than it may have under way", async () => {
    const store = memoryStore()
    const { queue } = store
    if (queue === undefined) throw new Error("the store has a queue")
    let asked = 0
    const put: Queue<undefined>["put"] = () => {
      asked += 1
      return new Promise(() => undefined)
    }
    const { hooks, post } = make({
      ...{ store: { ...store, queue: { ...queue, put } }, maxInFlight: 3, storeWithinMs: 5 }
    })
    hooks.process("*", () => undefined)
    for (let at = 0; at < 6; at++)
      assert.deepStrictEqual(await post(event(`evt_${at}`)), {
        ...{ status: 503, text: "store-unavailable" }
      })
    assert.strictEqual(asked, 3)
  })

  it("keeps each of two unreadable requests, though their bodies are the same", async () => {
    const { hooks, post } = make({
      key: () => {
        throw new Error("no order id")
      }
    })
    hooks.process("*", () => undefined)
    const body = { type: "invoice.paid", timestamp: "2026-01-01T00:00:00Z", data: {} }
    for (const id of ["evt_1", "evt_2", "evt_2"])
      assert.deepStrictEqual(await post(signed(id, body)), { status: 200, text: "kept" })
    const kept = await hooks.quarantined.list()
    assert.deepStrictEqual(
      kept.map(({ headers, receipts }) => [headers["webhook-id"], receipts]),
      [
        ["evt_2", 2],
        ["evt_1", 1]
      ]
    )
  })

  it("answers 503 when a signature cannot be checked, since that says nothing of the sender", async () => {
    let verify: () => Promise<never> = () => Promise.reject(new Error("no certificate"))
    const provider = { ...sender(), verify: () => verify() }
    const { lines, post } = make({ sources: { shop: provider }, storeWithinMs: 20 })
    assert.deepStrictEqual(await post(event("evt_1")), { status: 503, text: "unverifiable" })
    assert.include(lines[0]?.error, "no certificate")
    verify = () => new Promise(() => undefined)
    assert.deepStrictEqual(await post(event("evt_1")), { status: 503, text: "unverifiable" })
  })

  it("writes a few lines of forged requests, however many there are, and counts all", async () => {
    const { hooks, lines, post } = make()
    hooks.once("*", () => undefined)
    for (let at = 0; at < 100; at++) {
      const request = event(`evt_${at}`)
      const headers = { ...request.headers, "webhook-signature": "v1,Zm9yZ2Vk" }
      assert.strictEqual((await post({ ...request, headers })).status, 401)
    }
    // The minute may have changed meanwhile.
    assert.isAtMost(lines.length, 20)
    assert.match(lines[9]?.text ?? "", /what more is refused within this minute gets no line/)
    await post(event("evt_1"))
    assert.strictEqual(lines.at(-1)?.outcome, "done")
    const metrics = await hooks.metrics()
    assert.include(metrics, 'problem="signature-mismatch"} 100')
  })
})
