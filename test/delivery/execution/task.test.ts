import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope } from "effect"
import type { Broker } from "../../../src/broker/broker.ts"
import { makeInFlight } from "../../../src/broker/in-flight.ts"
import { deliveredFact } from "../../../src/delivery/execution/delivery-fact.ts"
import { SuccessLog } from "../../../src/delivery/execution/success-log.ts"
import type { TaskSource } from "../../../src/delivery/execution/task.ts"
import { DeliveryTask } from "../../../src/delivery/execution/task.ts"
import type { AttemptRequest } from "../../../src/delivery/http/attempt.ts"
import type { HttpTransport } from "../../../src/delivery/http/egress.ts"
import {
  CompletedDeliveries,
  HistoryPosition
} from "../../../src/delivery/recovery/completed-deliveries.ts"
import { CapacityPool } from "../../../src/delivery/scheduling/capacity-pool.ts"
import { LaneScheduler } from "../../../src/delivery/scheduling/lane-scheduler.ts"
import { untried } from "../../../src/domain/delivery.ts"
import type { AttemptResult } from "../../../src/domain/outcome.ts"
import { HostLimits } from "../../../src/endpoints/host-limits.ts"
import type { Facts } from "../../../src/history/facts.ts"
import { makeLog } from "../../kit/log.ts"
import { MemoryBroker } from "../in-memory.ts"
import { deliveryOf, fixedClock, key, live, NotedHandle } from "../made-deliveries.ts"

/** Requests that a test answers. */
class HeldTransport implements HttpTransport {
  readonly requests: Array<AttemptRequest> = []
  readonly #open: Array<(result: AttemptResult) => void> = []
  readonly #steps: Array<string>

  constructor(steps: Array<string>) {
    this.#steps = steps
  }

  start(request: AttemptRequest, done: (result: AttemptResult) => void) {
    this.requests.push(request)
    this.#open.push(done)
    this.#steps.push("sent")
    return {
      interrupt: () => void this.#steps.push("aborted"),
      end: (message: string) => done({ error: { class: "interrupted", message }, durationMs: 1 })
    }
  }

  answer(result: Partial<AttemptResult> = {}) {
    this.#open.shift()?.({ status: 200, durationMs: 1, ...result })
  }
}

type Source = TaskSource<NotedHandle>
type Admit = ConstructorParameters<typeof LaneScheduler>[0]["admit"]

/** A source that writes down what it is told, and sends at once. */
const makeSource = (steps: Array<string>, changes: Partial<Source>): Source => ({
  begin: () => live,
  decide: () => Effect.die("not asked"),
  successOf: (handle, progress, sent) => ({
    fact: deliveredFact(handle, progress, sent, "w1"),
    id: "1"
  }),
  complete: () => {
    steps.push("complete")
    return Effect.void
  },
  retry: (_, { progress, step }) =>
    Effect.sync(() => void steps.push(`retry ${progress.attempts} ${step._tag}`)),
  deadLetter: (_handle, _failed, reason) =>
    Effect.sync(() => void steps.push(`deadLetter ${reason}`)),
  afterDefect: (_, cause) => Effect.sync(() => void steps.push(`afterDefect ${cause.reasons[0]}`)),
  becameSlow: () => void steps.push("becameSlow"),
  defer: () => void steps.push("defer"),
  giveBack: () => void steps.push("giveBack"),
  left: (_, finished) => void steps.push(`left ${finished}`),
  ...changes
})

/** An endpoint's lane for one request at a time, and what its tasks do. */
const makeLane = Effect.fnUntraced(function* (
  changes: Partial<Source> = {},
  { admit = () => true }: { readonly admit?: Admit } = {}
) {
  const steps: Array<string> = []
  const broker = new MemoryBroker()
  const transport = new HeldTransport(steps)
  const scope = yield* Scope.make()
  const inFlight = yield* broker.run(Scope.provide(makeInFlight<Broker | Facts>(), scope))
  const pool = new CapacityPool({ requests: 100, bytes: 1_024 })
  const lanes = new LaneScheduler<DeliveryTask>({
    ...{ pool, limit: () => 1, admit, rateBudget: () => 10, hasBacklog: () => false },
    ...{ bytes: () => 1, isOver: () => false, closed: () => false, maxQueueMs: 1_000 },
    start: (task, position) => task.start(position),
    becameSlow: (task) => task.becameSlow(),
    endObsolete: (task) => task.endRequest("the endpoint was removed"),
    defer: (task) => task.defer(),
    onCapacity: () => undefined,
    crowdedBy: () => undefined
  })
  const fence = { holds: () => true, stillOwner: Effect.succeed(true) }
  const completed = new CompletedDeliveries(new HistoryPosition(0))
  const source = makeSource(steps, changes)
  const context = {
    sender: { transport, clock: fixedClock, answers: () => "none" as const, traces: false },
    ...{ worker: "w1", inFlight, logsDeliveries: false },
    successes: new SuccessLog(broker.history.facts, fence, completed),
    reached: () => undefined,
    answered: () => void steps.push("answered"),
    attemptCancelled: () => void steps.push("cut off"),
    succeeded: (position: Parameters<typeof lanes.recording>[0]) => lanes.recording(position),
    freed: (position: Parameters<typeof lanes.leave>[0]) => {
      steps.push("freed")
      lanes.leave(position)
    }
  }
  const tasks: Array<DeliveryTask<NotedHandle>> = []
  return {
    ...{ broker, inFlight, lanes, steps, transport },
    /** Closes the scope of work in flight, as a stop or a lost lease does. */
    cancel: Scope.close(scope, Exit.void),
    enter: (handle = new NotedHandle()) => {
      const task = new DeliveryTask(context, source, key, handle)
      tasks.push(task)
      lanes.enter(key, task)
      return task
    },
    /** The modes of all tasks, in the order in which they came. */
    modes: () => tasks.map(({ mode }) => mode),
    /** Waits until no work is in flight, and returns the steps. */
    done: Effect.map(inFlight.none, () => steps)
  }
})

const notReady: Partial<Source> = { begin: () => undefined }

describe("a delivery that may be attempted now", () => {
  it.live("is sent, recorded, then released, without a fiber", () =>
    Effect.gen(function* () {
      const { broker, enter, lanes, steps, transport } = yield* makeLane()
      enter()
      assert.deepStrictEqual(steps, ["sent"])
      assert.deepStrictEqual(lanes.countsOf(key), { inFlight: 1, inLine: 0 })
      transport.answer()
      assert.deepStrictEqual(steps, ["sent", "answered", "complete", "freed", "left true"])
      assert.deepStrictEqual(broker.history.kinds, ["delivered"])
      assert.deepStrictEqual(lanes.countsOf(key), { inFlight: 0, inLine: 0 })
    })
  )

  it.live("is sent as the next attempt after those of its message", () =>
    Effect.gen(function* () {
      const { enter, transport } = yield* makeLane()
      enter(new NotedHandle(deliveryOf({ progress: { attempts: 2 } })))
      const headers = transport.requests[0]?.headers ?? []
      assert.strictEqual(headers[headers.indexOf("petrel-attempt") + 1], "3")
    })
  )

  it.live("lets the next in its lane begin once it is released", () =>
    Effect.gen(function* () {
      const { enter, lanes, transport } = yield* makeLane()
      enter()
      enter()
      assert.lengthOf(transport.requests, 1)
      transport.answer()
      assert.lengthOf(transport.requests, 2)
      assert.deepStrictEqual(lanes.countsOf(key), { inFlight: 1, inLine: 0 })
    })
  )

  it.live("holds up a lane of one while the history has not answered", () =>
    Effect.gen(function* () {
      const { broker, enter, lanes, steps, transport } = yield* makeLane()
      broker.history.answer = "none yet"
      enter()
      enter()
      transport.answer()
      assert.deepStrictEqual(steps, ["sent", "answered"])
      assert.deepStrictEqual(lanes.countsOf(key), { inFlight: 0, inLine: 1 })
    })
  )
})

describe("a delivery that needs a decision", () => {
  it.live("is attempted with the progress that was decided", () =>
    Effect.gen(function* () {
      const attempt = { endpoint: live, progress: { attempts: 4 } }
      const decide = () => Effect.succeed(attempt)
      const { done, enter, inFlight, steps, transport } = yield* makeLane({ ...notReady, decide })
      enter()
      assert.strictEqual(yield* inFlight.size, 1)
      while (transport.requests.length === 0) yield* Effect.yieldNow
      const headers = transport.requests[0]?.headers ?? []
      assert.strictEqual(headers[headers.indexOf("petrel-attempt") + 1], "5")
      transport.answer()
      yield* done
      assert.deepStrictEqual(steps, ["sent", "answered", "complete", "freed", "left true"])
    })
  )

  it.live("is counted against a host's cap only where its lane has counted it", () =>
    Effect.gen(function* () {
      const shared = {
        ...live,
        sharedHost: { host: "h", tenant: "acme", tenantCap: 1, systemCap: undefined }
      }
      // Its URL may have changed meanwhile.
      const moved = { ...shared, sharedHost: { ...shared.sharedHost, host: "elsewhere" } }
      const answers: Array<boolean> = []
      const decide: Source["decide"] = (_, isCounted) =>
        Effect.sync(() => void answers.push(...[live, shared, moved].map(isCounted)))
      const hosts = new HostLimits({ of: () => ({ hashes: [0], version: 1 }) })
      const admit: Admit = (_, place) => {
        place.hostLine = hosts.lineFor(shared.sharedHost, place.lane)
        return true
      }
      for (const changes of [{}, { admit }]) {
        const { done, enter } = yield* makeLane({ ...notReady, decide }, changes)
        enter()
        yield* done
      }
      assert.deepStrictEqual(answers, [true, false, false, true, true, false])
    })
  )

  it.live("ends without a request where there is no attempt to make", () =>
    Effect.gen(function* () {
      const { done, enter, lanes } = yield* makeLane({
        ...notReady,
        decide: () => Effect.undefined
      })
      enter()
      assert.deepStrictEqual(yield* done, ["freed", "left true"])
      assert.deepStrictEqual(lanes.countsOf(key), { inFlight: 0, inLine: 0 })
    })
  )

  it.live("is not finished where deciding fails", () =>
    Effect.gen(function* () {
      const decide = () => Effect.fail("no answer")
      const { done, enter } = yield* makeLane({ ...notReady, decide })
      enter()
      assert.deepStrictEqual(yield* done, ["freed", "left false"])
    })
  )
})

describe("a delivery whose attempt failed", () => {
  it.live("is retried by its source, with the progress after the attempt", () =>
    Effect.gen(function* () {
      const { done, enter, transport } = yield* makeLane()
      enter()
      transport.answer({ status: 503 })
      const expected = ["sent", "answered", "retry 1 Retry", "freed", "left true"]
      assert.deepStrictEqual(yield* done, expected)
    })
  )

  it.live("is dead-lettered after its last attempt", () =>
    Effect.gen(function* () {
      const { done, enter, transport } = yield* makeLane()
      enter(new NotedHandle(deliveryOf({ progress: { attempts: 2 } })))
      transport.answer({ status: 503 })
      const expected = ["sent", "answered", "deadLetter attempts", "freed", "left true"]
      assert.deepStrictEqual(yield* done, expected)
    })
  )

  it.live("is dead-lettered where the answer is final", () =>
    Effect.gen(function* () {
      const { done, enter, transport } = yield* makeLane()
      enter()
      transport.answer({ status: 400 })
      assert.include(yield* done, "deadLetter permanent")
    })
  )

  it.live("is given to the defect's handler where its source dies of it", () =>
    Effect.gen(function* () {
      const { done, enter, transport } = yield* makeLane({ retry: () => Effect.die("broken") })
      enter()
      transport.answer({ status: 503 })
      const steps = yield* done
      assert.deepStrictEqual(steps.slice(0, 2), ["sent", "answered"])
      assert.match(steps[2] ?? "", /^afterDefect .*broken/)
      assert.deepStrictEqual(steps.slice(3), ["freed", "left true"])
    })
  )
})

describe("a delivery that is cancelled", () => {
  it.live("while its request is in flight: the request is aborted", () =>
    Effect.gen(function* () {
      const { cancel, enter, lanes, steps, transport } = yield* makeLane()
      enter()
      yield* cancel
      assert.deepStrictEqual(steps, ["sent", "aborted", "cut off", "freed", "left false"])
      transport.answer()
      assert.deepStrictEqual(steps, ["sent", "aborted", "cut off", "freed", "left false"])
      assert.deepStrictEqual(lanes.countsOf(key), { inFlight: 0, inLine: 0 })
    })
  )

  it.live("while its source decides: nothing is sent", () =>
    Effect.gen(function* () {
      const decide = () => Effect.never
      const { cancel, enter, steps } = yield* makeLane({ ...notReady, decide })
      enter()
      yield* cancel
      assert.deepStrictEqual(steps, ["freed", "left false"])
    })
  )

  it.live("while its failure is recorded: it is not taken for a defect", () =>
    Effect.gen(function* () {
      const { cancel, enter, steps, transport } = yield* makeLane({ retry: () => Effect.never })
      enter()
      transport.answer({ status: 503 })
      yield* Effect.yieldNow
      yield* cancel
      assert.deepStrictEqual(steps, ["sent", "answered", "freed", "left false"])
    })
  )

  it.live("by its source, which is no owner any more: nor is that a defect", () =>
    Effect.gen(function* () {
      const { done, enter, transport } = yield* makeLane({ retry: () => Effect.interrupt })
      enter()
      transport.answer({ status: 503 })
      assert.deepStrictEqual(yield* done, ["sent", "answered", "freed", "left false"])
    })
  )

  it.live("while its success is recorded: the acknowledgement comes too late", () =>
    Effect.gen(function* () {
      const { broker, cancel, enter, steps, transport } = yield* makeLane()
      let settle: Parameters<Facts["Service"]["tryAppend"]>[2] = () => assert.fail()
      Object.assign(broker.history.facts, {
        tryAppend: (_fact: unknown, _id: string, then: typeof settle) => {
          settle = then
        }
      })
      enter()
      transport.answer()
      yield* cancel
      settle({ stream: "HISTORY", seq: 1, duplicate: false })
      assert.deepStrictEqual(steps, ["sent", "answered", "aborted", "freed", "left false"])
    })
  )
})

describe("a step that throws", () => {
  const broken = () => {
    throw new Error("broken")
  }

  it.live("ends the delivery by the defect's handler, and frees its lane once", () =>
    Effect.gen(function* () {
      for (const changes of [{ successOf: broken }, { complete: broken }]) {
        const { done, enter, lanes, transport } = yield* makeLane(changes)
        enter()
        transport.answer()
        const steps = yield* done
        assert.deepStrictEqual(steps.slice(0, 2), ["sent", "answered"])
        assert.match(steps[2] ?? "", /^afterDefect .*broken/)
        assert.deepStrictEqual(steps.slice(3), ["freed", "left true"])
        assert.deepStrictEqual(lanes.countsOf(key), { inFlight: 0, inLine: 0 })
      }
    })
  )

  it.live("may be that which sends", () =>
    Effect.gen(function* () {
      const endpoint = { ...live, signer: broken }
      const { done, enter } = yield* makeLane({ begin: () => endpoint })
      enter()
      const steps = yield* done
      assert.match(steps[0] ?? "", /^afterDefect .*broken/)
      assert.deepStrictEqual(steps.slice(1), ["freed", "left true"])
    })
  )
})

describe("a delivery that was not begun", () => {
  it.live("goes back to its source without a trace in its lane", () =>
    Effect.gen(function* () {
      const { enter, lanes, steps } = yield* makeLane()
      enter()
      enter()
      for (const task of lanes.clear()) task.giveBack()
      assert.deepStrictEqual(steps, ["sent", "giveBack"])
      assert.deepStrictEqual(lanes.countsOf(key), { inFlight: 1, inLine: 0 })
    })
  )
})

describe("the mode of a delivery", () => {
  it.live("follows it from its line to its release", () =>
    Effect.gen(function* () {
      const { broker, done, enter, modes, transport } = yield* makeLane()
      broker.history.answer = "none yet"
      enter()
      enter()
      assert.deepStrictEqual(modes(), ["sending", "waiting"])
      transport.answer()
      assert.deepStrictEqual(modes(), ["recording", "waiting"])
      broker.history.answer = "stored"
      broker.history.answerHeld()
      assert.deepStrictEqual(modes(), ["released", "sending"])
      transport.answer()
      yield* done
      assert.deepStrictEqual(modes(), ["released", "released"])
    })
  )

  it.live("follows one that needs decisions, and fails", () =>
    Effect.gen(function* () {
      const decided = yield* Deferred.make<void>()
      const recorded = yield* Deferred.make<void>()
      const { done, enter, modes, transport } = yield* makeLane({
        begin: () => undefined,
        decide: () => Effect.as(Deferred.await(decided), { endpoint: live, progress: untried }),
        retry: () => Deferred.await(recorded)
      })
      enter()
      assert.deepStrictEqual(modes(), ["deciding"])
      yield* Deferred.succeed(decided, undefined)
      while (transport.requests.length === 0) yield* Effect.yieldNow
      assert.deepStrictEqual(modes(), ["sending"])
      transport.answer({ status: 503 })
      assert.deepStrictEqual(modes(), ["recording"])
      yield* Deferred.succeed(recorded, undefined)
      yield* done
      assert.deepStrictEqual(modes(), ["released"])
    })
  )

  it.live("says how it ended where it was not finished", () =>
    Effect.gen(function* () {
      const { cancel, enter, lanes, modes } = yield* makeLane()
      enter()
      enter()
      enter()
      const [second, third] = lanes.clear()
      second?.giveBack()
      third?.defer()
      yield* cancel
      assert.deepStrictEqual(modes(), ["cancelled", "returned", "returned"])
    })
  )

  it.live("lets no call through that does not fit it: that is logged", () => {
    const log = makeLog()
    return Effect.gen(function* () {
      const { done, enter, lanes, modes, steps, transport } = yield* makeLane()
      const task = enter()
      task.defer()
      task.giveBack()
      lanes.enter(key, task)
      assert.deepStrictEqual(modes(), ["sending"])
      assert.deepStrictEqual(steps, ["sent"])
      transport.answer()
      yield* done
      assert.deepStrictEqual(modes(), ["released"])
      assert.deepStrictEqual(lanes.countsOf(key), { inFlight: 0, inLine: 0 })
      assert.deepStrictEqual(
        log.lines.map(({ level }) => level),
        ["Error", "Error", "Error"]
      )
      assert.strictEqual(log.count("does not fit the mode"), 3)
    }).pipe(Effect.provide(log.layer))
  })
})
