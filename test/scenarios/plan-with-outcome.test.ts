import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import { plannedOtherwise } from "../../src/domain/fact.ts"
import { changeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { consistentRounds, idsForgotten, quiet } from "../kit/consistency.ts"
import { endpoint, eventually, history, publish, publishMany, worker } from "../kit/engine.ts"
import { attempts } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { tcpProxy } from "../kit/tcp-proxy.ts"
import { crashAt, endLeases, workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

const leaseTtl = 2_000

/** An endpoint of its own for what shows that the history takes facts: only then may a plan be told late. */
const makePrime = Effect.gen(function* () {
  const { url } = yield* receiver()
  yield* endpoint({ id: "prime", url, types: ["prime"] })
})

type Told = Effect.Success<typeof history>

/** Publishes what goes to one endpoint alone, once the history has taken something. */
const publishPrimed = (facts: Told) =>
  Effect.gen(function* () {
    yield* publish("prime")
    yield* facts.count("delivered", 1)
    yield* publish("a")
  })

/** A receiver that answers the first request with a status when it is told to, and takes all others. */
const lateReceiver = Effect.fnUntraced(function* (status: number) {
  const answered = yield* Deferred.make<void>()
  const late = () => Effect.runPromise(Effect.as(Deferred.await(answered), { status }))
  const hook = yield* receiver({ answer: late })
  yield* endpoint({ url: hook.url, types: ["a"] })
  yield* makePrime
  const answer = Effect.suspend(() => {
    hook.answer({ status: 200 })
    return Deferred.succeed(answered, undefined)
  })
  return { hook, answer }
})

const wantNothing = changeEndpoint("acme", "hook", (config) =>
  Effect.succeed({ ...config, types: ["other"] })
)

const isClean = Effect.gen(function* () {
  yield* quiet
  const { judgement } = yield* audit({})
  assert.strictEqual(JSON.stringify(judgement.problems.list), "[]")
})

describe.concurrent("an event whose plan is told with the end of its only delivery", () => {
  for (const [memory, topology] of [
    ["knows", {}],
    ["has forgotten", { moveDedupe: 200 }]
  ] as const)
    for (const [step, sent] of [
      ["answered", [1, 1]],
      ["outcome-stored", [1]]
    ] as const)
      scenario(
        `has one plan and one end, whose worker dies at ${step}, where the broker ${memory} what it had`,
        (place) =>
          Effect.gen(function* () {
            const hook = yield* receiver()
            yield* endpoint({ url: hook.url, types: ["a"] })
            yield* makePrime
            const facts = yield* history
            yield* crashAt(place, step, 2, {}, publishPrimed(facts))
            yield* worker({ id: "second" })
            yield* consistentRounds
            assert.deepStrictEqual(attempts(hook), [...sent])
            yield* isClean
          }),
        topology
      )

  for (const [memory, topology] of [
    ["knows", {}],
    ["has forgotten", { moveDedupe: 200 }]
  ] as const)
    scenario(
      `is audited as what it was, where its worker stood still and another planned it for nobody, and the broker ${memory} that`,
      (place) =>
        Effect.gen(function* () {
          const { answer, hook } = yield* lateReceiver(200)
          const facts = yield* history
          const first = yield* workerProcess(place, { id: "w1", leaseTtl, logLevel: "Info" })
          yield* first.delivering
          yield* publishPrimed(facts)
          yield* hook.received(1)
          const planned = facts.plans().length
          yield* first.freeze
          yield* wantNothing
          yield* worker({ id: "w2", leaseTtl })
          yield* facts.planned(planned + 1)
          yield* answer
          yield* first.resume
          yield* facts.count("delivered-late", 1)
          assert.strictEqual(facts.of("delivered-late").at(-1)?.reason, plannedOtherwise)
          yield* isClean
          assert.lengthOf(facts.plans(), planned + 1)
          assert.deepStrictEqual(attempts(hook), [1])
        }),
      topology
    )

  for (const status of [200, 503])
    scenario(
      `is planned once, where its worker was cut off for longer than the broker remembers: ${status}`,
      (place, server) =>
        Effect.gen(function* () {
          const proxy = yield* tcpProxy(server.port)
          const { answer, hook } = yield* lateReceiver(status)
          const facts = yield* history
          const url = `nats://127.0.0.1:${proxy.port}`
          const first = yield* workerProcess(
            { ...place, url, publishTimeoutMs: 200 },
            { id: "w1", leaseTtl, logLevel: "Info" }
          )
          yield* first.delivering
          yield* publishPrimed(facts)
          yield* hook.received(1)
          yield* proxy.cut
          yield* answer
          yield* wantNothing
          const planned = facts.plans().length
          yield* worker({ id: "w2", leaseTtl })
          yield* facts.planned(planned + 1)
          yield* idsForgotten
          yield* proxy.join
          // A former owner records what its receiver has taken, and nothing else.
          yield* status === 200
            ? facts.until((all) =>
                all.some(({ endpoint, kind }) => endpoint === "hook" && kind === "delivered-late")
              )
            : quiet
          yield* isClean
          assert.lengthOf(
            facts.plans().filter(({ type }) => type === "a"),
            1
          )
        }),
      { moveDedupe: 500 }
    )

  scenario(
    "is not sent while the history takes nothing, however often its worker starts",
    (place) =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url, types: ["a", "invoice.paid"] })
        const facts = yield* history
        const { config } = yield* ask("look", () => jsm.streams.info(names.history))
        const full = { ...config, max_msgs: 1, discard: "new" as const }
        yield* publish("nobody")
        const before = yield* worker({ id: "before" })
        yield* facts.planned(1)
        yield* before.stop
        yield* ask("fill", () => jsm.streams.update(names.history, full))
        yield* publishMany(40)
        for (const id of ["w1", "w2"]) {
          const process = yield* workerProcess(place, { id, leaseTtl, logLevel: "Info" })
          yield* process.says("the history takes no facts")
          yield* process.kill9
          yield* endLeases
        }
        assert.lengthOf(hook.requests, 0)
        yield* ask("make room", () => jsm.streams.update(names.history, config))
        yield* worker({ id: "w3" })
        yield* facts.count("delivered", 40)
        yield* consistentRounds
        assert.lengthOf(hook.requests, 40)
      })
  )

  scenario("is planned by itself, and once, where it lasts for longer than a second", () =>
    Effect.gen(function* () {
      const { answer, hook } = yield* lateReceiver(200)
      const facts = yield* history
      const { delivering } = yield* worker()
      yield* delivering
      yield* publishPrimed(facts)
      yield* hook.received(1)
      yield* eventually(
        Effect.sync(() =>
          facts.plans().some(({ kind, type }) => kind === "routed" && type === "a")
        ),
        (isRecorded) => isRecorded
      )
      yield* answer
      yield* facts.count("delivered", 2)
      yield* consistentRounds
      yield* isClean
    })
  )

  scenario(
    "is looked for together with all others, where their worker stood still for longer than the broker remembers",
    (place) =>
      Effect.gen(function* () {
        const { connection, names } = yield* natsClients
        const count = 60
        const gate = yield* Deferred.make<void>()
        const late = () => Effect.runPromise(Effect.as(Deferred.await(gate), { status: 200 }))
        const hook = yield* receiver({ answer: late })
        yield* endpoint({ url: hook.url, types: ["a", "many"], maxInFlight: count })
        yield* makePrime
        const facts = yield* history
        // A lease that outlives the standstill: nobody is to do it instead.
        const process = yield* workerProcess(place, { id: "w1", leaseTtl: 60_000 })
        yield* process.delivering
        yield* publish("prime")
        yield* facts.count("delivered", 1)
        yield* publishMany(count, "many")
        yield* hook.received(count)
        yield* process.freeze
        let readings = 0
        const made = connection.subscribe(
          `$JS.EVENT.ADVISORY.CONSUMER.CREATED.${names.history}.>`,
          {
            callback: () => {
              readings++
            }
          }
        )
        yield* Effect.addFinalizer(() => Effect.sync(() => made.unsubscribe()))
        yield* idsForgotten
        yield* Deferred.succeed(gate, undefined)
        yield* process.resume
        yield* facts.count("delivered", 1 + count)
        yield* consistentRounds
        assert.lengthOf(hook.requests, count)
        assert.isBelow(readings, 20)
      }),
    { moveDedupe: 1_000 }
  )
})
