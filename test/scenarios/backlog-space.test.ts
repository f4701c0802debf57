import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import { sharesOf } from "../../src/broker/storage-limits.ts"
import type { BacklogSpace } from "../../src/delivery/backlog/backlog-space.ts"
import { makeBacklogSpace } from "../../src/delivery/backlog/backlog-space.ts"
import { eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

const MiB = 1024 ** 2
/** Its backlogs may take 4 MiB. */
const shares = sharesOf(64 * MiB)

/** Stores messages in an endpoint's backlog, as another worker would. */
const store = Effect.fnUntraced(function* (key: string, messages: number, bytes: number) {
  const { ask, js, names } = yield* natsClients
  const [tenant = "", id = ""] = key.split(".")
  const body = new Uint8Array(bytes)
  yield* Effect.forEach(
    Array(messages),
    () => ask("store", () => js.publish(names.subjects.backlog(1, tenant, id), body)),
    { concurrency: 16, discard: true }
  )
})

const isFull = (space: BacklogSpace, key: string, expected: boolean) =>
  eventually(
    Effect.sync(() => space.isFull(key, false)),
    (isFull) => isFull === expected
  )

describe.concurrent("the space of all backlogs", () => {
  scenario(
    "is full for who holds his share of it, and again free when that has left",
    () =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* store("calm.hook", 2, 1_000)
        const space = yield* makeBacklogSpace(2, () => true)
        assert.isFalse(space.isFull("loud.down", false))
        // Somebody else stores most of it: this worker learns of it by a reading.
        yield* store("loud.down", 24, 100_000)
        yield* isFull(space, "loud.down", true)
        // Bodies have half of the tenant's share; what waits without one has the rest.
        assert.isTrue(space.isFull("loud.another", false))
        assert.isFalse(space.isFull("loud.another", true))
        assert.isFalse(space.isFull("calm.hook", false))
        assert.isFalse(space.isFull("new.hook", false))
        const filter = names.subjects.backlog(1, "loud", "down")
        yield* ask("purge", () => jsm.streams.purge(names.backlog(1), { filter }))
        yield* isFull(space, "loud.down", false)
      }),
    shares
  )

  scenario(
    "counts what this worker stores at once, and knows small messages beside large ones",
    () =>
      Effect.gen(function* () {
        yield* store("calm.hook", 400, 100)
        const space = yield* makeBacklogSpace(2, () => true)
        for (let n = 0; n < 24; n++) space.stored("loud.down", 100_000)
        for (let n = 0; n < 400; n++) space.stored("calm.hook", 200)
        assert.isTrue(space.isFull("loud.down", false))
        yield* store("loud.down", 24, 100_000)
        yield* store("third.hook", 14, 100_000)
        // The broker counts messages of each, and bytes of all together.
        yield* isFull(space, "third.hook", true)
        assert.isTrue(space.isFull("loud.down", false))
        assert.isFalse(space.isFull("calm.hook", false))
      }),
    shares
  )
})
