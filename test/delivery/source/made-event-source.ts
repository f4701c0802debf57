import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { LeftBodies } from "../../../src/delivery/bodies/left-bodies.ts"
import { SuccessLog } from "../../../src/delivery/execution/success-log.ts"
import type { DeliveryTask, TaskContext } from "../../../src/delivery/execution/task.ts"
import { DirectHandle, EventSource } from "../../../src/delivery/source/event-source.ts"
import type { Delivery } from "../../../src/domain/delivery.ts"
import type { Plan } from "../../../src/domain/fact.ts"
import type { DirectEnd, UncommittedPlan } from "../../../src/routing/partition-owner.ts"
import { MemoryBroker } from "../in-memory.ts"
import {
  deliveryOf,
  directoryOf,
  fixedClock,
  keptBodies,
  key,
  live,
  makeMemory,
  now
} from "../made-deliveries.ts"

export const planFor = (id: string): Plan => ({
  endpoints: [{ id, generation: "g", revision: 1, deadline: now }],
  ...{ part: 0, last: true, skipped: [] }
})
export const plan = planFor("hook")

export interface World {
  /** Whether this worker owns the partition, each time that it is asked; the last answer stays. */
  readonly holds: ReadonlyArray<boolean>
  readonly isOpen: boolean
  readonly mayAttempt: boolean
  readonly isKnown: boolean
  readonly isTaking: boolean
  readonly isClosed: boolean
  readonly isQuick: boolean
  readonly leftBodies: Pick<LeftBodies, "leave">
}

/** A plan of the event that no fact holds yet, and what it is told. */
export const makePlan = (changes: Partial<UncommittedPlan> = {}) => {
  const told: Array<string> = []
  const uncommitted: UncommittedPlan = {
    ...{ id: "plan", safeRepublishMs: 60_000, piggyback: () => plan },
    ...{ isCommitted: false, isUnsure: false, committed: Effect.succeed(1) },
    adoptExisting: (seq) => void told.push(`adopt ${seq}`),
    confirmOwn: () => void told.push("own"),
    ...changes
  }
  return { told, uncommitted }
}

export const makeSource = (changes: Partial<World> = {}) => {
  const world: World = {
    ...{ holds: [true], isOpen: true, mayAttempt: true, isKnown: true },
    ...{ isTaking: true, isClosed: true, isQuick: true, leftBodies: keptBodies },
    ...changes
  }
  const entered: Array<DeliveryTask> = []
  const answers = [...world.holds]
  const holds = () => (answers.length > 1 ? answers.shift() : answers[0]) === true
  const stillOwner = Effect.sync(holds)
  const asOwner = Effect.flatMap(stillOwner, (isOwner) =>
    isOwner ? Effect.void : Effect.interrupt
  )
  const fence = { holds, stillOwner, asOwner }
  const broker = new MemoryBroker()
  const { facts } = broker.history
  const memory = makeMemory()
  let ids = 0
  const context: TaskContext = {
    sender: {
      transport: { start: () => assert.fail() },
      clock: fixedClock,
      answers: () => "none",
      traces: false
    },
    worker: "w1",
    ...{ inFlight: {} as TaskContext["inFlight"], logsDeliveries: false },
    successes: new SuccessLog(facts, fence, memory.completed),
    ...{
      reached: () => undefined,
      answered: () => undefined,
      succeeded: () => undefined,
      freed: () => undefined
    },
    attemptCancelled: () => undefined
  }
  const failed: Array<number> = []
  const source = new EventSource(
    {
      ...{ memory, context, fence, nextId: () => `id${ids++}` },
      settlement: { isOpen: world.isOpen },
      lanes: { isQuick: () => world.isQuick, enter: (_, task) => void entered.push(task) },
      health: { isClosed: () => world.isClosed },
      ...{ isTaking: () => world.isTaking, events: "EVENTS" },
      leftBodies: world.leftBodies,
      failed: (_, bytes) => void failed.push(bytes),
      mayAttempt: () => world.mayAttempt
    },
    directoryOf({ liveNow: () => (world.isKnown ? live : undefined) }),
    facts
  )
  return { broker, entered, failed, history: broker.history, memory, source }
}

/** A delivery that is only in its event, and how it ended. */
export const makeHandle = (
  uncommitted?: UncommittedPlan,
  changes: Partial<Delivery> = {},
  mayBeRedelivered = false
) => {
  const ends: Array<DirectEnd> = []
  let begun = 0
  const handle = new DirectHandle("EVENTS", {
    ...{
      delivery: deliveryOf(changes),
      key,
      body: new Uint8Array(),
      uncommitted,
      mayBeRedelivered
    },
    begun: () => void begun++,
    ended: (end) => void ends.push(end)
  })
  return { handle, ends, begun: () => begun }
}
