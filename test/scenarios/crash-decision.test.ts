import { assert, describe } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import type { FailpointName } from "../../src/broker/failpoint.ts"
import { partitionOf } from "../../src/domain/names.ts"
import type { RetryPolicyJson } from "../../src/domain/retry-policy.ts"
import { RetryPolicy } from "../../src/domain/retry-policy.ts"
import { disableEndpoint, enableEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { changeEndpoint, removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import {
  allFacts,
  consistentRounds,
  isClean,
  noRecords,
  quiet,
  storedWatermark
} from "../kit/consistency.ts"
import {
  endpoint,
  eventually,
  history,
  nth,
  publish,
  queued,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { fewOf } from "../kit/long.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"
import { crashAt, endLeases, workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

/** Another worker takes over, brings everything to its end, and stops. */
const takeOver = Effect.gen(function* () {
  const second = yield* worker({ id: "second" })
  yield* quiet
  yield* second.stop
  yield* noRecords
})

const decodePolicy = Schema.decodeUnknownSync(RetryPolicy)

const changePolicy = (changes: Partial<RetryPolicyJson>) =>
  changeEndpoint("acme", "hook", (config) =>
    Effect.succeed({ ...config, retry: decodePolicy(quickRetry(changes)) })
  )

const disable = disableEndpoint({ tenant: "acme", endpoint: "hook" }, "a test", "test")
const remove = removeEndpoint("acme", "hook")

/** A wait so long that only somebody who looks for the delivery can end it. */
const patient: Partial<RetryPolicyJson> = {
  backoff: { kind: "fixed", delay: "1 hour" },
  window: "2 hours"
}

describe.concurrent("what a worker had decided when it died", () => {
  scenario("is done: the next attempt has its time and its number by the policy of then", (place) =>
    Effect.gen(function* () {
      const { requests, url } = yield* receiver({ answer: byAttempt(503, 200) })
      yield* endpoint({
        url,
        retry: quickRetry({ backoff: { kind: "fixed", delay: "3 seconds" } })
      })
      yield* publish("invoice.paid")
      yield* crashAt(place, "decided")
      yield* changePolicy({ maxAttempts: 1, statuses: { "503": "fail" } })
      yield* takeOver
      yield* consistentRounds
      const failed = nth(
        (yield* allFacts).filter(({ kind }) => kind === "attempt-failed"),
        0
      )
      assert.strictEqual(failed.nextAttemptAt, failed.at + 3_000)
      assert.lengthOf(requests, 2)
      assert.isAtLeast(nth(requests, 1).at, failed.at + 3_000 - 25)
    })
  )

  scenario(
    "is done once: an attempt told of long ago is not told of again",
    (place) =>
      Effect.gen(function* () {
        const { url } = yield* receiver({ answer: byAttempt(503, 200) })
        const retry = quickRetry({ backoff: { kind: "fixed", delay: "4 seconds" } })
        yield* endpoint({ url, retry })
        const facts = yield* history
        const first = yield* workerProcess(place)
        yield* publish("invoice.paid")
        yield* facts.count("attempt-failed", 1)
        yield* eventually(
          storedWatermark(partitionOf("acme", "hook", 2)),
          (floor) => floor >= facts.facts.length + facts.changes.length
        )
        yield* first.kill9
        yield* endLeases
        yield* takeOver
        const [account] = yield* consistentRounds
        assert.deepStrictEqual(account?.attempts, [1, 2])
      }),
    { ackWait: 500, moveDedupe: 200 }
  )

  for (const step of ["decided", "dead-stored"] as const)
    scenario(
      `is done: an end that was ${step} stays one, though the receiver is well again`,
      (place) =>
        Effect.gen(function* () {
          const hook = yield* receiver({ answer: { status: 400 } })
          yield* endpoint({ url: hook.url })
          yield* publish("invoice.paid")
          yield* crashAt(place, step)
          hook.answer({ status: 200 })
          yield* changePolicy({ statuses: { "400": "retry" } })
          yield* takeOver
          const [account] = yield* consistentRounds
          assert.strictEqual(account?.ends[0]?.reason, "permanent")
          assert.lengthOf(hook.requests, 1)
        })
    )

  scenario(
    "is done: an end by the receiver's answer is none by the endpoint, disabled long after",
    (place) =>
      Effect.gen(function* () {
        const { requests, url } = yield* receiver({ answer: { status: 400 } })
        yield* endpoint({ url })
        yield* publish("invoice.paid")
        yield* crashAt(place, "dead-stored")
        yield* disable
        yield* takeOver
        const [account] = yield* consistentRounds
        assert.strictEqual(account?.ends[0]?.reason, "permanent")
        assert.lengthOf(requests, 1)
      }),
    { moveDedupe: 200 }
  )

  for (const [name, maxWaiting] of [
    ["NAK", 20_000],
    ["schedule", 0]
  ] as const)
    scenario(`is told before the end that a removed endpoint brings: a retry by ${name}`, (place) =>
      Effect.gen(function* () {
        const { requests, url } = yield* receiver({ answer: { status: 503 } })
        yield* endpoint({ url, retry: quickRetry(patient) })
        yield* publish("invoice.paid")
        yield* crashAt(place, "decided", 1, { maxWaiting })
        yield* remove
        yield* takeOver
        const [account] = yield* consistentRounds
        assert.deepStrictEqual(account?.attempts, [1])
        assert.strictEqual(account?.ends[0]?.reason, "endpoint-removed")
        assert.lengthOf(requests, 1)
      })
    )
})

describe("a request that was made twice", () => {
  scenario("is told of twice: by who was frozen after it, and by who took over", (place) =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      yield* publish("invoice.paid", "{}", { "Nats-Msg-Id": "acme-1" })
      const leaseTtl = 2_000
      const frozen = yield* workerProcess(place, {
        leaseTtl,
        crash: { step: "answered", arrival: 1, signal: "SIGSTOP" }
      })
      yield* received(1)
      yield* worker({ id: "second", leaseTtl })
      yield* facts.count("delivered", 1)
      yield* frozen.resume
      yield* facts.count("delivered-late", 1)
      yield* quiet
      assert.deepStrictEqual(
        facts
          .of("delivered", "delivered-late")
          .map(({ attempt, kind, worker }) => [kind, attempt, worker]),
        [
          ["delivered", 1, "second"],
          ["delivered-late", 1, "crashing"]
        ]
      )
      assert.deepStrictEqual(
        requests.map(({ headers }) => headers["webhook-id"]),
        ["acme-1", "acme-1"]
      )
      yield* noRecords
      assert.include(yield* isClean, { delivered: 1, repeated: 1, late: 1 })
    })
  )
})

const sweeps: ReadonlyArray<readonly [step: FailpointName, arrival: number]> = [
  ["decided", 2],
  ["dead-stored", 1],
  ["end-stored", 1]
]

describe.concurrent("a delivery that waits for an endpoint", () => {
  for (const [step, arrival] of fewOf(sweeps, 1))
    scenario(`which is removed ends once, whose worker dies at ${step}`, (place) =>
      Effect.gen(function* () {
        const { requests, url } = yield* receiver({ answer: { status: 503 } })
        yield* endpoint({ url, retry: quickRetry(patient) })
        const facts = yield* history
        yield* publish("invoice.paid")
        const first = yield* workerProcess(place, { crash: { step, arrival } })
        yield* facts.count("attempt-failed", 1)
        yield* remove
        yield* first.killed
        yield* endLeases
        yield* takeOver
        const [account] = yield* consistentRounds
        assert.strictEqual(account?.ends[0]?.reason, "endpoint-removed")
        assert.lengthOf(requests, 1)
      })
    )

  for (const [step, arrival] of fewOf(sweeps, 1))
    scenario(
      `which is removed ends once, though its schedule fires while nobody is there: ${step}`,
      (place) =>
        Effect.gen(function* () {
          const { names } = yield* Broker
          const { requests, url } = yield* receiver({ answer: { status: 503 } })
          const partition = partitionOf("acme", "hook", 2)
          const backoff = { kind: "fixed", delay: "4 seconds" } as const
          yield* endpoint({ url, retry: quickRetry({ backoff }) })
          const facts = yield* history
          yield* publish("invoice.paid")
          const first = yield* workerProcess(place, { maxWaiting: 0, crash: { step, arrival } })
          yield* facts.count("attempt-failed", 1)
          yield* eventually(
            queued(partition, names.subjects.schedulesOf(partition)),
            (all) => all.length > 0
          )
          yield* remove
          yield* first.killed
          yield* eventually(
            queued(partition, names.subjects.deliveriesOf(partition)),
            (all) => all.length > 0
          )
          yield* endLeases
          yield* takeOver
          const [account] = yield* consistentRounds
          assert.strictEqual(account?.ends[0]?.reason, "endpoint-removed")
          assert.lengthOf(requests, 1)
        })
    )

  scenario("which was disabled ends, and stays ended when it is enabled again", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({ url: hook.url, retry: quickRetry(patient) })
      const facts = yield* history
      yield* publish("invoice.paid")
      const first = yield* workerProcess(place, { crash: { step: "end-stored", arrival: 1 } })
      yield* facts.count("attempt-failed", 1)
      yield* disable
      yield* first.killed
      yield* endLeases
      hook.answer({ status: 200 })
      yield* enableEndpoint({ tenant: "acme", endpoint: "hook" }, "test")
      yield* takeOver
      const [account] = yield* consistentRounds
      assert.strictEqual(account?.ends[0]?.reason, "endpoint-disabled")
      assert.lengthOf(hook.requests, 1)
    })
  )
})
