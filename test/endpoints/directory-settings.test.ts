import { assert, describe } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { Directory } from "../../src/endpoints/directory.ts"
import { listEndpoints } from "../../src/endpoints/endpoint-store.ts"
import { setTenant } from "../../src/operations/tenants/tenant-settings.ts"
import { endpoint, eventually } from "../kit/engine.ts"
import { writeByHand } from "../kit/live-endpoints.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const openDirectory = Effect.map(Layer.build(Directory.layer), Context.get(Directory))

const removeByHand = (key: string) =>
  Effect.gen(function* () {
    const { ask, bucket, names } = yield* natsClients
    const kv = yield* bucket(names.buckets.endpoints)
    yield* ask("delete", () => kv.delete(key))
  })

describe.concurrent("the directory", () => {
  scenario("applies settings that were made before it, and follows their changes", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "hook", url: "https://h.example:8443/x", forwardHeaders: ["x-own"] })
      yield* endpoint({ id: "plain", tenant: "umbrella", url: "https://h.example/y" })
      yield* setTenant("acme", { hostCap: 5, forwardHeaders: { "x-a": true } }, "ana")
      const directory = yield* openDirectory
      const found = (key = "acme.hook") => directory.find(key)
      assert.deepStrictEqual(found()?.sharedHost, {
        ...{ host: "h.example", tenant: "acme", tenantCap: 5, systemCap: undefined }
      })
      assert.deepStrictEqual([...(found()?.forwards ?? [])], ["x-a", "x-own"])
      assert.deepStrictEqual(directory.forwardable("acme"), ["x-a", "x-own"])
      assert.lengthOf(directory.hosts.of("acme", "h.example").hashes, 1)
      assert.isUndefined(found("umbrella.plain")?.sharedHost)
      assert.isUndefined(found("umbrella.plain")?.forwards)
      assert.isUndefined(directory.forwardable("umbrella"))

      const version = directory.version()
      yield* setTenant(undefined, { hostCap: 7, forwardHeaders: { "x-s": true } }, "ana")
      yield* eventually(Effect.sync(directory.version), (now) => now !== version)
      assert.deepInclude(found("umbrella.plain")?.sharedHost, {
        tenantCap: undefined,
        systemCap: 7
      })
      assert.deepInclude(found()?.sharedHost, { tenantCap: 5, systemCap: 7 })
      assert.deepStrictEqual(directory.forwardable("umbrella"), ["x-s"])
      assert.deepStrictEqual(directory.forwardable("acme"), ["x-a", "x-s", "x-own"])
      assert.lengthOf(directory.hosts.of(undefined, "h.example").hashes, 2)

      yield* removeByHand("_")
      yield* eventually(
        Effect.sync(() => found("umbrella.plain")?.sharedHost),
        (shared) => shared === undefined
      )
      assert.isUndefined(directory.forwardable("umbrella"))
      assert.deepStrictEqual(directory.hosts.of(undefined, "h.example").hashes, [])
      // Settings are no endpoints.
      assert.deepStrictEqual(directory.unreadable("acme"), [])
      assert.lengthOf(yield* listEndpoints(), 2)
      // Removed settings can be set again.
      yield* setTenant(undefined, { hostCap: 8 }, "ana")
      yield* eventually(
        Effect.sync(() => found("umbrella.plain")?.sharedHost?.systemCap),
        (cap) => cap === 8
      )
    })
  )

  scenario("leaves settings in force that are replaced by some that it cannot read", () =>
    Effect.gen(function* () {
      yield* endpoint()
      yield* setTenant("acme", { hostCap: 5 }, "ana")
      const directory = yield* openDirectory
      yield* writeByHand("acme", '{"v":2}')
      const { revision } = yield* endpoint({ id: "after" })
      yield* eventually(
        Effect.sync(() => directory.find("acme.after")?.revision),
        (seen) => seen === revision
      )
      assert.strictEqual(directory.find("acme.hook")?.sharedHost?.tenantCap, 5)
      assert.isTrue(directory.isCurrent())
    })
  )
})
