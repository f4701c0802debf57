import { assert, describe, it } from "@effect/vitest"
import type { Scope } from "effect"
import { Deferred, Effect } from "effect"
import { vi } from "vitest"
import type { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { sharesOf } from "../../src/broker/storage-limits.ts"
import type { Facts } from "../../src/history/facts.ts"
import { run } from "../cli/in-process.ts"
import { consistentRounds, isClean } from "../kit/consistency.ts"
import {
  endpoint,
  eventually,
  history,
  installation,
  lateRetry,
  publish,
  publishTo,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { makeLog } from "../kit/log.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { quiet } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 60_000 })

const MiB = 1024 ** 2
const store = 72 * MiB
const shares = sharesOf(64 * MiB)

const account = `accounts { P { jetstream { max_file: ${store} }, users: [{ user: p, password: p }] } }
no_auth_user: p`

/** A test in an account with a limit, on a server of its own. */
const inSmallStore = <E>(
  name: string,
  story: Effect.Effect<unknown, E, Broker | Facts | Scope.Scope>
) =>
  it.live(name, () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ config: account })),
        (server) => Effect.promise(() => server.stop())
      )
      yield* installation(server, shares).run(story)
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

const body = "x".repeat(100_000)

/** A window beyond the age of events: what waits for so long keeps its body. */
const keepsBodies = { ...lateRetry, window: "8 days" } as const

/** Fills the store up to a number of free bytes, with messages of somebody else. */
const fill = Effect.fnUntraced(function* (free: number) {
  const { ask, js, jsm } = yield* natsClients
  yield* ask("make", () => jsm.streams.add({ name: "FILLER", subjects: ["filler"] }))
  for (;;) {
    const { storage } = yield* ask("look", () => jsm.getAccountInfo())
    const left = store - storage - free
    if (left <= 1_000) return
    const bytes = Math.min(left - 500, MiB - 1_000)
    yield* ask("fill", () => js.publish("filler", new Uint8Array(bytes)))
  }
})

describe("a store with little room", () => {
  inSmallStore(
    "has room for the copies of all attempts under way, if these fail at once",
    Effect.gen(function* () {
      const log = makeLog()
      const opened = yield* Deferred.make<void>()
      const hook = yield* receiver({
        answer: async ({ headers }) => {
          if (headers["petrel-attempt"] !== "1") return { status: 200 }
          await Effect.runPromise(Deferred.await(opened))
          return { status: 503 }
        }
      })
      const endpoints = 8
      for (let n = 0; n < endpoints; n++)
        yield* endpoint({ id: `hook${n}`, url: hook.url, maxInFlight: 100 })
      const facts = yield* history
      const events = 100
      yield* Effect.forEach(Array(events), () => publish("a", body), { concurrency: 16 })

      yield* Effect.provide(worker(), log.layer)
      yield* eventually(
        Effect.sync(() => log.count("events are not routed until")),
        (times) => times >= 1
      )
      yield* Deferred.succeed(opened, undefined)
      yield* facts.count("delivered", events * endpoints)
      assert.strictEqual(log.count("takes no"), 0)
      assert.lengthOf(yield* consistentRounds, events * endpoints)
      yield* isClean
    })
  )

  inSmallStore(
    "delivers what is small while there is no room to move what is large",
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const slow = yield* gate
      const quick = yield* receiver()
      yield* endpoint({
        ...{ id: "slow", url: slow.url, types: ["large"], maxInFlight: 1 },
        retry: keepsBodies
      })
      yield* endpoint({ id: "quick", url: quick.url, types: ["small"] })
      const facts = yield* history
      yield* worker({ id: "routes", roles: ["router"] })
      yield* Effect.forEach(Array(5), () => publish("large", body))
      yield* eventually(waitingMessages, (count) => count === 5)
      yield* fill(50_000)

      let moves = 0
      for (const partition of [0, 1])
        connection.subscribe(names.subjects.backlogOf(partition), { callback: () => void moves++ })
      yield* worker({ roles: ["deliver"] })
      yield* eventually(
        Effect.sync(() => moves),
        (count) => count >= 4
      )
      yield* publish("small")
      yield* facts.count("delivered", 1)
      yield* quick.received(1)
      yield* slow.open
      yield* facts.count("delivered", 2)
    })
  )

  it.live("tells who has his share of the backlogs, and is freed as it says", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer({ config: account })),
        (server) => Effect.promise(() => server.stop())
      )
      const place = installation(server, shares)
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      const status = Effect.map(run("status", "--check", ...flags), ({ code, err }) => ({
        code,
        said: err.join("\n")
      }))
      yield* place.run(
        Effect.gen(function* () {
          const down = yield* receiver({ answer: { status: 503 } })
          const hook = yield* receiver()
          yield* endpoint({ tenant: "loud", id: "down", url: down.url, retry: keepsBodies })
          yield* endpoint({ url: hook.url })
          yield* worker()
          yield* Effect.forEach(Array(250), () => publishTo("loud.a", body), { concurrency: 16 })
          const { code, said } = yield* eventually(status, ({ said }) =>
            said.includes("each tenant now has an equal share")
          )
          assert.strictEqual(code, 1)
          assert.match(said, /backlogs take .* \(loud \d+\)/)
          yield* publish("a")
          yield* hook.received(1)
          const disabled = yield* run("endpoint", "disable", "loud/down", ...flags)
          assert.strictEqual(disabled.code, 0, disabled.err.join())
          yield* eventually(
            status,
            ({ said }) => !said.includes("each tenant now has an equal share")
          )
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})
