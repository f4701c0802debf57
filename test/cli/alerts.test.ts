import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { Fact } from "../../src/domain/fact.ts"
import { Facts } from "../../src/history/facts.ts"
import { eventually, installation } from "../engine.ts"
import type { TestServer } from "../nats-server.ts"
import { startServer } from "../nats-server.ts"
import { run, start } from "./running.ts"

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

const append = (kind: Fact["kind"], tenant: string, event: string) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const at = yield* Clock.currentTimeMillis
    const fact: Fact = { v: 1, kind, at, tenant, endpoint: "billing", event, status: 500 }
    yield* facts.append(fact, crypto.randomUUID())
    return fact
  })

describe("petrel alerts", () => {
  it.live("does not wait where there is no installation", () =>
    Effect.gen(function* () {
      const { prefix, url } = installation(server)
      const { code, err } = yield* run("alerts", "--nats", url, "--prefix", prefix)
      assert.strictEqual(code, 1)
      assert.match(err.join("\n"), /stream not found: run `petrel init` first/)
    })
  )

  it.live("prints failures as they happen, and of one tenant only where one is named", () => {
    const installed = installation(server)
    const alerts = (...args: ReadonlyArray<string>) =>
      start("alerts", "--nats", installed.url, "--prefix", installed.prefix, ...args)
    return installed.run(
      Effect.gen(function* () {
        yield* append("attempt-failed", "acme", "too-early")
        const all = yield* alerts()
        const one = yield* alerts("--tenant", "acme")
        for (const command of [all, one])
          yield* command.until((_, err) => err.some((line) => line.startsWith("Listening")))
        const json = yield* alerts("--json")
        // With --json nothing is said on stderr: the first failure that arrives says it listens.
        yield* eventually(append("attempt-failed", "globex", "probe"), () => json.out.length > 0)
        yield* append("delivered", "acme", "fine")
        const failed = yield* append("attempt-failed", "acme", "bad")
        const others = (lines: ReadonlyArray<string>) =>
          lines.filter((line) => !line.includes("probe"))
        for (const command of [all, one, json])
          yield* command.until((out) => others(out).length > 0)

        assert.match(
          others(all.out).join("\n"),
          /^\S+ {2}bad → acme\/billing .* {2}no further attempt$/
        )
        assert.deepStrictEqual(one.out, others(all.out))
        const { seq, ...record } = JSON.parse(others(json.out).join("\n"))
        assert.deepStrictEqual(record, failed)
        assert.isAbove(seq, 2)
        for (const command of [all, one, json]) yield* command.signal("SIGTERM")
        for (const command of [all, one, json]) assert.strictEqual(yield* command.ended, 0)
      })
    )
  })
})
