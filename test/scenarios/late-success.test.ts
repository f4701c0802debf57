import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { isSuccess } from "../../src/domain/fact.ts"
import { readLateDeliveries } from "../../src/history/late-deliveries.ts"
import type { Role } from "../../src/worker/worker.ts"
import { bury } from "../cli/commands/dead/dead-letters.ts"
import { allFacts, isClean, quiet } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import type { TestServer } from "../kit/nats-server.ts"
import { attempts } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, refusingRepeats } from "../kit/scenario.ts"
import { tcpProxy } from "../kit/tcp-proxy.ts"
import { workerProcess } from "../kit/worker-process.ts"
import { lettersOf, sendAgain } from "./redelivering.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const { longScenario, scenario } = onServer()

const leaseTtl = 2_000

/** A worker whose way to the broker can be cut off, owner of all until then. */
const cutOffWorker = (place: Installation, server: TestServer, roles: ReadonlyArray<Role>) =>
  Effect.gen(function* () {
    const proxy = yield* tcpProxy(server.port)
    const url = `nats://127.0.0.1:${proxy.port}`
    const there = { ...place, url, publishTimeoutMs: 200 }
    const { delivering } = yield* workerProcess(there, { id: "w1", leaseTtl, roles })
    yield* delivering
    return proxy
  })

/** A receiver that answers the first request with 200 when it is told to, and refuses its repeat. */
const onceOnly = Effect.gen(function* () {
  const answered = yield* Deferred.make<void>()
  let requests = 0
  const hook = yield* receiver({
    answer: async () => {
      if (requests++ > 0) return { status: 409 }
      await Effect.runPromise(Deferred.await(answered))
      return { status: 200 }
    }
  })
  yield* endpoint({ url: hook.url, types: ["a"] })
  return { hook, answer: Deferred.succeed(answered, undefined) }
})

const isOutcome = ({ endpoint, kind }: Fact) =>
  endpoint === "hook" && (isSuccess(kind) || kind === "dead-lettered" || kind === "attempt-failed")

/** One delivery, ended by both workers, which the receiver has taken once. */
const isResolved = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  yield* quiet
  const [letter, ...others] = yield* lettersOf()
  assert.lengthOf(others, 0)
  assert.strictEqual(letter?.reason, "permanent")
  const late = yield* readLateDeliveries({})
  assert.strictEqual(letter === undefined ? undefined : late(letter.delivery)?.worker, "w1")
  const { deadLettered, delivered, late: counted } = yield* isClean
  const hooks = (yield* allFacts).filter(({ kind }) => isSuccess(kind))
  assert.deepStrictEqual(
    [delivered, deadLettered, counted],
    [new Set(hooks.map(({ eventSeq }) => eventSeq)).size, 0, 1]
  )
  assert.deepStrictEqual(yield* sendAgain(), {
    ...{ begun: 0, finished: 0, before: 0, gone: 0 },
    ...{ unfit: 0, late: 1 }
  })
  // What is resolved may be gone, and may have been stored without a fact.
  const { eventAt = 0, eventSeq = 0 } = letter?.delivery ?? {}
  yield* ask("remove", () => jsm.streams.deleteMessage(names.dead, letter?.id ?? 0))
  yield* bury({ endpoint: "hook", event: "a", reason: "permanent", eventSeq, eventAt })
  yield* isClean
})

/** `npm test` tells one story of each kind. */
const tellOf = (isTold: boolean) => (isTold ? scenario : longScenario)

const routes: Role = "router"
const delivers: Role = "deliver"

for (const moment of ["before", "after"] as const)
  describe.concurrent(`a success that comes ${moment} another worker has ended the delivery, to one that was cut off`, () => {
    for (const [origin, roles, isPrimed] of [
      ["its queue", [delivers], false],
      ["its event", [routes, delivers], false],
      ["its event, with its plan", [routes, delivers], true]
    ] as const)
      tellOf(moment === "after" || isPrimed)(
        `is late, and resolves the dead letter: ${origin}`,
        (place, server) =>
          Effect.gen(function* () {
            const { answer, hook } = yield* onceOnly
            const prime = yield* receiver()
            yield* endpoint({ id: "prime", url: prime.url, types: ["prime"] })
            const facts = yield* history
            if (origin === "its queue") yield* worker({ id: "routes", roles: [routes] })
            const proxy = yield* cutOffWorker(place, server, roles)
            if (isPrimed) {
              yield* publish("prime")
              yield* facts.count("delivered", 1)
            }
            yield* publish("a")
            yield* hook.received(1)
            yield* proxy.cut
            if (moment === "before") yield* answer
            yield* worker({ id: "w2", leaseTtl, roles })
            yield* facts.count("dead-lettered", 1)
            yield* answer
            yield* proxy.join
            yield* facts.until((all) =>
              all.some((fact) => isSuccess(fact.kind) && fact.endpoint === "hook")
            )
            assert.deepStrictEqual(
              facts.facts
                .filter(isOutcome)
                .map(({ attempt, kind, plan, worker }) => [...[kind, attempt, worker, plan]]),
              [
                ["attempt-failed", 1, "w2", undefined],
                ["dead-lettered", 1, "w2", undefined],
                ["delivered-late", 1, "w1", undefined]
              ]
            )
            yield* isResolved
            assert.deepStrictEqual(attempts(hook), [1, 1])
          })
      )
  })

describe.concurrent("a success of a worker that stood still until another had ended the delivery", () => {
  for (const [origin, roles] of [
    ["its queue", [delivers]],
    ["its event", [routes, delivers]]
  ] as const)
    scenario(`is late, and resolves the dead letter: ${origin}`, (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: refusingRepeats({}) })
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        if (origin === "its queue") yield* worker({ id: "routes", roles: [routes] })
        const first = yield* workerProcess(place, {
          ...{ id: "w1", leaseTtl, roles },
          crash: { step: "answered", arrival: 1, signal: "SIGSTOP" }
        })
        yield* first.delivering
        yield* publish("a")
        yield* hook.received(1)
        yield* worker({ id: "w2", leaseTtl, roles })
        yield* facts.count("dead-lettered", 1)
        yield* first.resume
        yield* facts.count("delivered-late", 1)
        yield* isResolved
        assert.deepStrictEqual(attempts(hook), [1, 1])
      })
    )
})

describe.concurrent("a success that a connection keeps back until another worker has ended the delivery", () => {
  scenario("is told of again, as a late one", (place, server) =>
    Effect.gen(function* () {
      const { answer, hook } = yield* onceOnly
      const facts = yield* history
      yield* worker({ id: "routes", roles: [routes] })
      const proxy = yield* cutOffWorker(place, server, [delivers])
      yield* publish("a")
      yield* hook.received(1)
      yield* proxy.hold
      yield* answer
      yield* worker({ id: "w2", leaseTtl, roles: [delivers] })
      yield* facts.count("dead-lettered", 1)
      yield* proxy.release
      yield* facts.count("delivered-late", 1)
      assert.deepStrictEqual(
        facts.facts.filter(isOutcome).map(({ kind, worker }) => [kind, worker]),
        [
          ["attempt-failed", "w2"],
          ["dead-lettered", "w2"],
          ["delivered", "w1"],
          ["delivered-late", "w1"]
        ]
      )
      yield* isResolved
      assert.deepStrictEqual(attempts(hook), [1, 1])
    })
  )
})
