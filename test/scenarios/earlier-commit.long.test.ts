import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { planUpgrade, upgrade } from "../../src/operations/upgrade/upgrade.ts"
import { checkedOut, hasCommit } from "../kit/commit.ts"
import { consistentRounds, isClean } from "../kit/consistency.ts"
import {
  endpoint,
  eventually,
  history,
  installation,
  publish,
  startedWorker,
  worker
} from "../kit/engine.ts"
import { startServer } from "../kit/nats-server.ts"
import { eight } from "../kit/owners.ts"
import { receiver } from "../kit/receiver.ts"
import { quiet } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 300_000 })

/** The commit whose workers run beside those of today: the last one before webhooks came in. */
const earlier = process.env.PETREL_EARLIER_COMMIT ?? "032eb2f8"

describe.skipIf(!hasCommit(earlier))(`workers of commit ${earlier}`, () => {
  it.live("deliver beside those of today, before and after `petrel init`, and can come back", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startServer()),
        (server) => Effect.promise(() => server.stop())
      )
      const old = yield* checkedOut(earlier)
      const place = installation(server)
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      yield* old.command("init", "--partitions", "2", ...flags)
      yield* place.within(
        Effect.gen(function* () {
          const hook = yield* receiver({})
          // One in eight answers every third request with 503, so that retries pass between versions.
          let asked = 0
          const flaky = yield* receiver({
            answer: () => ({ status: ++asked % 3 === 0 ? 503 : 200 })
          })
          yield* Effect.forEach(eight, (id, n) =>
            endpoint({ id, url: `${n === 0 ? flaky.url : hook.url}/${id}` })
          )
          const facts = yield* history
          const oldWorker = (id: string) =>
            old.start("worker", "--id", id, "--allow-network", "127.0.0.0/8", ...flags)
          let published = 0
          let isPublishing = true
          const publisher = yield* Effect.forkScoped(
            Effect.gen(function* () {
              while (isPublishing) {
                yield* publish("a")
                published++
                yield* Effect.sleep("20 millis")
              }
            })
          )
          const by = new Map<string, number>()
          let counted = 0
          const deliveredBy = (id: string) => {
            for (; counted < facts.facts.length; counted++) {
              const { kind, worker = "" } = facts.facts[counted] ?? {}
              if (kind === "delivered") by.set(worker, (by.get(worker) ?? 0) + 1)
            }
            return by.get(id) ?? 0
          }
          /** Waits until each of these workers has delivered 100 more. */
          const deliver = (...ids: ReadonlyArray<string>) => {
            const goals = ids.map((id) => ({ id, goal: deliveredBy(id) + 100 }))
            return facts.until(() => goals.every(({ goal, id }) => deliveredBy(id) >= goal))
          }
          const first = yield* oldWorker("old-1")
          yield* deliver("old-1")
          const young = yield* worker({ id: "young" })
          yield* deliver("old-1", "young")
          yield* place.run(Effect.void)
          yield* deliver("old-1", "young")
          // Back: all of today's workers go, and one of the earlier commit takes over.
          yield* young.stop
          yield* deliver("old-1")
          const second = yield* oldWorker("old-2")
          yield* deliver("old-1", "old-2")
          const again = yield* startedWorker({ id: "young-2" })
          assert.strictEqual(yield* first.stop, 0)
          yield* deliver("old-2", "young-2")
          assert.strictEqual(yield* second.stop, 0)
          yield* deliver("young-2")
          isPublishing = false
          yield* eventually(
            Effect.sync(() => publisher.pollUnsafe()),
            (exit) => exit !== undefined
          )
          assert.lengthOf(yield* consistentRounds, published * eight.length)
          yield* isClean
          const { old: left } = yield* planUpgrade
          assert.deepStrictEqual(left, [])
          yield* upgrade
          yield* again.stop
        })
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})
