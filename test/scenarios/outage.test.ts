import { assert, describe } from "@effect/vitest"
import type { StreamConfig } from "@nats-io/jetstream"
import { DiscardPolicy } from "@nats-io/jetstream"
import { Clock, Deferred, Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import {
  deadLetters,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishMany,
  quickRetry,
  waitingMessages,
  worker,
  workersApart
} from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import type { Script } from "../kit/receiver.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { byAttempt, onServer, outage } from "../kit/scenario.ts"

type Log = ReturnType<typeof makeLog>

/** A receiver whose answers wait until `open` has run. */
const held = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  const made = yield* receiver({
    answer: () => Effect.runPromise(Effect.as(Deferred.await(gate), {}))
  })
  return { ...made, open: Deferred.succeed(gate, undefined) }
})

const changeStream = (name: string, changes: Partial<StreamConfig>) =>
  Effect.gen(function* () {
    const { ask, jsm } = yield* natsClients
    const { config } = yield* ask("look", () => jsm.streams.info(name))
    yield* ask("change", () => jsm.streams.update(name, { ...config, ...changes }))
  })

/** Makes a stream full, until the returned effect has run. */
const fill = (name: string) =>
  Effect.gen(function* () {
    const { ask, jsm } = yield* natsClients
    const { config } = yield* ask("look", () => jsm.streams.info(name))
    yield* changeStream(name, { max_bytes: 1, discard: DiscardPolicy.New })
    return changeStream(name, { max_bytes: config.max_bytes, discard: config.discard })
  })

const logged = (log: Log, text: string) =>
  eventually(
    Effect.sync(() => log.count(text)),
    (count) => count > 0
  )

/** Warnings and errors by what they say, with how often. */
const complaints = ({ lines }: Log) => {
  const counts: Record<string, number> = {}
  for (const { level, text } of lines) if (level !== "Info") counts[text] = (counts[text] ?? 0) + 1
  return counts
}

const slowly: Script = () => latency(20)

describe.concurrent("while the broker is gone", () => {
  outage("a worker says so once, waits for it, and loses nothing", (_, server, log) =>
    Effect.gen(function* () {
      const slow = yield* receiver({ answer: slowly })
      const fails = yield* receiver({ answer: byAttempt(500, 500, 200) })
      yield* endpoint({ id: "slow", url: slow.url, maxInFlight: 2 })
      yield* endpoint({ id: "fails", url: fails.url })
      const facts = yield* history
      yield* worker()
      yield* publishMany(30, "before")
      yield* slow.received(5)
      yield* Effect.promise(() => server.kill9())
      yield* logged(log, "the broker is gone")
      yield* logged(log, "the history takes no facts")
      yield* Effect.promise(() => server.restart())
      yield* logged(log, "the broker is back")
      yield* publishMany(10, "after")
      yield* facts.count("delivered", 80)
      yield* eventually(waitingMessages, (count) => count === 0)
      for (const id of ["slow", "fails"]) {
        const ends = facts.of("delivered").filter((fact) => fact.endpoint === id)
        assert.strictEqual(new Set(ends.map(({ event }) => event)).size, 40)
        assert.strictEqual(ends.length, 40)
      }
      assert.deepStrictEqual(facts.of("dead-lettered"), [])
      assert.strictEqual(log.count("the broker is gone"), 1)
      assert.strictEqual(log.count("the broker is back"), 1)
      assert.deepStrictEqual(
        Object.entries(complaints(log)).filter(([, count]) => count > 1),
        []
      )
    })
  )

  outage("a worker that only hears nothing from it sends nothing twice", (_, server, log) =>
    Effect.gen(function* () {
      const slow = yield* receiver({ answer: slowly })
      yield* endpoint({ url: slow.url, maxInFlight: 2 })
      const facts = yield* history
      yield* worker()
      yield* publishMany(40, "e")
      yield* slow.received(5)
      server.pause()
      yield* logged(log, "the history takes no facts")
      const before = slow.requests.length
      // That nothing is sent has no event: without the outage 2 were sent every 20 ms.
      yield* Effect.sleep("1500 millis")
      assert.strictEqual(slow.requests.length, before)
      server.resume()
      yield* facts.count("delivered", 40)
      yield* eventually(waitingMessages, (count) => count === 0)
      assert.strictEqual(slow.requests.length, 40)
      assert.strictEqual(facts.of("delivered").length, 40)
      assert.strictEqual(log.count("the history takes no facts"), 1)
      assert.strictEqual(log.count("the history takes facts again"), 1)
    })
  )
})

describe.concurrent("while the broker is there", () => {
  const { scenario } = onServer()

  scenario("but its history is full, little is sent beyond what was in flight", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const slow = yield* held
      const other = yield* held
      yield* endpoint({ id: "many", url: slow.url, maxInFlight: 5 })
      yield* endpoint({
        id: "brief",
        url: other.url,
        maxInFlight: 1,
        types: ["brief"],
        retry: quickRetry({ window: "3 seconds" })
      })
      const facts = yield* history
      const log = makeLog()
      yield* Effect.provide(worker(), log.layer)
      for (let event = 0; event < 2; event++) yield* publish("brief")
      yield* publishMany(28, "e")
      yield* facts.planned(30)
      yield* slow.received(5)
      yield* other.received(1)
      const takesAgain = yield* fill(names.history)
      yield* slow.open
      yield* other.open
      yield* logged(log, "the history takes no facts")
      const deadline = Math.max(
        ...facts
          .plans()
          .flatMap(({ plan }) => plan?.endpoints ?? [])
          .flatMap(({ deadline, id }) => (id === "brief" ? [deadline] : []))
      )
      yield* eventually(Clock.currentTimeMillis, (now) => now > deadline)
      // Each success lets one more begin, until the first refusal is known.
      assert.isAtMost(slow.requests.length, 10)
      assert.strictEqual(other.requests.length, 1)
      yield* takesAgain
      yield* facts.count("delivered", 31)
      yield* facts.count("dead-lettered", 1)
      assert.strictEqual(slow.requests.length, 30)
      assert.strictEqual(other.requests.length, 1)
      assert.deepInclude(nth(facts.of("dead-lettered"), 0), {
        endpoint: "brief",
        reason: "deadline",
        attempt: 0
      })
      assert.strictEqual(log.count("the history takes no facts"), 1)
      assert.strictEqual(log.count("the history takes facts again"), 1)
    })
  )

  scenario("but takes no dead letters, what has ended waits, and is not sent again", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const refusing = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ url: refusing.url })
      const facts = yield* history
      const takesAgain = yield* fill(names.dead)
      const log = makeLog()
      yield* Effect.provide(worker(), log.layer)
      yield* publishMany(3, "e")
      yield* facts.count("attempt-failed", 3)
      yield* logged(log, "the dead-letter stream takes nothing")
      yield* eventually(waitingMessages, (count) => count === 3)
      yield* takesAgain
      yield* facts.count("dead-lettered", 3)
      yield* eventually(waitingMessages, (count) => count === 0)
      assert.strictEqual((yield* deadLetters).length, 3)
      assert.strictEqual(refusing.requests.length, 3)
      assert.deepStrictEqual(
        facts.of("dead-lettered").map(({ attempt, reason }) => [attempt, reason]),
        [1, 2, 3].map(() => [1, "permanent"])
      )
      assert.strictEqual(log.count("the dead-letter stream takes nothing"), 1)
      assert.strictEqual(log.count("the dead-letter stream takes dead letters again"), 1)
    })
  )

  scenario("but takes no retry records, nothing new is sent, and the retry is made later", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const failing = yield* receiver({ answer: byAttempt(500, 200) })
      const healthy = yield* receiver()
      yield* endpoint({ id: "failing", url: failing.url, types: ["fails"] })
      yield* endpoint({ id: "healthy", url: healthy.url, types: ["works"] })
      const facts = yield* history
      const log = makeLog()
      yield* Effect.provide(workersApart(), log.layer)
      yield* publish("works")
      yield* facts.count("delivered", 1)
      const takesAgain = yield* fill(`KV_${names.buckets.retries}`)
      yield* publish("fails")
      yield* logged(log, "the broker takes no retry records")
      yield* publish("works")
      yield* facts.planned(3)
      let tries = 0
      connection.subscribe(`$KV.${names.buckets.retries}.>`, { callback: () => void tries++ })
      yield* eventually(
        Effect.sync(() => tries),
        (count) => count >= 3
      )
      assert.strictEqual(failing.requests.length, 1)
      assert.strictEqual(healthy.requests.length, 1)
      yield* takesAgain
      yield* facts.count("delivered", 3)
      assert.deepStrictEqual(
        failing.requests.map(({ headers }) => headers["petrel-attempt"]),
        ["1", "2"]
      )
      assert.strictEqual(facts.of("attempt-failed").length, 1)
      assert.strictEqual(log.count("the broker takes no retry records"), 1)
      assert.strictEqual(log.count("the broker takes retry records again"), 1)
    })
  )

  scenario("but takes no deliveries, events wait", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const { requests, url } = yield* receiver()
      yield* endpoint({ id: "one", url })
      yield* endpoint({ id: "two", url })
      const facts = yield* history
      const log = makeLog()
      yield* Effect.provide(workersApart(), log.layer)
      yield* Effect.forEach([0, 1], (index) =>
        changeStream(names.deliveries(index), { max_msg_size: 1 })
      )
      // What was plainly refused is stored nowhere: nobody looks for it, again and again.
      const searches: Array<string> = []
      connection.subscribe(`$JS.API.STREAM.MSG.GET.${names.history}`, {
        callback: (_, { subject }) => void searches.push(subject)
      })
      yield* publishMany(10, "e")
      yield* logged(log, "the broker takes no deliveries")
      yield* facts.planned(10)
      assert.strictEqual(requests.length, 0)
      yield* Effect.forEach([0, 1], (index) =>
        changeStream(names.deliveries(index), { max_msg_size: -1 })
      )
      yield* facts.count("delivered", 20)
      yield* logged(log, "the broker takes deliveries again")
      assert.strictEqual(facts.plans().length, 10)
      assert.strictEqual(requests.length, 20)
      assert.isAtMost(searches.length, 2)
      assert.strictEqual(log.count("the broker takes no deliveries"), 1)
      assert.strictEqual(log.count("the broker takes deliveries again"), 1)
    })
  )
})
