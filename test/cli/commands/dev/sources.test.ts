import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { postTo, stripeEvent, stripeWebhook } from "../../../kit/gateway.ts"
import { run } from "../../in-process.ts"
import { start } from "../../running.ts"

const temporary = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-dev-sources-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

const Ready = Schema.fromJsonString(
  Schema.Struct({
    event: Schema.Literal("ready"),
    sources: Schema.Array(
      Schema.Struct({ provider: Schema.String, url: Schema.String, secret: Schema.String })
    )
  })
)

describe("petrel dev --source", () => {
  it.live("takes a webhook that Stripe's library signs, and delivers it to the sample", () =>
    Effect.gen(function* () {
      const data = yield* temporary
      const flags = ["--nats-port", "0", "--listen", "127.0.0.1:0", "--data", data]
      const dev = yield* start("dev", ...flags, "--source", "stripe", "--json")
      yield* dev.until((out) => out.some((line) => line.includes('"ready"')))
      const line = dev.out.find((one) => one.includes('"ready"')) ?? ""
      const { sources } = Schema.decodeUnknownSync(Ready)(line)
      const [{ secret, url } = { secret: "", url: "http://x" }] = sources
      const { pathname, port } = new URL(url)
      assert.strictEqual(pathname, "/in/default/stripe")
      const answer = yield* postTo(
        Number(port),
        pathname,
        stripeWebhook(stripeEvent("evt_1"), secret)
      )
      assert.strictEqual(answer.status, 200)
      yield* dev.until((out) =>
        out.some(
          (one) => one.includes('"delivered"') && one.includes("default.stripe.evt_1.sample")
        )
      )
      yield* dev.signal("SIGTERM")
      assert.strictEqual(yield* dev.ended, 0)
    }).pipe(Effect.scoped)
  )

  it.live("refuses providers that need more than a secret, and those that there are not", () =>
    Effect.gen(function* () {
      for (const [provider, text] of [
        ["paypal", /needs settings of its own/],
        ["stirpe", /there is no provider "stirpe"/]
      ] as const) {
        const { code, err } = yield* run("dev", "--source", provider)
        assert.match(err.join("\n"), text)
        assert.strictEqual(code, 2)
      }
    })
  )
})
