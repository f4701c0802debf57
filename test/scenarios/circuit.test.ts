import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import {
  enableEndpoint,
  pauseEndpoint,
  resumeEndpoint
} from "../../src/endpoints/endpoint-state.ts"
import { readHealth } from "../../src/endpoints/health-store.ts"
import { consistentRounds } from "../kit/consistency.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishMany,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { about } from "../kit/outcomes.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

/** Opens after 3 failures, for some tenths of a second. */
const quickCircuit = {
  failures: 3,
  coolDown: "300 millis",
  maxCoolDown: "600 millis",
  successes: 2
} as const

const patient = quickRetry({ backoff: { kind: "fixed", delay: "1 second" }, maxAttempts: 100 })

/** A receiver that is down until it is mended; it knows how many requests it had at once, and when. */
const failing = Effect.gen(function* () {
  const state = { down: true, now: 0, most: 0, levels: [] as number[] }
  const hook = yield* receiver({
    answer: async () => {
      state.now++
      state.most = Math.max(state.most, state.now)
      if (!state.down) state.levels.push(state.now)
      await latency(5)
      state.now--
      return { status: state.down ? 503 : 200 }
    }
  })
  return { ...hook, state, mend: Effect.sync(() => Object.assign(state, { down: false })) }
})

const healthOf = (id: string) => Effect.map(readHealth("acme", id), ({ health }) => health)

const named = { tenant: "acme", endpoint: "hook" }

describe.concurrent("an endpoint that is down", () => {
  scenario(
    "is left alone but for a probe now and then, and holds nobody up; then gets everything",
    () =>
      Effect.gen(function* () {
        const dead = yield* failing
        const well = yield* receiver()
        yield* endpoint({
          id: "dead",
          url: dead.url,
          types: ["a"],
          retry: patient,
          circuit: quickCircuit
        })
        yield* endpoint({ id: "well", url: well.url, types: ["b"] })
        const facts = yield* history
        yield* worker()
        yield* publishMany(600, "a")
        yield* facts.count("circuit-opened", 2)
        const before = dead.requests.length
        yield* publishMany(100, "b")
        yield* well.received(100)
        yield* facts.count("circuit-opened", 4)
        assert.isAtMost(before, 20)
        assert.isAtMost(dead.requests.length, before + 10)

        yield* dead.mend
        yield* facts.count("circuit-closed", 1)
        yield* facts.count("delivered", 700)
        assert.isAtMost(dead.state.most, 10)
        const [first = 0, second = 0] = dead.state.levels
        assert.deepStrictEqual([first, second], [1, 1])
        assert.isAtLeast(Math.max(...dead.state.levels.slice(0, 100)), 5)
        yield* consistentRounds
        const kinds = about(facts.facts, "dead").flatMap(({ kind }) =>
          kind.startsWith("circuit") ? [kind] : []
        )
        const opened = kinds.filter((kind) => kind === "circuit-opened").length
        assert.strictEqual(kinds[0], "circuit-opened")
        assert.strictEqual(kinds.at(-1), "circuit-closed")
        assert.strictEqual(kinds.filter((kind) => kind === "circuit-half-opened").length, opened)
        yield* eventually(healthOf("dead"), (health) => health === undefined)
      })
  )

  scenario("is still left alone after its worker has gone, and its circuit is shown", () =>
    Effect.gen(function* () {
      const dead = yield* failing
      yield* endpoint({
        url: dead.url,
        retry: patient,
        circuit: { ...quickCircuit, coolDown: "20 seconds", maxCoolDown: "30 seconds" }
      })
      const facts = yield* history
      const first = yield* worker()
      yield* publishMany(50, "a")
      yield* facts.count("circuit-opened", 1)
      yield* eventually(healthOf("hook"), (health) => health?.circuit.state === "open")
      yield* first.stop
      const before = dead.requests.length
      yield* worker({ id: "w2" })
      yield* publishMany(50, "b")
      yield* facts.planned(100)
      const health = yield* healthOf("hook")
      assert.strictEqual(health?.circuit.state, "open")
      assert.isAbove(health?.circuit.until ?? 0, health?.circuit.since ?? 0)
      assert.match(health?.circuit.why ?? "", /3 failures in a row, the last: 503/)
      assert.isDefined(health?.giveUpAt)
      assert.strictEqual(dead.requests.length, before)
    })
  )
})

describe.concurrent("an endpoint for which nothing is to wait", () => {
  scenario("loses what comes while its circuit is open, as dead letters that say so", () =>
    Effect.gen(function* () {
      const dead = yield* failing
      const circuit = { ...quickCircuit, coolDown: "20 seconds", onOpen: "dead-letter" } as const
      yield* endpoint({
        url: dead.url,
        retry: patient,
        circuit: { ...circuit, maxCoolDown: "20 seconds" }
      })
      const facts = yield* history
      yield* worker()
      for (let n = 0; n < 3; n++) yield* publish("a")
      yield* facts.count("circuit-opened", 1)
      yield* publishMany(40, "b")
      yield* facts.count("dead-lettered", 40)
      const ends = facts.of("dead-lettered").filter(({ type }) => type === "b")
      assert.isTrue(ends.every(({ attempt, reason }) => reason === "circuit-open" && attempt === 0))
      assert.strictEqual(dead.requests.length, 3)
    })
  )
})

describe.concurrent("an endpoint that asks to be left alone", () => {
  scenario("is, as a whole: Retry-After holds for what comes after, too", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 429, headers: { "retry-after": "2" } } })
      yield* endpoint({ url: busy.url, retry: patient })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* facts.count("attempt-failed", 1)
      busy.answer({ status: 200 })
      yield* publishMany(30, "b")
      yield* facts.count("delivered", 31)
      const [asked, next] = [nth(busy.requests, 0), nth(busy.requests, 1)]
      assert.isAtLeast(next.at - asked.at, 1_950)
      yield* consistentRounds
    })
  )
})

describe.concurrent("an endpoint that a person has paused", () => {
  scenario("gets nothing until it is resumed, and then everything, a little at a time", () =>
    Effect.gen(function* () {
      const hook = yield* failing
      yield* hook.mend
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      yield* worker()
      yield* publish("before")
      yield* facts.count("delivered", 1)
      yield* pauseEndpoint(named, "maintenance", "cli")
      yield* eventually(Effect.andThen(publish("meanwhile"), backlogged), (count) => count > 0)
      const [sent, stored] = [hook.requests.length, facts.plans().length]
      yield* publishMany(80, "b")
      yield* facts.until(() => facts.plans().length >= stored + 80)
      assert.strictEqual(hook.requests.length, sent)
      hook.state.levels.length = 0
      yield* resumeEndpoint(named, "cli")
      yield* eventually(backlogged, (count) => count === 0)
      yield* consistentRounds
      assert.strictEqual(hook.state.levels[0], 1)
      assert.isAtMost(hook.state.most, 10)
    })
  )
})

describe.concurrent("what waits for an endpoint that takes nothing", () => {
  scenario("ends when its time is over, whoever is in front of it, and once", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const retry = quickRetry({ window: "4 seconds" })
      yield* endpoint({ url: hook.url, retry })
      yield* pauseEndpoint(named, undefined, "cli")
      const facts = yield* history
      yield* worker()
      yield* publishMany(300, "a")
      yield* facts.count("dead-lettered", 300)
      assert.isTrue(facts.of("dead-lettered").every(({ reason }) => reason === "deadline"))
      assert.strictEqual(hook.requests.length, 0)
      yield* consistentRounds
      yield* resumeEndpoint(named, "cli")
      yield* eventually(publish("b"), () => hook.requests.length > 0)
    })
  )
})

describe.concurrent("an endpoint with a rate", () => {
  scenario("gets no more than it says, and all of it in the end", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url, rate: { perSecond: 20, burst: 5 } })
      const facts = yield* history
      yield* worker()
      yield* publishMany(65, "a")
      yield* facts.count("delivered", 65)
      // When they were sent: a busy machine delays them on the way, and then they come together.
      const times = facts
        .of("delivered")
        .map(({ at, durationMs = 0 }) => at - durationMs)
        .sort((a, b) => a - b)
      assert.isAtLeast(nth(times, 64) - nth(times, 0), 2_900)
      for (const [index, at] of times.entries()) {
        const within = times.slice(index).filter((later) => later - at < 1_000).length
        assert.isAtMost(within, 27)
      }
    })
  )
})

describe.concurrent("an endpoint that only ever refuses", () => {
  scenario(
    "is disabled, with the reason, and what waits for it ends; enabled, it works again",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 400 } })
        yield* endpoint({ url: hook.url, circuit: { ...quickCircuit, permanentFailures: 10 } })
        const facts = yield* history
        yield* worker()
        yield* publishMany(200, "a")
        yield* facts.count("endpoint-disabled", 1)
        yield* facts.until(() => {
          const skipped = facts.plans().filter(({ plan }) => (plan?.skipped.length ?? 0) > 0)
          return facts.of("dead-lettered").length + skipped.length === 200
        })
        assert.match(
          nth(facts.of("endpoint-disabled"), 0).reason ?? "",
          /1\d permanent failures in a row/
        )
        assert.isAtMost(hook.requests.length, 60)
        hook.answer({ status: 200 })
        yield* enableEndpoint(named, "cli")
        yield* eventually(publish("b"), () => facts.of("delivered").length > 0)
        yield* consistentRounds
      })
  )
})
