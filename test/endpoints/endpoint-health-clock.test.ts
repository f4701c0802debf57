import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Random } from "effect"
import type { Circuit } from "../../src/domain/circuit.ts"
import type { Endpoint } from "../../src/domain/endpoint.ts"
import type { AttemptOutcome } from "../../src/domain/outcome.ts"
import { EndpointHealth } from "../../src/endpoints/endpoint-health.ts"
import { HostLimits } from "../../src/endpoints/host-limits.ts"
import { makeLive } from "../../src/endpoints/live-endpoint.ts"
import { SpreadTimes } from "../../src/policy/spread-times.ts"
import { clock, timers } from "../../src/time/timers.ts"
import { deliveryOf, directoryOf, key, live, outcomeOf } from "../delivery/made-deliveries.ts"
import type { MovedTime } from "../kit/moved-time.ts"
import { clockEvents, withVirtualTime } from "../kit/moved-time.ts"

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const circuit: Circuit = {
  ...{ failures: 1, successes: 1 },
  ...{ coolDown: Duration.seconds(30), maxCoolDown: Duration.minutes(15) },
  rate: "none"
}
const patient: Circuit = { ...circuit, failures: 100 }

const place = { lane: { turn: () => false }, hostLine: undefined }

/** One endpoint as its partition's owner sees it. */
const ownerOf = (config: Partial<Endpoint> = {}) => {
  let endpoint = makeLive(key, { ...live.config, circuit, ...config }, 1)
  const directory = directoryOf({ find: () => endpoint })
  const noted: Array<string> = []
  let isClockTrusted = true
  const health = new EndpointHealth(
    {
      ...{ worker: "w", clock, nextId: () => "id", holds: () => true, isOver: () => false },
      hosts: new HostLimits(directory.hosts),
      spreadTimes: new SpreadTimes(),
      ...{ run: () => undefined, isClockTrusted: () => isClockTrusted }
    },
    directory,
    {
      appendWaiting: () => undefined,
      append: (_, kind) => void noted.push(kind),
      giveUp: () => void noted.push("given up")
    },
    Effect.runSync(Effect.service(Random.Random))
  )
  const answers = (verdict: AttemptOutcome["verdict"], result = {}) =>
    health.answered(
      endpoint,
      deliveryOf(),
      outcomeOf(verdict, {
        ...{ at: timers.wallMs(), overloaded: verdict !== "delivered" },
        result: { status: verdict === "delivered" ? 200 : 503, durationMs: 1, ...result }
      }),
      {}
    )
  return {
    ...{ answers, health, noted },
    fails: (result = {}) => answers("retry", result),
    /** Its configuration changes. */
    becomes: (changes: Partial<Endpoint>) => {
      endpoint = makeLive(key, { ...live.config, circuit, ...config, ...changes }, 1)
    },
    trusts: (is: boolean) => {
      isClockTrusted = is
    }
  }
}

/** Lets an endpoint be looked at each second until a condition holds. Returns how long, ms. */
const ticksUntil = (
  time: MovedTime & { runs(ms: number): void },
  health: EndpointHealth,
  holds: () => boolean
): number => {
  const begun = time.timers.monotonicMs()
  while (time.timers.monotonicMs() - begun < 3 * day) {
    health.tick()
    if (holds()) return time.timers.monotonicMs() - begun
    time.runs(second)
  }
  return Number.POSITIVE_INFINITY
}

for (const [what, happens] of clockEvents)
  describe(`an endpoint whose owner's machine: ${what}`, () => {
    const test = (name: string, run: Parameters<typeof withVirtualTime>[0]) =>
      it(name, () => withVirtualTime(run))

    test("is probed after its longest cool-down at the latest", (time) => {
      const { fails, health } = ownerOf()
      fails()
      happens(time)
      const state = () => health.of(key)?.circuit.state
      assert.isAtMost(
        ticksUntil(time, health, () => state() === "half-open"),
        15 * minute
      )
    })

    test("has its circuit closed by the first probe, and opened again by failures", (time) => {
      const { answers, fails, health, noted } = ownerOf()
      fails()
      time.runs(day)
      health.tick()
      happens(time)
      time.runs(second)
      answers("delivered")
      assert.isTrue(health.isClosed(key))
      happens(time)
      time.runs(second)
      fails()
      assert.isFalse(health.isClosed(key))
      assert.deepStrictEqual(noted, [
        ...["circuit-opened", "circuit-half-opened", "circuit-closed", "circuit-opened"]
      ])
    })

    test("is not held longer than its cap by a Retry-After", (time) => {
      const retry = { ...live.policyFor("paid").policy, retryAfterCap: Duration.minutes(10) }
      const { fails, health } = ownerOf({ circuit: patient, retry })
      fails({ retryAfter: "600" })
      assert.strictEqual(health.limit(key), 0)
      happens(time)
      assert.isAtMost(
        ticksUntil(time, health, () => health.limit(key) > 0),
        10 * minute + second
      )
    })

    test("is held by the cap of the policy of the event's type, shorter or longer", (time) => {
      const { policy } = live.policyFor("paid")
      const capped = (minutes: number) => ({
        ...{ ...policy, retryAfterCap: Duration.minutes(minutes) }
      })
      const heldMs = (changes: Partial<Endpoint>) => {
        const { fails, health } = ownerOf({ circuit: patient, ...changes })
        fails({ retryAfter: "600" })
        return ticksUntil(time, health, () => health.limit(key) > 0)
      }
      const shorter = heldMs({ retry: capped(60), retryFor: { paid: capped(2) } })
      assert.approximately(shorter, 2 * minute, second)
      const longer = heldMs({ retry: capped(2), retryFor: { "*": capped(60) } })
      assert.approximately(longer, 10 * minute, second)
      happens(time)
    })

    test("gets the requests that its rate allows, neither none nor a burst", (time) => {
      const { health } = ownerOf({ rate: { perSecond: 2, burst: 4 } })
      const taken = () => {
        let count = 0
        while (health.admit(key, place)) count++
        return count
      }
      // Busy for two hours: the bucket was never full.
      for (let half = 0; half < 4 * 3_600; half++) {
        taken()
        time.runs(second / 2)
      }
      happens(time)
      assert.isAtMost(taken(), 4)
      time.runs(10 * second)
      assert.strictEqual(taken(), 4)
      time.runs(second)
      assert.strictEqual(taken(), 2)
    })

    test("has its adaptive limit lowered as it is overloaded", (time) => {
      const { fails, health } = ownerOf({ adapt: true, circuit: patient })
      fails()
      const before = health.limit(key)
      happens(time)
      time.runs(minute)
      fails()
      assert.isBelow(health.limit(key), before)
    })

    test("has its failures stored and forgotten in time", (time) => {
      const { answers, fails, health } = ownerOf({ circuit: patient })
      fails()
      health.tick()
      happens(time)
      answers("delivered")
      assert.isAtMost(
        ticksUntil(time, health, () => health.size() === 0),
        minute
      )
    })
  })

describe("an endpoint for which nothing is to wait while its circuit is open", () => {
  it("refuses deliveries until its cool-down is over, not until it is seen to be half-open", () =>
    withVirtualTime((time) => {
      const { fails, health } = ownerOf({ circuit: { ...circuit, onOpen: "dead-letter" } })
      fails()
      assert.isTrue(health.refuses(key))
      // A cool-down is up to a quarter longer than it is set.
      time.runs(29 * second)
      assert.isTrue(health.refuses(key))
      time.runs(9 * second)
      assert.strictEqual(health.limit(key), 0)
      assert.isFalse(health.refuses(key))
      const freed: Array<string> = []
      const stop = health.onFreed((one) => void freed.push(one))
      health.tick()
      assert.deepStrictEqual(freed, [key])
      stop()
      assert.strictEqual(health.limit(key), 1)
      assert.isFalse(health.refuses(key))
    }))
})

describe("an endpoint whose owner's clock may be wrong", () => {
  it("is neither probed nor given up until the clock is known to be right", () =>
    withVirtualTime((time) => {
      const { fails, health, noted, trusts } = ownerOf()
      fails()
      time.step(100 * day)
      trusts(false)
      health.tick()
      fails()
      assert.strictEqual(health.of(key)?.circuit.state, "open")
      time.step(-100 * day)
      trusts(true)
      health.tick()
      assert.deepStrictEqual(noted, ["circuit-opened"])
      time.runs(40 * second)
      health.tick()
      assert.deepStrictEqual(noted, ["circuit-opened", "circuit-half-opened"])
    }))
  it("is not given up for failures in a row", () =>
    withVirtualTime((time) => {
      const { fails, noted, trusts } = ownerOf({ circuit: patient })
      fails()
      time.step(100 * day)
      trusts(false)
      fails()
      assert.deepStrictEqual(noted, [])
      trusts(true)
      fails()
      assert.deepStrictEqual(noted, ["given up"])
    }))
})

describe("a suspended endpoint, as its owner sees it,", () => {
  const suspended: Partial<Endpoint> = { suspended: { at: 0, by: "w", reason: "410" } }

  it("is not probed, and has no failures behind it when it is resumed", () =>
    withVirtualTime((time) => {
      const { answers, becomes, fails, health, noted } = ownerOf()
      fails()
      becomes(suspended)
      time.runs(minute)
      health.tick()
      fails()
      health.tick()
      assert.strictEqual(health.of(key)?.failuresInRow ?? 0, 0)
      assert.deepStrictEqual(noted, ["circuit-opened", "circuit-opened"])
      assert.strictEqual(health.limit(key), 0)
      becomes({})
      health.tick()
      assert.strictEqual(health.limit(key), 1)
      answers("delivered")
      assert.strictEqual(health.limit(key), 2)
    }))

  it("is left alone until its Retry-After is over, though it is resumed before", () =>
    withVirtualTime((time) => {
      const { becomes, fails, health } = ownerOf()
      fails({ retryAfter: "600" })
      becomes(suspended)
      health.tick()
      becomes({})
      health.tick()
      assert.isTrue(health.isClosed(key))
      time.runs(599 * second)
      health.tick()
      assert.strictEqual(health.limit(key), 0)
      time.runs(2 * second)
      health.tick()
      assert.strictEqual(health.limit(key), 1)
    }))
})
