import { assert, describe } from "@effect/vitest"
import { Clock, Deferred, Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { enableEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { consistentRounds, noRecords } from "../kit/consistency.ts"
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
import { disable } from "../kit/live-endpoints.ts"
import { about, assertNoneTooEarly, attempts, reasons } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { scenario } = onServer()

const partition = partitionOf("acme", "hook", 2)
const enable = enableEndpoint({ tenant: "acme", endpoint: "hook" }, "cli")

/** An endpoint of which a delivery waits as a schedule, after one attempt, for so many seconds. */
const waiting = Effect.fnUntraced(function* (seconds: number) {
  const hook = yield* receiver({ answer: byAttempt(503, 200) })
  const retry = quickRetry({ backoff: { kind: "fixed", delay: `${seconds} seconds` } })
  yield* endpoint({ url: hook.url, types: ["a"], retry })
  const facts = yield* history
  return { hook, facts }
})

/** How many deliveries wait as schedules. */
const schedules = Effect.gen(function* () {
  const { names } = yield* Broker
  return (yield* queued(partition, names.subjects.schedulesOf(partition))).length
})

/** Keeps the broker from handing out deliveries; gives what ends that. */
const handOutNothing = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const stream = names.deliveries(partition)
  const until = new Date((yield* Clock.currentTimeMillis) + 60_000)
  yield* ask("pause", () => jsm.consumers.pause(stream, names.deliverConsumer, until))
  return ask("resume", () => jsm.consumers.resume(stream, names.deliverConsumer))
})

/** Holds back, once it is told to, what is published on subjects that begin so. */
class HeldPublish {
  held: ReadonlyArray<string> = []
  readonly asked = Deferred.makeUnsafe<void>()
  readonly gate = Deferred.makeUnsafe<void>()
  readonly through = Deferred.makeUnsafe<void>()
  readonly #broker: Broker["Service"]

  constructor(broker: Broker["Service"]) {
    this.#broker = broker
  }

  readonly publish: Broker["Service"]["publish"] = (subject, ...rest) => {
    const publication = this.#broker.publish(subject, ...rest)
    if (!this.held.some((head) => subject.startsWith(head))) return publication
    return Deferred.succeed(this.asked, undefined).pipe(
      Effect.andThen(Deferred.await(this.gate)),
      Effect.andThen(publication),
      Effect.ensuring(Deferred.succeed(this.through, undefined))
    )
  }
}

describe.concurrent("a schedule whose endpoint is disabled", () => {
  scenario("is made to fire, and keeps to its time if the endpoint is enabled again at once", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* waiting(6)
      const { url } = yield* receiver()
      yield* worker({ maxWaiting: 0 })
      yield* publish("a")
      yield* facts.count("attempt-failed", 1)
      yield* eventually(schedules, (count) => count === 1)
      const handOut = yield* handOutNothing
      yield* disable("hook")
      yield* eventually(schedules, (count) => count === 0)
      yield* enable
      // All changes are seen in their order.
      yield* endpoint({ id: "later", url, types: ["b"] })
      yield* eventually(publish("b"), () =>
        facts.plans().some(({ plan }) => plan?.endpoints.some(({ id }) => id === "later"))
      )
      yield* handOut
      const failed = facts.of("attempt-failed")
      assert.isBelow(yield* Clock.currentTimeMillis, (nth(failed, 0).nextAttemptAt ?? 0) - 1_000)
      yield* consistentRounds
      yield* noRecords
      assert.deepStrictEqual(reasons(about(facts.facts, "hook")), [
        ["attempt-failed", 1, undefined],
        ["endpoint-disabled", undefined, "asked to"],
        ["endpoint-enabled", undefined, undefined],
        ["delivered", 2, undefined]
      ])
      assert.deepStrictEqual(attempts(hook), [1, 2])
      assertNoneTooEarly(hook, failed)
    })
  )

  for (const [name, isEnabled] of [
    ["stays disabled", false],
    ["is enabled again", true]
  ] as const)
    scenario(`and which fires by itself just then ends once, where the endpoint ${name}`, () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const { facts, hook } = yield* waiting(3)
        const publisher = new HeldPublish(broker)
        const altered = yield* alteredBroker(() => ({ publish: publisher.publish }))
        yield* Effect.provideService(worker({ maxWaiting: 0 }), Broker, altered)
        yield* publish("a")
        yield* facts.count("attempt-failed", 1)
        yield* eventually(schedules, (count) => count === 1)
        const { dead, schedule } = broker.names.subjects
        publisher.held = [schedule(partition, ""), dead("acme", "hook")]
        yield* disable("hook")
        yield* Deferred.await(publisher.asked)
        if (isEnabled) yield* enable
        yield* eventually(schedules, (count) => count === 0)
        yield* Deferred.succeed(publisher.gate, undefined)
        yield* Deferred.await(publisher.through)
        yield* consistentRounds
        yield* noRecords
        assert.deepStrictEqual(attempts(hook), isEnabled ? [1, 2] : [1])
        assertNoneTooEarly(hook, isEnabled ? facts.of("attempt-failed") : [])
      })
    )
})
