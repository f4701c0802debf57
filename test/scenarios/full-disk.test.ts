import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import { installation, nth, publish } from "../kit/engine.ts"
import { canMount, startServer } from "../kit/nats-server.ts"
import { quiet } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 90_000 })

/** Publishes until the broker answers no more. */
const flood = Effect.gen(function* () {
  const body = "x".repeat(400_000)
  while (true) {
    const failure = yield* Effect.match(publish("a", body), {
      onFailure: ({ message }) => message,
      onSuccess: () => undefined
    })
    if (failure !== undefined) return failure
  }
})

describe("a disk that is full", () => {
  it.live.skipIf(!canMount())("is a problem, and the broker has to be restarted", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ diskBytes: 32 * 1024 ** 2 })),
        (started) => Effect.promise(() => started.stop())
      )
      const place = installation(server)
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      const check = run("status", "--check", "--json", ...flags)
      const codes = (line: string) =>
        (parse(line).problems as ReadonlyArray<{ readonly code: string }>).map(({ code }) => code)
      yield* place.run(
        Effect.gen(function* () {
          const { deleteMessage, names, publish: store } = yield* Broker
          assert.notInclude(codes(nth((yield* check).out, 0)), "disk-failed")
          assert.match(yield* flood, /timeout/)
          const refused = yield* Effect.flip(store(`${place.eventRoot}.acme.a`, "{}", []))
          assert.match(refused.message, /no acknowledgement .* whether the broker's disk is full/)
          const kept = yield* Effect.flip(deleteMessage("remove", names.events, 1))
          assert.match(kept.message, /no space left on device/)
          const { code, err, out } = yield* check
          assert.strictEqual(code, 1)
          assert.include(codes(nth(out, 0)), "disk-failed")
          assert.match(
            nth(err, 0),
            new RegExp(
              `took no more for ${names.events} \\(no space left on device\\).* restart the broker`
            )
          )
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})
