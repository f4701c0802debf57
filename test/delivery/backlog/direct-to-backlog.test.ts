import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import type { Broker } from "../../../src/broker/broker.ts"
import type { InFlight } from "../../../src/broker/in-flight.ts"
import { PublishError } from "../../../src/broker/publication.ts"
import type { StoreFailure } from "../../../src/broker/publish-once.ts"
import { DirectToBacklog } from "../../../src/delivery/backlog/direct-to-backlog.ts"
import type { Facts } from "../../../src/history/facts.ts"
import { MemoryBroker } from "../in-memory.ts"
import { deliveryOf, directoryOf, key, live, makeMemory } from "../made-deliveries.ts"

/** What speaks for the backlog, and against it. */
interface World {
  readonly refuses: boolean
  readonly isFull: boolean
  readonly isOpen: boolean
  readonly isLive: boolean
  /** How its store ends. */
  readonly store: Effect.Effect<void, PublishError>
}

const usual: World = {
  ...{
    refuses: false,
    isFull: false,
    isOpen: true,
    isLive: true
  },
  store: Effect.void
}

const silent = new PublishError({
  ...{ subject: "backlog", reason: "timeout", code: 0 },
  detail: "no answer"
})

/** Offers a delivery to the backlog: whether it takes it, and how its store ended. */
const offer = (changes: Partial<World>) => {
  const world = { ...usual, ...changes }
  const memory = makeMemory()
  const ends: Array<StoreFailure | "stored"> = []
  const broker = new MemoryBroker()
  const inFlight: Pick<InFlight<Broker | Facts>, "run"> = {
    run: (work, ended) => {
      const exit = Effect.runSync(Effect.exit(broker.run(work)))
      ended(Exit.isSuccess(exit) || !Cause.hasInterrupts(exit.cause))
    }
  }
  const stored = { seq: 1, entry: 1, after: 0 }
  const direct = new DirectToBacklog({
    ...{ memory, events: "EVENTS", inFlight: inFlight as InFlight<Broker | Facts> },
    index: { isFull: () => world.isFull },
    health: { refuses: () => world.refuses },
    settlement: { isOpen: world.isOpen, relocate: (store) => Effect.asVoid(store) },
    writer: { store: () => Effect.as(world.store, stored) },
    drainer: { storing: (_, store) => store },
    directory: directoryOf({ liveNow: () => (world.isLive ? live : undefined) })
  })
  const delivery = deliveryOf()
  const isTaken = direct.store({
    ...{ delivery, body: new Uint8Array(2) },
    ended: (why) => void ends.push(why ?? "stored")
  })
  return { isTaken, ends, isDone: memory.directDeliveries.isDone(key, delivery) }
}

describe("a delivery of an event", () => {
  for (const [what, world, isTaken] of [
    ["goes to the backlog", {}, true],
    ["does not where it would be refused there", { refuses: true }, false],
    ["does not where the backlog is full", { isFull: true }, false],
    ["does not while nothing can be recorded", { isOpen: false }, false],
    ["does not where its endpoint is not known as live", { isLive: false }, false]
  ] satisfies ReadonlyArray<readonly [string, Partial<World>, boolean]>)
    it(what, () => {
      const done = offer(world)
      assert.strictEqual(done.isTaken, isTaken)
      assert.strictEqual(done.isDone, isTaken)
      assert.deepStrictEqual(done.ends, isTaken ? ["stored"] : [])
    })

  it("is not known to be there where its store failed", () => {
    const done = offer({ store: Effect.fail(silent) })
    assert.deepStrictEqual(done.ends, [silent])
    assert.isFalse(done.isDone)
  })

  it("is not known to be there where its store was cut off", () => {
    const done = offer({ store: Effect.interrupt })
    assert.deepStrictEqual(done.ends, ["unknown"])
    assert.isFalse(done.isDone)
  })
})
