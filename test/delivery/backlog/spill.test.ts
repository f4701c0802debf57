import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PublishError } from "../../../src/broker/publication.ts"
import { Spill } from "../../../src/delivery/backlog/spill.ts"
import { type Progress, untried } from "../../../src/domain/delivery.ts"
import { MemoryBroker } from "../in-memory.ts"
import { key, makeMemory, NotedHandle } from "../made-deliveries.ts"

const handle = new NotedHandle()
const { place } = handle
const silent = new PublishError({
  ...{ subject: "backlog", reason: "timeout", code: 0 },
  detail: "no answer"
})

/** A spill whose moves are stored, or end as `outcomes` say, one after the other. */
const makeSpill = (
  state: Partial<{ isFull: boolean; refuses: boolean; decided: Progress }> = {},
  outcomes: Array<PublishError> = []
) => {
  const steps: Array<string> = []
  const stored: Array<Progress> = []
  const memory = makeMemory()
  const world = { isFull: false, refuses: false, ...state }
  const at = { seq: 1, entry: 1, after: 0 }
  const spill = new Spill({
    memory,
    interpreter: {
      reject: (_, reason) =>
        Effect.as(
          Effect.sync(() => steps.push(`reject ${reason}`)),
          undefined
        ),
      hurry: (handle, store) =>
        Effect.as(store(handle, { attempts: 1 }), undefined).pipe(Effect.orDie),
      relocate: (handle, store) =>
        Effect.as(store(handle, state.decided ?? untried), undefined).pipe(Effect.orDie)
    },
    writer: {
      store: ({ hasLeft, progress }) =>
        Effect.suspend(() => {
          stored.push(progress)
          steps.push(`store${hasLeft() ? ", has left" : ""}`)
          const failure = outcomes.shift()
          return failure === undefined ? Effect.succeed(at) : Effect.fail(failure)
        })
    },
    drainer: {
      isFull: () => world.isFull,
      storing: (_, store) => {
        steps.push("storing")
        return store
      }
    },
    health: { refuses: () => world.refuses },
    settlement: {
      moved: (_, store) => {
        steps.push("the same move")
        return Effect.asVoid(Effect.orDie(store))
      }
    }
  })
  const broker = new MemoryBroker()
  return { memory, spill, steps, stored, world, move: broker.run(spill.move(key, handle)), broker }
}

describe("a delivery that cannot wait in memory", () => {
  it.effect("is stored in its endpoint's backlog", () =>
    Effect.gen(function* () {
      const { move, spill, steps } = makeSpill()
      yield* move
      assert.deepStrictEqual(steps, ["storing", "store"])
      assert.isFalse(spill.hasBegun(place))
    })
  )

  it.effect("is dead-lettered where its endpoint's circuit or a full backlog forbids it", () =>
    Effect.gen(function* () {
      const open = makeSpill({ refuses: true, isFull: true })
      yield* open.move
      assert.deepStrictEqual(open.steps, ["reject circuit-open"])
      const full = makeSpill({ isFull: true })
      yield* full.move
      assert.deepStrictEqual(full.steps, ["reject backlog-full"])
    })
  )

  it.effect("continues a move that may have been stored, whatever has changed since", () =>
    Effect.gen(function* () {
      const { broker, memory, move, spill, steps, world } = makeSpill({}, [silent])
      yield* Effect.exit(move)
      assert.isTrue(spill.hasBegun(place))
      Object.assign(world, { refuses: true, isFull: true })
      memory.completed.add(place.seq, place.at)
      yield* broker.run(spill.move(key, handle))
      assert.deepStrictEqual(steps, [
        ...["storing", "store"],
        ...["storing", "the same move", "store, has left"]
      ])
      assert.isFalse(spill.hasBegun(place))
    })
  )

  it.effect("continues a move with the attempts that were decided about before it began", () =>
    Effect.gen(function* () {
      const decided = { attempts: 2 }
      const { broker, move, spill, stored } = makeSpill({ decided }, [silent])
      yield* Effect.exit(move)
      yield* broker.run(spill.move(key, handle))
      assert.deepStrictEqual(stored, [decided, decided])
    })
  )

  it.effect("begins anew where its message has ended meanwhile", () =>
    Effect.gen(function* () {
      const { move, spill } = makeSpill({}, [silent])
      yield* Effect.exit(move)
      assert.isFalse(spill.hasBegun({ ...place, at: place.at + 1 }))
      spill.forget({ ...place, at: place.at + 1 })
      assert.isTrue(spill.hasBegun(place))
      spill.forget(place)
      assert.isFalse(spill.hasBegun(place))
    })
  )
})
