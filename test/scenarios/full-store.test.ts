import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/connection.ts"
import { closedBooks, isClean } from "../books.ts"
import { installations, parse } from "../cli/command-line.ts"
import { run } from "../cli/running.ts"
import { endpoint, history, nth, publish, worker } from "../engine.ts"
import type { TestServerOptions } from "../nats-server.ts"
import { receiver } from "../receiver.ts"
import { byAttempt, quiet } from "../scenario.ts"

vi.setConfig({ testTimeout: 60_000 })

const store = 96 * 1024 ** 2

const inAccount = `accounts { P { jetstream { max_file: ${store} }, users: [{ user: p, password: p }] } }
no_auth_user: p`

/** Publishes until the broker takes no more: how many it took, and what it said then. */
const flood = Effect.gen(function* () {
  const body = "x".repeat(100_000)
  for (let count = 0; ; count++) {
    const refusal = yield* Effect.match(publish("a", body), {
      onFailure: ({ message }) => message,
      onSuccess: () => undefined
    })
    if (refusal !== undefined) return { count, refusal }
  }
})

describe.each<readonly [string, TestServerOptions, number | null]>([
  ["an account with a limit", { config: inAccount }, store],
  ["a store whose size no client sees", { maxStore: store }, null]
])("%s, filled by publishers", (_, options, limit) => {
  const place = installations(options)

  it.live("refuses them before the engine: what was accepted is delivered, facts are stored", () =>
    Effect.gen(function* () {
      const { flags, within } = place()
      const made = yield* run("init", "--partitions", "2", ...flags)
      assert.strictEqual(made.code, 0, made.err.join("\n"))
      const story = Effect.gen(function* () {
        const { names } = yield* Broker
        const hook = yield* receiver({ answer: byAttempt(200) })
        yield* endpoint({ url: hook.url })
        const { count, refusal } = yield* flood
        assert.match(refusal, /maximum bytes exceeded/)

        const facts = yield* history
        yield* worker()
        yield* facts.count("delivered", count)
        assert.strictEqual((yield* flood).count, 0)
        assert.lengthOf(yield* closedBooks, count)
        yield* isClean

        const checked = yield* run("status", "--check", "--json", ...flags)
        assert.strictEqual(checked.code, 1)
        assert.match(nth(checked.err, 0), new RegExp(`^petrel: ${names.events} is 9\\d.* full`))
        const { room } = parse(nth(checked.out, 0))
        assert.deepNestedInclude(room, { "account.limitBytes": limit, "queues.bytes": 0 })
      })
      yield* within(story)
    }).pipe(Effect.provide(quiet))
  )
})
