import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { takeOwnership } from "../../src/cluster/ownership.ts"
import { AttemptTallies } from "../../src/delivery/introspection/attempt-tallies.ts"
import { CapacityPool } from "../../src/delivery/scheduling/capacity-pool.ts"
import { LaneScheduler } from "../../src/delivery/scheduling/lane-scheduler.ts"
import { UnreadableQueue } from "../../src/delivery/source/unreadable-queue.ts"
import { defaultCircuit } from "../../src/domain/circuit.ts"
import { makeNames } from "../../src/domain/names.ts"
import { RateWindow } from "../../src/policy/circuit.ts"
import { PlanCommit } from "../../src/routing/plan-commit.ts"
import type { PlanStore } from "../../src/routing/plan-store.ts"
import { elapsedMs, SteadySince } from "../../src/time/elapsed.ts"
import { timers } from "../../src/time/timers.ts"
import { live } from "../delivery/made-deliveries.ts"
import { clockEvents, withVirtualTime } from "../kit/moved-time.ts"

const second = 1_000
const minute = 60 * second

/** A lease that was taken now, of a broker that stores whatever is written. */
const takeLease = () => {
  const life = {}
  const service = {
    ...{ names: makeNames(), life: () => life },
    publish: () => Effect.succeed({ stream: "KV", seq: 1, duplicate: false }),
    readMessage: () => Effect.succeed(null)
  } as unknown as Broker["Service"]
  const owner = { worker: "w", instance: "i", ttl: 10 * second }
  const lease = Effect.runSync(Effect.provideService(takeOwnership(0, owner), Broker, service))
  assert.isDefined(lease)
  return {
    holds: lease.holds,
    renew: () => Effect.runSync(Effect.provideService(lease.renew, Broker, service))
  }
}

for (const [what, happens] of clockEvents) {
  const isBack = what.endsWith("back")

  describe(`when ${what}`, () => {
    const test = (name: string, run: Parameters<typeof withVirtualTime>[0]) =>
      it(name, () => withVirtualTime(run))

    test("the time that has passed is never less than it was", (time) => {
      const before = elapsedMs()
      happens(time)
      time.runs(second)
      assert.isAtLeast(elapsedMs(), before + second)
      assert.strictEqual(elapsedMs() === before + second, isBack)
    })

    test("a lease holds no longer than the broker keeps it, and again once renewed", (time) => {
      const { holds, renew } = takeLease()
      assert.isTrue(holds())
      happens(time)
      time.runs(second)
      assert.strictEqual(holds(), isBack)
      renew()
      assert.isTrue(holds())
      time.runs(5 * second)
      assert.isFalse(holds())
    })

    test("a plan is stored again only under an id that the history surely knows", (time) => {
      const plans = { safeRepublishMs: minute } as PlanStore
      const event = { seq: 7, at: 1, tenant: "acme", type: "a", id: "e", content: {} }
      const plan = { part: 0, last: true, endpoints: [], skipped: [] }
      const planCommit = new PlanCommit(plans, event, plan, 1, elapsedMs())
      happens(time)
      time.runs(second)
      assert.strictEqual(planCommit.piggyback() === plan, isBack)
      time.runs(minute)
      assert.isUndefined(planCommit.piggyback())
    })

    test("a delivery waits in its lane no longer than it may while the machine runs", (time) => {
      const deferred: Array<string> = []
      const lanes = new LaneScheduler<string>({
        ...{ pool: new CapacityPool({ requests: 10, bytes: 1_000 }), maxQueueMs: second },
        ...{ limit: () => 1, admit: () => true, rateBudget: () => 10, hasBacklog: () => false },
        ...{ bytes: () => 1, isOver: () => false, closed: () => false },
        ...{ start: () => undefined, becameSlow: () => undefined, onCapacity: () => undefined },
        endObsolete: () => undefined,
        crowdedBy: () => undefined,
        defer: (item) => void deferred.push(item)
      })
      lanes.enter("a", "1")
      lanes.enter("a", "2")
      happens(time)
      lanes.tick()
      assert.deepStrictEqual(deferred, [])
      time.runs(2 * second)
      lanes.tick()
      assert.deepStrictEqual(deferred, ["2"])
    })

    test("a tally shows what was counted since, and no more than was counted at all", (time) => {
      const book = new AttemptTallies()
      const note = () => book.note(live, true, 5, timers.wallMs())
      for (let count = 0; count < 50; count++) {
        note()
        time.runs(second)
      }
      happens(time)
      for (let count = 0; count < 50; count++) note()
      const { attempts, delivered, durations } = book.read(timers.wallMs())
      assert.isAtLeast(attempts, 50)
      assert.isAtMost(attempts, 100)
      assert.strictEqual(delivered, attempts)
      assert.isTrue(durations.every((count) => count >= 0 && count <= 100))
    })

    test("a failure rate is that of what is attempted since", (time) => {
      const window = new RateWindow()
      const note = (ok: boolean) => window.note(ok, timers.wallMs())
      const exceeds = () => window.exceeds(defaultCircuit, timers.wallMs())
      for (let count = 0; count < 100; count++) note(false)
      assert.isTrue(exceeds())
      happens(time)
      for (let count = 0; count < 100; count++) note(true)
      assert.isFalse(exceeds())
      for (let count = 0; count < 100; count++) note(false)
      assert.isTrue(exceeds())
    })

    test("unreadable messages are forgotten a minute after they were due", (time) => {
      const queue = new UnreadableQueue()
      queue.note(3, second)
      happens(time)
      assert.strictEqual(queue.count(), 1)
      time.runs(minute + 3 * second)
      assert.strictEqual(queue.count(), 0)
    })

    test("what is counted by the time is counted anew", (time) => {
      const steady = new SteadySince(timers.wallMs())
      const before = timers.wallMs()
      time.runs(minute)
      assert.strictEqual(steady.at(timers.wallMs()), before)
      happens(time)
      time.runs(1)
      const after = timers.wallMs()
      assert.strictEqual(steady.at(after), after)
      time.runs(minute)
      assert.strictEqual(steady.at(timers.wallMs()), after)
    })
  })
}
