import { assert, describe, it } from "@effect/vitest"
import type { Scope } from "effect"
import { Effect } from "effect"
import type { TestContext } from "vitest"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import type { Facts } from "../../src/history/facts.ts"
import { parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import { consistentRounds, isClean } from "../kit/consistency.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  installation,
  nth,
  publish,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { explained } from "../kit/explained.ts"
import { gate } from "../kit/gate.ts"
import { fewOf, isLong } from "../kit/long.ts"
import type { TestServerOptions } from "../kit/nats-server.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, quiet } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 120_000 })

const store = 96 * 1024 ** 2

const inAccount = `accounts { P { jetstream { max_file: ${store} }, users: [{ user: p, password: p }] } }
no_auth_user: p`

/** Publishes until the broker takes no more: how many it took, and what it said then. */
const flood = Effect.gen(function* () {
  const body = "x".repeat(400_000)
  for (let count = 0; ; count++) {
    const refusal = yield* Effect.match(publish("a", body), {
      onFailure: ({ message }) => message,
      onSuccess: () => undefined
    })
    if (refusal !== undefined) return { count, refusal }
  }
})

interface Told {
  readonly broker: TestServerOptions
  /** Of each endpoint, what it answers to an attempt. */
  readonly answers: ReadonlyArray<ReadonlyArray<number>>
  /** As `status` says it. */
  readonly accountLimit: number | null
}

/** No deadline passes where the machine is slow: what ends is another story. */
const patient = quickRetry({ window: "2 days" })

const quick = [200]
/** What fails waits in the queue of its endpoint. */
const failsFirst = [503, 200]

/** Tells a story on a server of its own, with an installation that fills its store soon. */
const inSmallStore = <E>(
  broker: TestServerOptions,
  context: TestContext,
  story: (flags: ReadonlyArray<string>) => Effect.Effect<unknown, E, Broker | Facts | Scope.Scope>
) => {
  const told = Effect.gen(function* () {
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => startServer(broker)),
      (server) => Effect.promise(() => server.stop())
    )
    const { eventRoot, prefix, url, within } = installation(server)
    const flags = ["--nats", url, "--prefix", prefix, "--events", eventRoot]
    const made = yield* run("init", "--partitions", "2", "--dead-bytes", "16MiB", ...flags)
    assert.strictEqual(made.code, 0, made.err.join("\n"))
    yield* within(story(flags))
  })
  return explained(context, told.pipe(Effect.scoped, Effect.provide(quiet)))
}

/** Discards dead letters, as soon as there are some, until all have ended. */
const discardUntil = Effect.fnUntraced(function* (
  areAllOver: () => boolean,
  flags: ReadonlyArray<string>
) {
  const { names, streamInfo } = yield* Broker
  while (!areAllOver()) {
    yield* eventually(
      streamInfo("look", names.dead),
      ({ state }) => state.messages >= 5 || areAllOver()
    )
    const { code, err } = yield* run("dead", "discard", "--all", "--yes", ...flags)
    assert.strictEqual(code, 0, err.join("\n"))
  }
})

describe("a store that publishers fill", () => {
  const stores: ReadonlyArray<readonly [string, Told]> = [
    [
      "while each event waits for retries of several endpoints",
      {
        broker: { config: inAccount },
        answers: [quick, failsFirst, failsFirst],
        accountLimit: store
      }
    ],
    [
      "of an account with a limit",
      { broker: { config: inAccount }, answers: [quick], accountLimit: store }
    ],
    [
      "whose size no client sees",
      { broker: { maxStore: store }, answers: [quick], accountLimit: null }
    ]
  ]
  it.live.each(fewOf(stores, 1))(
    "%s, refuses them before the engine",
    ([, { accountLimit, answers, broker }], context) =>
      inSmallStore(broker, context, (flags) =>
        Effect.gen(function* () {
          const { names } = yield* Broker
          for (const [index, statuses] of answers.entries()) {
            const hook = yield* receiver({ answer: byAttempt(...statuses) })
            yield* endpoint({ id: `hook${index}`, url: hook.url, retry: patient })
          }
          const { count, refusal } = yield* flood
          assert.match(refusal, /maximum bytes exceeded/)

          const facts = yield* history
          yield* worker()
          yield* facts.count("delivered", count * answers.length)
          assert.strictEqual((yield* flood).count, 0, "publishers are refused still")
          assert.lengthOf(yield* consistentRounds, count * answers.length)
          yield* isClean

          const checked = yield* run("status", "--check", "--json", ...flags)
          assert.strictEqual(checked.code, 1)
          assert.match(nth(checked.err, 0), new RegExp(`${names.events} is 9\\d.* full`))
          const { room } = parse(nth(checked.out, 0))
          assert.deepNestedInclude(room, { "account.limitBytes": accountLimit, "queues.bytes": 0 })
        })
      )
  )

  it.live("goes on when an endpoint that took nothing is back: all of it waited", (context) =>
    inSmallStore({ config: inAccount }, context, () =>
      Effect.gen(function* () {
        const { ask, jsm } = yield* natsClients
        const slow = yield* gate
        yield* endpoint({ url: slow.url, maxInFlight: 1, retry: patient })
        const { count } = yield* flood
        const facts = yield* history
        yield* worker()
        yield* eventually(backlogged, (waiting) => waiting >= count - 2)
        const { storage } = yield* ask("look", () => jsm.getAccountInfo())
        assert.isBelow(storage, 0.9 * store)

        yield* slow.open
        yield* facts.count("delivered", count)
        assert.lengthOf(yield* consistentRounds, count)
        yield* isClean
      })
    )
  )

  it.live.skipIf(!isLong)(
    "goes on where what waits keeps its bodies: the endpoint ends what is beyond its share",
    (context) =>
      inSmallStore({ config: inAccount }, context, (flags) =>
        Effect.gen(function* () {
          const { ask, jsm } = yield* natsClients
          const slow = yield* gate
          // Beyond the age of events.
          const retry = quickRetry({ window: "8 days" })
          yield* endpoint({ url: slow.url, maxInFlight: 1, retry })
          const { count } = yield* flood
          const facts = yield* history
          yield* worker()
          yield* eventually(run("status", "--check", ...flags), ({ err }) =>
            /backlogs take [^;]* \(acme [\d,]+\): each tenant/.test(nth(err, 0))
          )
          const { storage } = yield* ask("look", () => jsm.getAccountInfo())
          assert.isBelow(storage, 0.9 * store)

          yield* slow.open
          // DEAD takes some 40 of what has ended.
          yield* discardUntil(
            () => facts.of("dead-lettered").length + facts.of("delivered").length === count,
            flags
          )
          const reasons = facts.of("dead-lettered").map(({ reason }) => reason)
          assert.deepStrictEqual([...new Set(reasons)], ["backlog-full"])
          assert.isAtLeast(facts.of("delivered").length, 5)
          yield* isClean
        })
      )
  )

  it.live.skipIf(!isLong)(
    "goes on each time dead letters are discarded, where all of it ends so",
    (context) =>
      inSmallStore({ config: inAccount }, context, (flags) =>
        Effect.gen(function* () {
          const hooks = ["a", "b"]
          const { url: to } = yield* receiver({ answer: { status: 503 } })
          const retry = quickRetry({ window: "3 seconds", maxAttempts: 1_000 })
          for (const id of hooks) yield* endpoint({ id, url: to, retry })
          const { count } = yield* flood
          const facts = yield* history
          yield* worker()
          const all = count * hooks.length
          // DEAD takes some 40 of them: the rest waits for room, and routing for the rest.
          yield* discardUntil(() => facts.of("dead-lettered").length === all, flags)
          assert.deepInclude(yield* isClean, { begun: all, missing: 0, pending: 0 })
        })
      )
  )
})
