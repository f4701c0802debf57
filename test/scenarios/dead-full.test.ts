import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { BrokerError } from "../../src/broker/broker-error.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { sweepSchedules } from "../../src/delivery/sweep/sweep.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { Directory } from "../../src/endpoints/directory.ts"
import { resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { pauseEndpoint } from "../../src/operations/endpoints/change-state.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import { directoryOf, makeMemory } from "../delivery/made-deliveries.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { consistentRounds, isClean } from "../kit/consistency.ts"
import {
  backlogged,
  closedCircuit,
  deadLetters,
  endpoint,
  eventually,
  history,
  publish,
  publishMany,
  publishTo,
  queued,
  quickRetry,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

/** Lets the stream of dead letters take so many bytes. */
const resize = Effect.fnUntraced(function* (max_bytes: number) {
  const { ask, jsm, names } = yield* natsClients
  yield* ask("resize the dead letters", () => jsm.streams.update(names.dead, { max_bytes }))
})

/** Bytes of dead letters that no story reaches. */
const ample = 64 * 1024 * 1024

/** How many deliveries have ended and wait for space among the dead letters. */
const ended = Effect.gen(function* () {
  const { names } = yield* Broker
  const found = yield* Effect.forEach([0, 1], (partition) =>
    queued(partition, names.subjects.schedule(partition, "ended.>"))
  )
  return found.flat().length
})

/** Messages that the consumers of both queues have handed out and that are not acknowledged. */
const unacknowledged = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const infos = yield* Effect.forEach([0, 1], (index) =>
    ask("look", () => jsm.consumers.info(names.deliveries(index), names.deliverConsumer))
  )
  return infos.reduce((sum, info) => sum + info.num_ack_pending + info.num_pending, 0)
})

/** An endpoint that fails for good is disabled else. */
const circuit = { ...closedCircuit, permanentFailures: 10_000 }
const count = 300
const body = 2_048

/** An endpoint of acme that takes nothing for good, and one that does not, in the same partition. */
const endpoints = Effect.gen(function* () {
  const ids = ["a", "b", "c", "d", "e", "f"]
  const good = ids.find((id) => partitionOf("acme", id, 2) === partitionOf("acme", "bad", 2)) ?? ""
  const bad = yield* receiver({ answer: { status: 400 } })
  const well = yield* receiver({ answer: byAttempt(503, 200) })
  yield* endpoint({ id: "bad", url: bad.url, types: ["bad"], circuit })
  yield* endpoint({ id: good, url: well.url, types: ["good"] })
  return { bad, well }
})

/** Asserts that a sweep of removed endpoints leaves alone what waits for space. */
const isLeftBySweeps = Effect.gen(function* () {
  const { names } = yield* Broker
  const stored = Effect.forEach([0, 1], (partition) =>
    queued(partition, names.subjects.schedulesOf(partition))
  )
  const before = yield* stored
  const removed = directoryOf({ standing: () => Effect.succeed({ _tag: "Removed" }) })
  const swept = yield* Effect.forEach([0, 1], (index) =>
    sweepSchedules({ ...makeMemory(), index, stream: names.deliveries(index) }, () =>
      Effect.die("ends nothing")
    )
  ).pipe(Effect.provideService(Directory, removed))
  assert.deepStrictEqual(
    swept.map(({ size }) => size),
    [0, 0]
  )
  const sequences = (found: typeof before) => found.map((each) => each.map(({ seq }) => seq))
  assert.deepStrictEqual(sequences(yield* stored), sequences(before))
})

describe.concurrent("while there is no space among the dead letters", () => {
  scenario("what has ended takes up no place, and all of it goes when there is space", () =>
    Effect.gen(function* () {
      const { bad, well } = yield* endpoints
      const facts = yield* history
      yield* resize(20_000)
      yield* worker()
      yield* publishMany(count, "bad", body)
      yield* bad.received(count)
      yield* eventually(
        Effect.all([ended, unacknowledged]),
        ([waiting, held]) => waiting + facts.of("dead-lettered").length === count && held === 0
      )
      assert.isAbove(yield* ended, count - 20)
      // A retry beside them is made as always.
      yield* publish("good")
      yield* well.received(2)
      yield* facts.count("delivered", 1)
      yield* resize(ample)
      yield* facts.count("dead-lettered", count)
      assert.lengthOf(yield* deadLetters, count)
      assert.lengthOf(bad.requests, count)
      yield* consistentRounds
      assert.deepInclude(yield* isClean, { deadLettered: count, delivered: 1, missing: 0 })
    })
  )

  scenario("or facts by a limit on messages of an operator's own, the status says it", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const { bad } = yield* endpoints
      const facts = yield* history
      const limit = (stream: string, max_msgs: number) =>
        ask("limit", () => jsm.streams.update(stream, { max_msgs }))
      yield* limit(names.dead, 2)
      yield* worker()
      yield* publishMany(6, "bad")
      yield* bad.received(6)
      yield* eventually(ended, (waiting) => waiting === 4)
      const { problems } = yield* readStatus
      assert.include(
        problems.find(({ code }) => code === "dead-letters-full")?.text,
        `${names.dead} holds as many dead letters as a limit that was set with another tool allows (max_msgs, 2)`
      )
      yield* limit(names.dead, -1)
      yield* facts.count("dead-lettered", 6)
      yield* isClean
      assert.notInclude((yield* readStatus).problems.map(({ code }) => code).join(), "full")

      yield* limit(names.history, 3)
      const { notices } = yield* readStatus
      assert.include(
        notices.find(({ code }) => code === "history-full")?.text,
        "raise the limit on its messages (max_msgs, 3), which was set with another tool"
      )
    })
  )

  scenario("what has ended goes on waiting when its worker dies, and ends once", (place) =>
    Effect.gen(function* () {
      const { bad } = yield* endpoints
      const facts = yield* history
      yield* resize(20_000)
      const first = yield* workerProcess(place, { leaseTtl: 2_000 })
      yield* publishMany(count, "bad", body)
      yield* bad.received(count)
      yield* eventually(ended, (waiting) => waiting > count / 2)
      yield* first.kill9
      yield* worker({ leaseTtl: 2_000 })
      yield* eventually(ended, (waiting) => waiting + facts.of("dead-lettered").length === count)
      yield* resize(ample)
      yield* facts.count("dead-lettered", count)
      yield* consistentRounds
      assert.lengthOf(yield* deadLetters, count)
      assert.deepInclude(yield* isClean, { deadLettered: count, missing: 0 })
    })
  )

  scenario(
    "what was never attempted in its time waits like the rest",
    () =>
      Effect.gen(function* () {
        const { requests, url } = yield* receiver()
        yield* endpoint({ url, retry: quickRetry({ window: "1 millis" }) })
        const facts = yield* history
        yield* resize(1)
        yield* worker({ id: "routes", roles: ["router"] })
        yield* publishMany(10, "invoice.paid", body)
        yield* eventually(waitingMessages, (waiting) => waiting === 10)
        yield* worker({ roles: ["deliver"] })
        yield* eventually(
          Effect.all([ended, unacknowledged]),
          ([waiting, held]) => waiting === 10 && held === 0
        )
        yield* isLeftBySweeps
        yield* resize(ample)
        yield* facts.count("dead-lettered", 10)
        yield* consistentRounds
        assert.lengthOf(requests, 0)
        assert.deepInclude(yield* isClean, { deadLettered: 10, missing: 0 })
      }),
    // It comes back before its end would be forgotten.
    { ackWait: 10_000 }
  )

  scenario(
    "what went to the backlog at once and was never attempted waits like the rest",
    () =>
      Effect.gen(function* () {
        const { requests, url } = yield* receiver()
        yield* endpoint({ url, retry: quickRetry({ window: "1 second" }) })
        const facts = yield* history
        yield* resize(1)
        yield* pauseEndpoint({ tenant: "acme", id: "hook" }, {}, "test")
        yield* worker()
        yield* publishMany(10, "invoice.paid", body)
        yield* eventually(
          Effect.all([ended, unacknowledged]),
          ([waiting, held]) => waiting === 10 && held === 0
        )
        yield* resize(ample)
        yield* facts.count("dead-lettered", 10)
        yield* consistentRounds
        assert.lengthOf(requests, 0)
        assert.deepInclude(yield* isClean, { deadLettered: 10, missing: 0 })
      }),
    // It is woken before it would be forgotten that it needed no queue.
    { ackWait: 20_000 }
  )

  scenario("more of a backlog ends than its window holds, and what follows is delivered", () =>
    Effect.gen(function* () {
      const last = "acme-last"
      const hook = yield* receiver({
        answer: ({ headers }) => ({ status: headers["webhook-id"] === last ? 200 : 400 })
      })
      yield* endpoint({ url: hook.url, circuit })
      yield* pauseEndpoint({ tenant: "acme", id: "hook" }, {}, "test")
      const facts = yield* history
      yield* resize(1)
      yield* worker()
      yield* publishMany(count)
      yield* eventually(backlogged, (waiting) => waiting === count)
      yield* publish("invoice.paid", "{}", { "Nats-Msg-Id": last })
      yield* eventually(backlogged, (waiting) => waiting === count + 1)
      yield* resumeEndpoint({ tenant: "acme", endpoint: "hook" }, "test")
      // All that ended before it waits for space, and none of that in the window of 256.
      yield* facts.count("delivered", 1)
      yield* eventually(
        Effect.all([ended, unacknowledged, backlogged]),
        ([waiting, held, left]) => waiting === count && held === 0 && left === 0
      )
      yield* resize(ample)
      yield* facts.count("dead-lettered", count)
      assert.lengthOf(hook.requests, count + 1)
      yield* consistentRounds
      assert.deepInclude(yield* isClean, { deadLettered: count, delivered: 1, missing: 0 })
    })
  )

  scenario("one tenant leaves the others their part", () =>
    Effect.gen(function* () {
      const bad = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ id: "bad", url: bad.url, types: ["bad"], circuit })
      yield* endpoint({ tenant: "globex", id: "bad", url: bad.url, types: ["bad"], circuit })
      const facts = yield* history
      yield* resize(200_000)
      yield* worker()
      yield* publishTo("globex.bad", "x".repeat(body))
      yield* facts.count("dead-lettered", 1)
      yield* publishMany(count, "bad", body)
      yield* bad.received(count + 1)
      yield* eventually(
        Effect.all([ended, unacknowledged]),
        ([waiting, held]) => waiting + facts.of("dead-lettered").length === count + 1 && held === 0
      )
      const had = facts.of("dead-lettered").length
      // Far from full, though so many wait.
      yield* publishTo("globex.bad", "x".repeat(body))
      yield* facts.count("dead-lettered", had + 1)
      assert.lengthOf(
        facts.of("dead-lettered").filter(({ tenant }) => tenant === "globex"),
        2
      )
      yield* resize(ample)
      yield* facts.count("dead-lettered", count + 2)
      assert.deepInclude(yield* isClean, { deadLettered: count + 2, missing: 0 })
    })
  )
})

/** What an owner's scans and moves of ended deliveries use, so that a story can get in their way. */
interface InTheWay {
  /** Runs before an ended delivery's schedule is stored. */
  readonly beforeSchedule?: Effect.Effect<void>
  /** Runs before each read of the schedules of ended deliveries. */
  readonly beforeRead?: Effect.Effect<void, BrokerError>
  /** Maximum schedules that one read of them returns. */
  readonly batch?: number
}

/** Starts a worker whose broker is slow, or fails, where the story says so. */
const hinderedWorker = Effect.fnUntraced(function* ({ batch, ...hindered }: InTheWay) {
  const { names } = yield* Broker
  const spaces: Array<number> = []
  const isEnded = (subject: string) => subject.includes(".ended.")
  const altered = yield* alteredBroker((broker) => ({
    batch: (stream, subject, seq, limits) =>
      isEnded(subject)
        ? Effect.andThen(
            hindered.beforeRead ?? Effect.void,
            broker.batch(stream, subject, seq, { ...limits, batch: batch ?? limits.batch })
          )
        : broker.batch(stream, subject, seq, limits),
    publish: (subject, ...rest) =>
      isEnded(subject)
        ? Effect.andThen(hindered.beforeSchedule ?? Effect.void, broker.publish(subject, ...rest))
        : broker.publish(subject, ...rest),
    streamInfo: (operation, stream, options) =>
      Effect.tap(broker.streamInfo(operation, stream, options), ({ config }) =>
        Effect.sync(() => {
          if (stream === names.dead) spaces.push(config.max_bytes)
        })
      )
  }))
  yield* Effect.provideService(worker(), Broker, altered)
  return {
    /** Waits until the worker has read `count` times from now on that DEAD takes so many bytes. */
    reads: (bytes: number, count: number) =>
      Effect.suspend(() => {
        const before = spaces.length
        return eventually(
          Effect.sync(() => spaces.slice(before).filter((size) => size === bytes).length),
          (times) => times >= count
        )
      })
  }
})

describe.concurrent("what waits for space among the dead letters goes there once there is some", () => {
  scenario("where it began to wait after the space was noticed", () =>
    Effect.gen(function* () {
      yield* endpoints
      const facts = yield* history
      yield* resize(1)
      const refused = yield* Deferred.make<void>()
      const letGo = yield* Deferred.make<void>()
      const { reads } = yield* hinderedWorker({
        beforeSchedule: Effect.andThen(Deferred.succeed(refused, undefined), Deferred.await(letGo))
      })
      yield* publish("bad")
      yield* Deferred.await(refused)
      yield* resize(ample)
      yield* reads(ample, 3)
      yield* Deferred.succeed(letGo, undefined)
      yield* facts.count("dead-lettered", 1)
      assert.deepInclude(yield* isClean, { deadLettered: 1, missing: 0 })
    })
  )

  scenario("where it could not be looked for at first", () =>
    Effect.gen(function* () {
      yield* endpoints
      const facts = yield* history
      yield* resize(1)
      const cause = new Error("does not answer")
      // Each partition reads at least once where there is space.
      let failures = 2
      let isBroken = false
      yield* hinderedWorker({
        beforeRead: Effect.suspend(() =>
          isBroken && failures-- > 0
            ? Effect.fail(new BrokerError({ operation: "read", cause }))
            : Effect.void
        )
      })
      yield* publishMany(5, "bad")
      yield* eventually(ended, (waiting) => waiting === 5)
      isBroken = true
      yield* resize(ample)
      yield* facts.count("dead-lettered", 5)
      assert.isBelow(failures, 0)
      assert.deepInclude(yield* isClean, { deadLettered: 5, missing: 0 })
    })
  )

  scenario("where a tenant's part was used up just as it was looked for", () =>
    Effect.gen(function* () {
      const [many, part] = [40, 19]
      const bad = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ id: "bad", url: bad.url, types: ["bad"], circuit })
      yield* endpoint({ tenant: "globex", id: "bad", url: bad.url, types: ["bad"], circuit })
      const facts = yield* history
      const { jsm, names } = yield* natsClients
      const space = 100_000
      yield* resize(space)
      // One at a time: the part is used up when the rest has not been tried.
      const { reads } = yield* hinderedWorker({ batch: 1 })
      yield* publishTo("globex.bad", "x".repeat(body))
      yield* facts.count("dead-lettered", 1)
      // Those that are stored before the tenants are counted are more than its part.
      yield* publishMany(part, "bad", body)
      yield* facts.count("dead-lettered", part + 1)
      yield* reads(space, 3)
      yield* Effect.replicateEffect(publish("bad", "x".repeat(body)), many - part)
      yield* bad.received(many + 1)
      const allWait = (waiting: number) => waiting + facts.of("dead-lettered").length === many + 1
      yield* eventually(
        Effect.all([ended, unacknowledged]),
        ([waiting, held]) => allWait(waiting) && held === 0
      )
      const before = facts.of("dead-lettered").length
      const letters = yield* deadLetters
      const acme = letters.filter(({ subject }) => subject === names.subjects.dead("acme", "bad"))
      for (const { seq } of acme.slice(0, acme.length / 2))
        yield* Effect.promise(() => jsm.streams.deleteMessage(names.dead, seq))
      yield* facts.count("dead-lettered", before + 1)
      // A tenth of a second each: the part is used up before.
      yield* reads(space, 3)
      assert.isAbove(yield* ended, 0)
      yield* resize(ample)
      yield* reads(ample, 1)
      yield* facts.count("dead-lettered", many + 1)
    })
  )
})
