import { assert, describe, it, vi } from "vitest"
import { PermanentError } from "../../src/receiver/entry.ts"
import type { InboxEvent } from "../../src/receiver/inbox-event.ts"
import type { LogLine } from "../../src/receiver/log.ts"
import { receiver } from "../../src/receiver/receiver.ts"
import type { ReceiverSettings } from "../../src/receiver/settings.ts"
import { StoreUnavailable } from "../../src/receiver/store.ts"
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
    return {
      status: response.status,
      text: (await response.text()).trim(),
      retryAfter: response.headers.get("retry-after")
    }
  }
  return { hooks, post, lines, store }
}

/** Resolves once called so often. */
const signalAfter = (times: number) => {
  let left = times
  let resolve = () => undefined as undefined
  const reached = new Promise<void>((done) => {
    resolve = () => {
      done()
      return undefined
    }
  })
  return {
    reached,
    hit: () => {
      left -= 1
      if (left === 0) resolve()
    }
  }
}

describe("A receiver", () => {
  it("does the work of `once` before it answers, and answers a repeat without it", async () => {
    const { hooks, lines, post } = make()
    const seen: Array<InboxEvent> = []
    hooks.once("invoice.paid", (_, event) => {
      seen.push(event)
    })
    const request = event("evt_1", "invoice.paid", { total: 12 })
    assert.deepInclude(await post(request), { status: 200, text: "done" })
    assert.deepInclude(await post(request), { status: 200, text: "duplicate" })
    assert.lengthOf(seen, 1)
    assert.deepInclude(seen[0], { id: "evt_1", key: "evt_1", type: "invoice.paid", attempt: 1 })
    assert.strictEqual(seen[0]?.data.data.total, 12)
    assert.deepStrictEqual(seen[0]?.text, request.body)
    assert.notProperty(seen[0]?.headers, "webhook-signature")
    assert.deepStrictEqual(
      lines.map(({ attempt, correlationId, outcome }) => ({ attempt, correlationId, outcome })),
      [
        { attempt: 1, correlationId: "evt_1", outcome: "done" },
        { attempt: 2, correlationId: "evt_1", outcome: "duplicate" }
      ]
    )
    assert.notInclude(JSON.stringify(lines), request.headers["webhook-signature"])
  })

  it("refuses what is not from the sender, and stores nothing of it", async () => {
    const { hooks, post, store } = make()
    hooks.process("*", () => undefined)
    const request = event("evt_1")
    const forged = { ...request, body: request.body.replace("invoice", "refund!") }
    assert.deepInclude(await post(forged), { status: 401, text: "signature-mismatch" })
    assert.deepInclude(await post({ method: "GET" }), { status: 405 })
    assert.deepStrictEqual(await store.queue?.list({}), [])
    assert.include(
      await hooks.metrics(),
      'petrel_receiver_verification_failures_total{source="shop",problem="signature-mismatch"} 1'
    )
  })

  it("answers 500 when the work of `once` fails, and does it when the event comes again", async () => {
    const { hooks, post } = make()
    let fails = true
    hooks.once("invoice.*", () => {
      if (fails) throw new Error("the warehouse is closed")
    })
    assert.deepInclude(await post(event("evt_1")), { status: 500, text: "failed" })
    fails = false
    assert.deepInclude(await post(event("evt_1")), { status: 200, text: "done" })
  })

  it("keeps what can never succeed, tells of it, and does it after a retry by hand", async () => {
    const dead: Array<unknown> = []
    const { hooks, post } = make({ onDead: ({ key, error }) => dead.push([key, error]) })
    let fails = true
    const done = signalAfter(1)
    hooks.once("invoice.paid", () => {
      if (fails) throw new PermanentError("no such account")
      done.hit()
    })
    assert.deepInclude(await post(event("evt_1")), { status: 200, text: "kept" })
    assert.deepInclude(await post(event("evt_1")), { status: 200, text: "duplicate" })
    assert.deepStrictEqual(dead, [["evt_1", "PermanentError: no such account"]])
    const [kept] = await hooks.dead.list()
    assert.deepInclude(kept, { key: "evt_1", state: "dead" })
    fails = false
    hooks.start()
    assert.isTrue(await hooks.dead.retry(kept?.id ?? ""))
    await done.reached
    await hooks.stop()
    assert.deepInclude(await hooks.show(kept?.id ?? ""), { state: "done" })
  })

  it("stores what `process` works on later, tries again, and gives up at last", async () => {
    const over = signalAfter(1)
    const { hooks, post } = make({ onDead: over.hit })
    const attempts: Array<string> = []
    hooks.process(
      "invoice.paid",
      (_, { attempt, key }) => {
        attempts.push(`${key} ${attempt}`)
        throw new Error("no")
      },
      { attempts: 3, backoffMs: () => 1 }
    )
    assert.deepInclude(await post(event("evt_1")), { status: 200, text: "stored" })
    assert.deepStrictEqual(attempts, [])
    hooks.start({ pollMs: 5 })
    await over.reached
    await hooks.stop()
    assert.deepStrictEqual(attempts, ["evt_1 1", "evt_1 2", "evt_1 3"])
    assert.lengthOf(await hooks.dead.list({ source: "shop" }), 1)
    const { attempts: counted, permanentRate, retryRate } = await hooks.stats()
    assert.deepStrictEqual(
      { counted, permanentRate, retryRate },
      {
        ...{ counted: { 3: 1 }, permanentRate: 1, retryRate: 1 }
      }
    )
  })

  it("ends work that takes longer than it may, and aborts its signal", async () => {
    const over = signalAfter(1)
    const { hooks, lines, post } = make({ onDead: over.hit })
    let reason: unknown
    hooks.process(
      "invoice.paid",
      (_, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            reason = signal.reason
            reject(signal.reason)
          })
        }),
      { attempts: 1, withinMs: 20 }
    )
    await post(event("evt_1"))
    hooks.start()
    await over.reached
    await hooks.stop()
    assert.include(`${reason}`, "longer than 20 ms")
    assert.isTrue(lines.some(({ outcome }) => outcome === "dead"))
  })

  it("quarantines what is verified and not readable, and reads it again after a fix", async () => {
    const quarantined: Array<string> = []
    let isFixed = false
    const done = signalAfter(1)
    const { hooks, post } = make({
      key: ({ data }) => {
        if (!isFixed) throw new Error("no order id")
        return data.data.order
      },
      onQuarantined: (source, reason) => quarantined.push(`${source}: ${reason}`)
    })
    hooks.process("invoice.paid", done.hit)
    assert.deepInclude(await post(event("evt_1", "invoice.paid", { order: "o-1" })), {
      ...{ status: 200, text: "kept" }
    })
    assert.deepInclude(await post(signed("evt_2", "{ no JSON")), { status: 200, text: "kept" })
    assert.lengthOf(quarantined, 2)
    assert.include(quarantined[0], "shop: Error: no order id")
    const [second, first] = await hooks.quarantined.list()
    isFixed = true
    hooks.start()
    assert.isTrue(await hooks.quarantined.retry(first?.id ?? ""))
    await done.reached
    assert.isTrue(await hooks.quarantined.resolve(second?.id ?? "", "ada"))
    await hooks.stop()
    assert.deepStrictEqual(await hooks.missing("shop", ["o-1", "o-2"]), ["o-2"])
    assert.deepStrictEqual(await hooks.quarantined.list(), [])
  })

  it("says that an event without a work is ignored, and names the work of a type twice", async () => {
    const { hooks, lines, post } = make()
    hooks.once("refund.*", () => undefined)
    assert.deepInclude(await post(event("evt_1")), { status: 200, text: "ignored" })
    assert.deepInclude(lines[0], { outcome: "ignored", type: "invoice.paid" })
    assert.throws(() => hooks.process("refund.*", () => undefined), /has a work already/)
    assert.throws(() => hooks.fetch("shpo"), /no source "shpo": there are shop/)
  })

  it("chooses the work of the type itself, else of the longest pattern", async () => {
    const { hooks, post } = make()
    const called: Array<string> = []
    for (const pattern of ["*", "invoice.*", "invoice.paid"])
      hooks.once(pattern, () => {
        called.push(pattern)
      })
    await post(event("1", "invoice.paid"))
    await post(event("2", "invoice.voided.twice"))
    await post(event("3", "refund"))
    assert.deepStrictEqual(called, ["invoice.paid", "invoice.*", "*"])
  })

  it("takes a replay of Petrel again only where that is asked for", async () => {
    const again = (id: string) => {
      const request = event(id)
      return { ...request, headers: { ...request.headers, "petrel-round": "replay-7" } }
    }
    const [usual, retaking] = [make(), make({ takeReplays: true })]
    for (const { hooks, post } of [usual, retaking]) {
      hooks.once("*", () => undefined)
      await post(event("evt_1"))
    }
    assert.strictEqual((await usual.post(again("evt_1"))).text, "duplicate")
    assert.strictEqual((await retaking.post(again("evt_1"))).text, "done")
    assert.strictEqual((await retaking.post(again("evt_1"))).text, "duplicate")
  })

  it("warns of `once` that takes longer than the sender waits", async () => {
    const set = make({ answerWithinMs: 1 })
    // As most senders say how long they wait, nobody has to set it.
    const known = make({ sources: { shop: { ...sender(), waitsForMs: 1 } } })
    const workMs = 20
    for (const { hooks, lines, post } of [set, known]) {
      hooks.once("*", () => new Promise((resolve) => setTimeout(resolve, workMs)))
      await post(event("evt_1"))
      const told = lines.filter(({ level, text }) => level === "warn" && /instead/.test(text))
      assert.lengthOf(told, 1)
      assert.match(
        told[0]?.text ?? "",
        /and shop waits 1: register it with process instead of once/
      )
      assert.include(await hooks.metrics(), 'petrel_receiver_slow_total{source="shop"} 1')
    }
  })

  it("answers 503 with Retry-After while the store is away, or silent", async () => {
    const store = memoryStore()
    const { queue } = store
    if (queue === undefined) throw new Error("the store has a queue")
    let put: () => Promise<never> = () => Promise.reject(new StoreUnavailable("it is away"))
    const { hooks, post } = make({
      store: { ...store, queue: { ...queue, put: () => put() } },
      storeWithinMs: 20
    })
    hooks.process("*", () => undefined)
    const away = { status: 503, text: "store-unavailable", retryAfter: "5" }
    assert.deepStrictEqual(await post(event("evt_1")), away)
    put = () => new Promise(() => undefined)
    assert.deepStrictEqual(await post(event("evt_1")), away)
  })

  it("answers what is more than it may have under way with 503, a source at a time", async () => {
    let release = () => undefined as undefined
    const held = new Promise<void>((resolve) => {
      release = () => {
        resolve()
        return undefined
      }
    })
    const { hooks } = make({
      maxInFlight: 4,
      sources: { shop: sender(), bank: sender() }
    })
    hooks.once("*", () => held)
    const post = (source: string, id: string) =>
      hooks.fetch(source)(new Request("http://shop.test/in", event(id)))
    const [first, second] = [post("shop", "1"), post("shop", "2")]
    const third = await post("shop", "3")
    assert.deepStrictEqual([third.status, third.headers.get("retry-after")], [503, "2"])
    const other = post("bank", "4")
    release()
    const answers = await Promise.all([first, second, other])
    assert.deepStrictEqual(
      answers.map(({ status }) => status),
      [200, 200, 200]
    )
    assert.strictEqual((await post("shop", "3")).status, 200)
  })

  it("answers a storm beyond a source's rate with 429 or 503", async () => {
    const { hooks, post } = make({ ratePerSecond: 2 })
    const old = make({
      sources: { shop: { provider: { ...sender(), retries429: false }, ratePerSecond: 1 } }
    })
    hooks.once("*", () => undefined)
    await post(event("1"))
    await post(event("2"))
    assert.deepStrictEqual(await post(event("3")), {
      ...{ status: 429, text: "rate-exceeded", retryAfter: "1" }
    })
    await old.post(event("1"))
    assert.deepInclude(await old.post(event("2")), { status: 503, retryAfter: "1" })
    // What cannot be read is stored, too, and so has a rate.
    const odd = make({ ratePerSecond: 1 })
    assert.deepInclude(await odd.post(signed("1", "{ no JSON")), { status: 200, text: "kept" })
    assert.deepInclude(await odd.post(signed("2", "{ no JSON")), { text: "rate-exceeded" })
    assert.lengthOf(await odd.hooks.quarantined.list(), 1)
  })

  it("answers 413 to a body beyond the limit, whether its length is said or not", async () => {
    const { hooks, post } = make({ maxBodyBytes: 100 })
    hooks.once("*", () => undefined)
    const large = event("evt_1", "invoice.paid", { text: "x".repeat(100) })
    assert.deepInclude(await post(large), { status: 413 })
    const { body } = new Response(large.body)
    const streamed = { ...large, body, duplex: "half" } as RequestInit
    assert.deepInclude(await post(streamed), { status: 413 })
  })

  it("raises an alert at a threshold, and says when it is over", async () => {
    const patience = { timeout: 20_000, interval: 5 }
    const alerts: Array<string> = []
    const { hooks, post } = make({
      onAlert: ({ isRaised, name }) => alerts.push(`${name} ${isRaised}`)
    })
    let fails = true
    hooks.once("*", () => {
      if (fails) throw new Error("no")
    })
    hooks.start({ pollMs: 5 })
    for (let at = 0; at < 20; at++) await post(event(`bad-${at}`))
    await vi.waitUntil(() => alerts.includes("success-low true"), patience)
    fails = false
    for (let at = 0; at < 400; at++) await post(event(`good-${at}`))
    await vi.waitUntil(() => alerts.includes("success-low false"), patience)
    await hooks.stop()
  })

  it("lets the sender keep what a store of keys alone cannot", async () => {
    const { hooks, post } = make({ store: { ...memoryStore(), queue: undefined } })
    hooks.once("*", () => {
      throw new PermanentError("no such account")
    })
    assert.deepInclude(await post(event("evt_1")), { status: 500, text: "failed" })
    assert.deepInclude(await post(signed("evt_2", "{ no JSON")), { status: 500, text: "failed" })
    assert.throws(() => hooks.start(), /remembers keys alone/)
  })

  it("raises no alert where senders repeat what was taken", async () => {
    const alerts: Array<string> = []
    const { hooks, post } = make({
      onAlert: ({ isRaised, name }) => alerts.push(`${name} ${isRaised}`)
    })
    hooks.once("invoice.paid", () => undefined)
    hooks.start({ pollMs: 5 })
    for (let at = 0; at < 60; at++) await post(event("evt_1"))
    // Alerts follow each other: what comes last has been looked at.
    hooks.once("refund.made", () => {
      throw new Error("no")
    })
    const patience = { timeout: 20_000, interval: 5 }
    for (let at = 0; at < 40; at++) await post(event(`bad-${at}`, "refund.made"))
    await vi.waitUntil(() => alerts.length > 0, patience)
    assert.deepStrictEqual(alerts, ["success-low true"])
    await hooks.stop()
  })

  it("refuses options that nothing reads, and what is no function", () => {
    const { hooks } = make()
    const refuse = (options: object, why: RegExp) =>
      assert.throws(() => hooks.process("*", () => undefined, options), why)
    refuse({ backoffMs: 100 }, /backoffMs of process\("\*"\) must be a function, and is 100/)
    refuse({ attemps: 3 }, /attemps is not an option of process\("\*"\): it has attempts,/)
    assert.throws(() => hooks.once("*", () => undefined, { attempts: 3 } as never), /not an option/)
    assert.throws(() => hooks.start({ concurency: 3 } as never), /not an option of start/)
    const wrong = { maxBodybytes: 1 } as never
    assert.throws(
      () => make(wrong),
      /maxBodybytes is not an option of the receiver: .*, onQuarantined$/
    )
    const source = { provider: sender(), subject: "customer" } as never
    assert.throws(() => make({ sources: { shop: source } }), /subject of the source shop must be/)
    assert.throws(() => make({ key: "foo" as never }), /key of the receiver must be "id"/)
    assert.throws(() => receiver({ sources: { shop: sender() } } as never), /store is missing/)
  })

  it("refuses settings that cannot be", () => {
    assert.throws(() => make({ sources: {} }), /sources is empty/)
    assert.throws(() => make({ maxInFlight: 0 }), /maxInFlight must be a number above 0/)
    assert.throws(() => make({ ratePerSecond: -1 }), /ratePerSecond of shop/)
    assert.throws(() => make({ sources: { "a b": sender() } }), /must be 1 to 60 letters/)
    const marks = { ...memoryStore(), name: "Redis", queue: undefined }
    assert.throws(
      () => make({ store: marks }).hooks.process("*", () => undefined),
      /Redis remembers keys alone, and process needs/
    )
  })
})
