import { assert, describe, it } from "@effect/vitest"
import type { Scope } from "effect"
import { Effect } from "effect"
import type { TestContext } from "vitest"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { sharesOf } from "../../src/broker/storage-limits.ts"
import { resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import type { Facts } from "../../src/history/facts.ts"
import { pauseEndpoint } from "../../src/operations/endpoints/change-state.ts"
import { run } from "../cli/in-process.ts"
import { isClean } from "../kit/consistency.ts"
import {
  closedCircuit,
  endpoint,
  eventually,
  history,
  installation,
  lateRetry,
  publishTo,
  worker
} from "../kit/engine.ts"
import { explained } from "../kit/explained.ts"
import { makeLog } from "../kit/log.ts"
import { isLong } from "../kit/long.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { quiet } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 40_000 })

const MiB = 1024 ** 2
const store = 192 * MiB
/** Queues may take 8 MiB, and backlogs as much. */
const shares = { ...sharesOf(128 * MiB), deadBytes: 16 * MiB }
const account = `accounts { P { jetstream { max_file: ${store} }, users: [{ user: p, password: p }] } }
no_auth_user: p`

const body = "x".repeat(100_000)

/** Events are kept for 7 days: what waits longer keeps its body, wherever it waits. */
const keepsBodies = { ...lateRetry, window: "8 days" } as const

/** A story on a server of its own, in an account with a limit. */
const inSmallStore = <E>(
  name: string,
  story: (flags: ReadonlyArray<string>) => Effect.Effect<unknown, E, Broker | Facts | Scope.Scope>,
  /** False for a story that only `npm run test:long` tells. */
  isTold = true
) =>
  it.live.skipIf(!isTold)(name, (context: TestContext) =>
    explained(
      context,
      Effect.gen(function* () {
        const server = yield* Effect.acquireRelease(
          Effect.promise(() => startServer({ config: account })),
          (server) => Effect.promise(() => server.stop())
        )
        const place = installation(server, shares)
        const { eventRoot, prefix, url } = place
        yield* place.run(story(["--nats", url, "--prefix", prefix, "--events", eventRoot]))
      }).pipe(Effect.scoped, Effect.provide(quiet))
    )
  )

const flood = (subject: string, events: number) =>
  Effect.forEach(Array(events), () => publishTo(subject, body), { concurrency: 16, discard: true })

/** A tenant that is well. Its function publishes events, and waits until all so far are delivered. */
const calmTenant = Effect.gen(function* () {
  const well = yield* receiver()
  yield* endpoint({ tenant: "calm", id: "well", url: well.url })
  return Effect.fnUntraced(function* (events: number) {
    const before = well.requests.length
    for (let n = 0; n < events; n++) yield* publishTo("calm.a")
    yield* well.received(before + events)
  })
})

/** Returns the bytes in all queues, schedules included. */
const queueBytes = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const found = yield* Effect.forEach([0, 1], (index) =>
    streamInfo("look", names.deliveries(index))
  )
  return found.reduce((sum, { state }) => sum + state.bytes, 0)
})

const status = (flags: ReadonlyArray<string>) =>
  Effect.map(run("status", "--check", ...flags), ({ err }) => err.join("\n"))

describe("what one tenant's endpoint cannot take", () => {
  inSmallStore("takes next to no room: all of it waits, and is sent once it is back", () =>
    Effect.gen(function* () {
      const log = makeLog()
      const areDelivered = yield* calmTenant
      const down = yield* receiver()
      yield* endpoint({ tenant: "loud", id: "down", url: down.url, retry: lateRetry })
      yield* pauseEndpoint({ tenant: "loud", id: "down" }, {}, "test")
      const facts = yield* history
      yield* Effect.provide(worker(), log.layer)
      yield* flood("loud.a", 250)
      yield* areDelivered(200)
      yield* resumeEndpoint({ tenant: "loud", endpoint: "down" }, "test")
      yield* down.received(250)
      yield* facts.count("delivered", 450)
      assert.lengthOf(facts.of("dead-lettered"), 0)
      assert.strictEqual(log.count("events are not routed"), 0)
      yield* isClean
    })
  )

  inSmallStore("does not stop another tenant's events where it waits with its bodies", (flags) =>
    Effect.gen(function* () {
      const log = makeLog()
      const areDelivered = yield* calmTenant
      yield* endpoint({ tenant: "loud", id: "down", retry: keepsBodies })
      yield* pauseEndpoint({ tenant: "loud", id: "down" }, {}, "test")
      const facts = yield* history
      yield* Effect.provide(worker(), log.layer)
      yield* flood("loud.a", 250)
      yield* areDelivered(200)
      // It has its share, and the rest has ended: nothing waits to be routed.
      yield* eventually(
        Effect.sync(() => facts.of("dead-lettered").length),
        (ended) => ended > 0
      )
      assert.isTrue(facts.of("dead-lettered").every(({ tenant }) => tenant === "loud"))
      assert.isTrue(facts.of("dead-lettered").every(({ reason }) => reason === "backlog-full"))
      assert.match(
        yield* eventually(status(flags), (said) => said.includes("backlogs take")),
        /backlogs take .* of 8 MiB \(loud \d+\): each tenant now has an equal share/
      )
      assert.strictEqual(log.count("events are not routed"), 0)
      yield* isClean
    })
  )

  inSmallStore(
    "does not stop them where its retries have large bodies",
    () =>
      Effect.gen(function* () {
        const log = makeLog()
        const areDelivered = yield* calmTenant
        const failing = yield* receiver({ answer: { status: 503 } })
        yield* endpoint({
          ...{ tenant: "loud", id: "down", url: failing.url, retry: keepsBodies },
          circuit: closedCircuit
        })
        yield* Effect.provide(worker(), log.layer)
        yield* flood("loud.a", 250)
        yield* areDelivered(200)
        yield* flood("loud.a", 50)
        yield* areDelivered(200)
        // Half of the queues' room is for what waits there, and who is alone there gets half of that.
        assert.isBelow(yield* queueBytes, 5 * MiB)
        assert.isBelow(failing.requests.length, 60)
        assert.strictEqual(log.count("events are not routed"), 0)
      }),
    isLong
  )

  inSmallStore(
    "does not stop them where it ends, and DEAD is full",
    () =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const log = makeLog()
        const areDelivered = yield* calmTenant
        const refusing = yield* receiver({ answer: { status: 400 } })
        yield* endpoint({
          ...{ tenant: "loud", id: "bad", url: refusing.url, retry: keepsBodies },
          circuit: { ...closedCircuit, permanentFailures: 10_000 }
        })
        yield* ask("resize", () => jsm.streams.update(names.dead, { max_bytes: 1 }))
        const facts = yield* history
        yield* Effect.provide(worker(), log.layer)
        yield* flood("loud.a", 250)
        // Some wait for space in DEAD. The rest has ended by its facts alone, and nobody waits for it.
        yield* areDelivered(200)
        yield* eventually(
          Effect.sync(() => facts.of("dead-lettered").length),
          (ended) => ended > 200
        )
        assert.isTrue(facts.of("dead-lettered").every(({ dead }) => dead === undefined))
        assert.isBelow(yield* queueBytes, 5 * MiB)
        assert.strictEqual(log.count("events are not routed"), 0)
        yield* isClean
      }),
    isLong
  )
})

describe("what a single tenant's endpoint cannot take", () => {
  inSmallStore("ends beyond its share, and does not stop the tenant's other endpoint", (flags) =>
    Effect.gen(function* () {
      const log = makeLog()
      const well = yield* receiver()
      yield* endpoint({ tenant: "loud", id: "down", retry: keepsBodies })
      yield* endpoint({ tenant: "loud", id: "well", url: well.url, retry: keepsBodies })
      yield* pauseEndpoint({ tenant: "loud", id: "down" }, {}, "test")
      const facts = yield* history
      yield* Effect.provide(worker(), log.layer)
      yield* flood("loud.a", 250)
      yield* facts.count("delivered", 250)
      yield* eventually(
        Effect.sync(() => facts.of("dead-lettered").length),
        (ended) => ended > 0
      )
      assert.isTrue(facts.of("dead-lettered").every(({ endpoint }) => endpoint === "down"))
      assert.isTrue(facts.of("dead-lettered").every(({ reason }) => reason === "backlog-full"))
      yield* eventually(status(flags), (said) => said.includes("backlogs take"))
      assert.strictEqual(log.count("events are not routed"), 0)
      yield* isClean
    })
  )
})

describe("queues that nobody delivers", () => {
  inSmallStore("stop routing before they fill the store, as status says", (flags) =>
    Effect.gen(function* () {
      const log = makeLog()
      const hook = yield* receiver()
      yield* calmTenant
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      yield* Effect.provide(worker({ id: "routes", roles: ["router"] }), log.layer)
      yield* flood("acme.a", 110)
      yield* eventually(
        Effect.sync(() => log.count("events are not routed until")),
        (times) => times >= 1
      )
      assert.match(yield* status(flags), /queues take .* of 8 MiB because no worker/)
      assert.isBelow(yield* queueBytes, 9 * MiB)
      yield* worker({ roles: ["deliver"] })
      yield* facts.count("delivered", 110)
      assert.isAtLeast(log.count("there is space in the queues again"), 1)
      yield* isClean
    })
  )
})
