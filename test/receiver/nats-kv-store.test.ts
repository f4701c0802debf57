import { Kvm } from "@nats-io/kv"
import { connect } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { NewEntry } from "../../src/receiver/entry.ts"
import { StoreUnavailable } from "../../src/receiver/store.ts"
import { natsKvStore } from "../../src/receiver/stores/nats-kv.ts"
import { startServer, type TestServer } from "../kit/nats-server.ts"
import { conformance } from "./conformance.ts"

let server: TestServer | undefined
const urlOf = (): string => {
  if (server === undefined) throw new Error("NATS was not started")
  return server.url
}
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server?.stop())

conformance(
  "The keys in a bucket of NATS",
  undefined,
  async () => {
    const connection = await connect({ servers: urlOf() })
    const counters = new Map<string, number>()
    return {
      isBusyInTime: true,
      store: natsKvStore(await new Kvm(connection).create("inbox")),
      add: async (_: undefined, name: string) => {
        counters.set(name, (counters.get(name) ?? 0) + 1)
      },
      countOf: async (name: string) => counters.get(name) ?? 0,
      close: () => connection.close()
    }
  },
  false
)

const entry = (key: string, keepMs = 60_000): NewEntry => ({
  ...{ source: "shop.eu", key, type: "invoice.paid", subject: undefined, version: undefined },
  ...{ at: undefined, headers: {}, contentType: "text/plain", body: Buffer.from("x"), keepMs }
})
const limits = { signal: new AbortController().signal, withinMs: 1_000 }
const nothing = async () => undefined

describe("The keys in a bucket of NATS", () => {
  it("lets another process do the work whose process has died, once its claim is over", async () => {
    const connection = await connect({ servers: urlOf() })
    try {
      const kv = await new Kvm(connection).create("dying")
      const store = natsKvStore(kv)
      // As the process left it that died in its work: it claimed for a time that is over.
      await kv.put("inbox.shop=eu.evt_1", `claimed:${Date.now() - 1}:token`)
      await kv.put("inbox.shop=eu.evt_2", `claimed:${Date.now() + 60_000}:token`)
      assert.deepStrictEqual(await store.once(entry("evt_1"), nothing, limits), {
        outcome: "done"
      })
      const { outcome } = await store.once(entry("evt_2"), nothing, limits)
      assert.strictEqual(outcome, "busy")
      assert.deepStrictEqual(await store.known("shop.eu", ["evt_1", "evt_2"]), new Set(["evt_1"]))
    } finally {
      await connection.close()
    }
  })

  it("takes any key, and one that was deleted by hand again", async () => {
    const connection = await connect({ servers: urlOf() })
    try {
      const kv = await new Kvm(connection).create("odd")
      const store = natsKvStore(kv, { prefix: "shop" })
      const odd = ["a b", "*", ">", "a.b", "schlüssel", "x".repeat(200)]
      for (const key of odd) {
        assert.strictEqual((await store.once(entry(key), nothing, limits)).outcome, "done")
        assert.strictEqual((await store.once(entry(key), nothing, limits)).outcome, "duplicate")
      }
      assert.strictEqual((await store.known("shop.eu", odd)).size, odd.length)
      await store.once(entry("evt_1"), nothing, limits)
      await kv.delete("shop.shop=eu.evt_1")
      assert.strictEqual((await store.once(entry("evt_1"), nothing, limits)).outcome, "done")
      assert.throws(() => natsKvStore(kv, { prefix: "a.b" }), /must be letters, digits/)
    } finally {
      await connection.close()
    }
  })

  it("refuses a bucket that forgets too early", async () => {
    const connection = await connect({ servers: urlOf() })
    try {
      const store = natsKvStore(await new Kvm(connection).create("short", { ttl: 3_600_000 }))
      assert.strictEqual((await store.once(entry("evt_1"), nothing, limits)).outcome, "done")
      let works = 0
      const work = async () => {
        works += 1
      }
      const refused = await store
        .once(entry("evt_2", 7_200_000), work, limits)
        .catch((error: Error) => error)
      assert.instanceOf(refused, StoreUnavailable)
      assert.match(`${refused}`, /bucket short forgets .* at least 1 days, or none/)
      assert.strictEqual(works, 0)
    } finally {
      await connection.close()
    }
  })

  it("is unavailable, and not done, while the broker is away", async () => {
    const broker = await startServer()
    const connection = await connect({ servers: broker.url, reconnect: true, timeout: 500 })
    try {
      const kv = await new Kvm(connection).create("away", { timeout: 500 })
      const store = natsKvStore(kv)
      await store.once(entry("evt_1"), nothing, limits)
      let works = 0
      broker.pause()
      const away = await store
        .once(
          entry("evt_2"),
          async () => {
            works += 1
          },
          limits
        )
        .catch((error: Error) => error)
      broker.resume()
      assert.instanceOf(away, StoreUnavailable)
      assert.strictEqual(works, 0)
    } finally {
      await connection.close()
      await broker.stop()
    }
  })
})
