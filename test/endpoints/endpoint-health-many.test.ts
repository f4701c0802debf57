import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Random } from "effect"
import type { Circuit } from "../../src/domain/circuit.ts"
import { EndpointHealth } from "../../src/endpoints/endpoint-health.ts"
import type { StoredHealth } from "../../src/endpoints/health-store.ts"
import { HostLimits } from "../../src/endpoints/host-limits.ts"
import type { LiveEndpoint } from "../../src/endpoints/live-endpoint.ts"
import { makeLive } from "../../src/endpoints/live-endpoint.ts"
import { SpreadTimes } from "../../src/policy/spread-times.ts"
import { clock, timers } from "../../src/time/timers.ts"
import { deliveryOf, directoryOf, live, outcomeOf } from "../delivery/made-deliveries.ts"
import { withVirtualTime } from "../kit/moved-time.ts"

const second = 1_000

/** All of one tenant fail together: there is no jitter between them. */
const circuit: Circuit = {
  ...{ failures: 1, successes: 1, rate: "none" },
  ...{ coolDown: Duration.seconds(30), maxCoolDown: Duration.seconds(30) }
}
const patient: Circuit = { ...circuit, failures: 100 }

const keysOf = (tenant: string, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, number) => `${tenant}.hook-${number}`)

/** Two partitions of a worker. Returns what goes over all their endpoints. */
const makePartitions = (of: Circuit) => {
  const endpoints = new Map<string, LiveEndpoint>()
  for (const key of [...keysOf("acme", 2_000), ...keysOf("calm", 2)]) {
    const [tenant = "", id = ""] = key.split(".")
    endpoints.set(key, makeLive(key, { ...live.config, tenant, id, circuit: of }, 1))
  }
  const directory = directoryOf({ find: (key) => endpoints.get(key) })
  const spreadTimes = new SpreadTimes()
  const random = Effect.runSync(Effect.service(Random.Random))
  const partitions = [0, 1].map(
    () =>
      new EndpointHealth(
        {
          ...{ worker: "w", clock, nextId: () => "id", holds: () => true, isOver: () => false },
          ...{ hosts: new HostLimits(directory.hosts), spreadTimes },
          ...{ run: () => undefined, isClockTrusted: () => true }
        },
        directory,
        { appendWaiting: () => undefined, append: () => undefined, giveUp: () => undefined },
        random
      )
  )
  const partitionOf = (key: string) => partitions[Number(key.slice(-1)) % 2] as EndpointHealth
  const fails = (key: string, result = {}) => {
    const endpoint = endpoints.get(key) as LiveEndpoint
    const [tenant = "", id = ""] = key.split(".")
    partitionOf(key).answered(
      endpoint,
      deliveryOf({ tenant, endpoint: id }),
      outcomeOf("retry", {
        ...{ at: timers.wallMs(), result: { status: 503, durationMs: 1, ...result } }
      }),
      {}
    )
  }
  const tick = () => {
    for (const partition of partitions) partition.tick()
  }
  return { fails, partitionOf, partitions, tick }
}

/**
 * Lets time pass until all endpoints take something again. Returns how many began to within each
 * second, by tenant.
 */
const begunOf = (
  time: { runs(ms: number): void },
  { partitionOf, tick }: Pick<ReturnType<typeof makePartitions>, "partitionOf" | "tick">
) => {
  const begun = { acme: [] as Array<number>, calm: [] as Array<number> }
  const waiting = { acme: new Set(keysOf("acme", 2_000)), calm: new Set(keysOf("calm", 2)) }
  while (waiting.acme.size + waiting.calm.size > 0) {
    for (let ms = 0; ms < second; ms += 100) {
      tick()
      time.runs(100)
    }
    for (const tenant of ["acme", "calm"] as const) {
      const now = [...waiting[tenant]].filter((key) => partitionOf(key).limit(key) > 0)
      for (const key of now) waiting[tenant].delete(key)
      begun[tenant].push(now.length)
    }
  }
  return begun
}

describe("thousands of endpoints of a tenant that wait for the same time", () => {
  const check = (begun: ReturnType<typeof begunOf>, from: number) => {
    const { acme, calm } = begun
    assert.strictEqual(
      acme.slice(0, from).reduce((all, count) => all + count, 0),
      0
    )
    // A look is at the end of a second, ten ticks after the one before.
    assert.isAtMost(Math.max(...acme), 220)
    assert.isAtLeast(Math.max(...acme), 180)
    assert.isAtMost(acme.length, from + 12)
    assert.strictEqual(calm[from] ?? 0, 2)
  }

  it("are probed one after the other, and those of another tenant at once", () =>
    withVirtualTime((time) => {
      const worker = makePartitions(circuit)
      for (const key of [...keysOf("acme", 2_000), ...keysOf("calm", 2)]) worker.fails(key)
      check(begunOf(time, worker), 30)
    }))

  it("are tried one after the other at the end of a Retry-After", () =>
    withVirtualTime((time) => {
      const worker = makePartitions(patient)
      for (const key of [...keysOf("acme", 2_000), ...keysOf("calm", 2)])
        worker.fails(key, { status: 429, retryAfter: "30" })
      check(begunOf(time, worker), 30)
    }))

  it("are probed one after the other where their cool-down ended while nobody owned them", () =>
    withVirtualTime((time) => {
      const former = makePartitions(circuit)
      const keys = [...keysOf("acme", 2_000), ...keysOf("calm", 2)]
      for (const key of keys) former.fails(key)
      const stored = keys.flatMap((key): Array<StoredHealth> => {
        const health = former.partitionOf(key).of(key)
        return health === undefined ? [] : [{ key, health, revision: 1 }]
      })
      time.runs(3_600 * second)
      const worker = makePartitions(circuit)
      for (const found of stored) worker.partitionOf(found.key).load([found])
      check(begunOf(time, worker), 0)
    }))
})
