import { assert, describe } from "@effect/vitest"
import type { StreamConfig } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { Deferred, Effect, Fiber, Schedule } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { init } from "../../src/broker/init.ts"
import { ageLimitMs } from "../../src/broker/kept-since.ts"
import type { TopologyOptions } from "../../src/broker/topology.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { audit, examine } from "../../src/history/audit/audit.ts"
import type { AuditReading } from "../../src/history/audit/audit-reading.ts"
import { openReading } from "../../src/history/audit/audit-reading.ts"
import { type Judgement, judge } from "../../src/history/audit/judgement.ts"
import { readReach } from "../../src/history/audit/reach.ts"
import { Facts } from "../../src/history/facts.ts"
import { expireRouted } from "../../src/routing/event-expiry.ts"
import {
  endpoint,
  eventAt,
  history,
  publish,
  publishMany,
  testTopology,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { delivered } from "./delivered.ts"

const { scenario } = onServer()

const told = ({ problems }: Judgement) => problems.list.map(({ kind, says }) => `${kind}: ${says}`)

const foundIn = (range: Parameters<typeof audit>[0]) =>
  Effect.map(audit(range), ({ judgement }) => ({
    verdict: judgement.verdict,
    delivered: judgement.tally.delivered,
    problems: told(judgement)
  }))
const found = foundIn({})

type Purged = "events" | "history"

const look = Effect.fnUntraced(function* (of: Purged) {
  const { ask, jsm, names } = yield* natsClients
  return yield* ask("look", () => jsm.streams.info(names[of]))
})

/** Waits until all that was there was dropped by age: facts by the broker, events by a worker. */
const emptied = (of: Purged) =>
  Effect.andThen(of === "events" ? expireRouted : Effect.void, look(of)).pipe(
    Effect.repeat({ until: ({ state }) => state.messages === 0, schedule: Schedule.spaced(50) })
  )

/**
 * Removes what is before a sequence. The history takes no purges, but nobody is kept from lowering a
 * limit and raising it again.
 */
const purge = Effect.fnUntraced(function* (of: Purged, seq: number) {
  const { ask, jsm, names } = yield* natsClients
  if (of === "events") {
    yield* ask("purge", () => jsm.streams.purge(names[of], { seq }))
    return
  }
  const { config, state } = yield* look(of)
  const { duplicate_window, max_age, max_msgs } = config
  const limit = (limits: Partial<StreamConfig>) =>
    ask("limit", () => jsm.streams.update(names[of], limits))
  if (seq <= state.last_seq) yield* limit({ max_msgs: state.last_seq - seq + 1 })
  else {
    const moment = nanos(100)
    yield* limit({ max_age: moment, duplicate_window: moment })
    yield* emptied(of)
  }
  yield* limit({ duplicate_window, max_age, max_msgs })
})

/** Makes the streams anew as a broker shows them that has dropped so many messages by age. */
const aged = Effect.fnUntraced(function* (dropped: Readonly<Record<Purged, number>>) {
  const { ask, jsm, names } = yield* natsClients
  for (const of of ["events", "history"] as const) {
    const { config } = yield* look(of)
    yield* ask("remove", () => jsm.streams.delete(names[of]))
    yield* ask("make", () => jsm.streams.add({ ...config, first_seq: dropped[of] + 1 }))
  }
  yield* init(testTopology)
})

/** Gives what looks again as a watch does, and says what was found. */
const looking = Effect.gen(function* () {
  const reading = yield* openReading(yield* readReach({}))
  return Effect.gen(function* () {
    const reach = yield* readReach({})
    const { firstEvent, isWhole } = reading.ledger.scope
    reading.ledger.scope = { ...reach.scope, firstEvent, isWhole, lastEvent: Infinity }
    return told(yield* judge(reading, yield* examine(reading, reach)))
  })
})

/** Works until so many more events, and with them as many as are said, were delivered. */
const deliverMore = Effect.fnUntraced(function* (count: number, all: number) {
  const facts = yield* history
  yield* Effect.scoped(
    Effect.gen(function* () {
      yield* worker()
      yield* publishMany(count, "invoice.next")
      yield* facts.count("delivered", all)
    })
  )
})

const short = { eventAge: 500, eventDedupe: 500, historyAge: 500, moveDedupe: 500 }

/** Lets the broker drop all that is there by age, and gives it the usual age again. */
const expire = Effect.fnUntraced(function* (
  streams: ReadonlyArray<Purged>,
  ages: Partial<TopologyOptions>
) {
  yield* init({ ...testTopology, ...ages })
  yield* Effect.forEach(streams, emptied)
  const short = yield* found
  yield* init(testTopology)
  return short
})

const nothing = { verdict: "clean" as const, problems: [] }
/** No problem, and no stored event that is more than five minutes newer than the first fact. */
const nobodyKnows = { verdict: "unvouched" as const, problems: [] }

describe("an audit of streams whose beginning was removed", () => {
  scenario("names the facts that neither age nor size has dropped, once", () =>
    Effect.gen(function* () {
      yield* delivered(20)
      const { state } = yield* look("history")
      yield* purge("history", state.last_seq + 1)
      yield* deliverMore(5, 5)
      const whole = yield* found
      assert.strictEqual(whole.verdict, "problems")
      assert.lengthOf(whole.problems, 1, whole.problems.join("\n"))
      assert.match(
        whole.problems[0] ?? "",
        new RegExp(
          `^history-gap: facts up to ${state.last_seq} are no longer in .* Events 1 to 20, stored .*, and 20 of`
        )
      )
      // What is left is judged.
      assert.strictEqual(whole.delivered, 5)
      assert.deepStrictEqual((yield* foundIn({ tenant: "acme" })).problems, whole.problems)
      assert.deepStrictEqual((yield* foundIn({ tenant: "other" })).problems, [])
      const since = yield* eventAt(21)
      assert.deepInclude(yield* foundIn({ since }), { ...nothing, delivered: 5 })
    })
  )

  scenario("names the events that facts tell of and that age has not dropped", () =>
    Effect.gen(function* () {
      yield* delivered(6)
      yield* purge("events", 5)
      const { problems, verdict } = yield* found
      assert.strictEqual(verdict, "problems")
      assert.lengthOf(problems, 1, problems.join("\n"))
      assert.match(
        problems[0] ?? "",
        /^event-gap: events 1 to 4 are no longer in the event stream: /
      )
      const others = yield* foundIn({ tenant: "other" })
      assert.notInclude(others.problems.join(), "event-gap")
      assert.deepStrictEqual((yield* foundIn({ since: 1 + (yield* eventAt(6)) })).problems, [])
      yield* purge("events", 7)
      const all = yield* found
      assert.match(all.problems.join("\n"), /^event-gap: events 1 to 6 are no longer [^\n]*$/)
    })
  )

  scenario("sees it happen between two looks, and tells it once", () =>
    Effect.gen(function* () {
      yield* delivered(6)
      const again = yield* looking
      assert.deepStrictEqual(yield* again, [])
      yield* purge("history", 4)
      yield* purge("events", 3)
      const gaps = yield* again
      assert.lengthOf(gaps, 2, gaps.join("\n"))
      assert.match(gaps.join("\n"), /event-gap: events 1 to 2 are no longer in the event stream/)
      assert.match(gaps.join("\n"), /history-gap: facts 1 to 3 are no longer in the history/)
      assert.deepStrictEqual(yield* again, gaps)
    })
  )
})

describe("an audit of streams whose beginning the broker dropped", () => {
  scenario("takes no offence at events that a short age dropped, nor once it is longer again", () =>
    Effect.gen(function* () {
      yield* delivered(5)
      const { eventAge, eventDedupe } = short
      assert.deepInclude(yield* expire(["events"], { eventAge, eventDedupe }), nothing)
      assert.strictEqual(ageLimitMs((yield* look("events")).config), testTopology.eventAge)
      assert.deepInclude(yield* found, nothing)
    })
  )

  scenario("takes no offence at facts that a short age dropped, nor once it is longer again", () =>
    Effect.gen(function* () {
      yield* delivered(5)
      const { historyAge, moveDedupe } = short
      const { problems } = yield* expire(["history"], { historyAge, moveDedupe })
      assert.deepStrictEqual(problems, [])
      assert.strictEqual((yield* look("history")).config.max_age, testTopology.historyAge * 1e6)
      const facts = yield* history
      yield* worker()
      yield* publish("invoice.late")
      yield* facts.count("delivered", 1)
      assert.deepInclude(yield* found, nobodyKnows)
    })
  )

  scenario("takes no offence at what it read before and has expired since", () =>
    Effect.gen(function* () {
      yield* delivered(5)
      const again = yield* looking
      assert.deepStrictEqual(yield* again, [])
      yield* init({ ...testTopology, ...short })
      yield* Effect.forEach(["events", "history"] as const, emptied)
      assert.deepStrictEqual(yield* again, [])
      yield* init(testTopology)
      assert.deepStrictEqual(yield* again, [])
    })
  )

  scenario("takes no offence at facts that had no room, nor once they have more", () =>
    Effect.gen(function* () {
      yield* delivered(300)
      yield* init({ ...testTopology, historyBytes: 64 * 1024 })
      const { state } = yield* look("history")
      assert.isAbove(state.first_seq, 50)
      assert.deepInclude(yield* found, nobodyKnows)
      yield* init(testTopology)
      assert.deepInclude(yield* found, nobodyKnows)
    })
  )

  scenario("takes no offence at a quiet month, and judges what comes after it", () =>
    Effect.gen(function* () {
      yield* aged({ events: 700, history: 2_000 })
      // Routed late: whoever works was away.
      yield* publishMany(3)
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      yield* deliverMore(3, 6)
      const { state } = yield* look("history")
      assert.isAbove(state.first_seq, 2_000)
      assert.deepInclude(yield* found, { ...nothing, delivered: 6 })
      yield* purge("history", state.last_seq + 1)
      const { problems } = yield* found
      assert.lengthOf(problems, 1, problems.join("\n"))
      assert.match(problems[0] ?? "", /^history-gap: facts up to \d+ are .* Events 701 to 706/)
    })
  )
})

describe("an audit of facts about events that are not there", () => {
  let written = 0
  const at = Date.now()
  /** A fact about the event at a sequence. */
  const write = (eventSeq: number, fact: Partial<Fact> & Pick<Fact, "kind">) =>
    Effect.gen(function* () {
      const facts = yield* Facts
      const about = { event: `evt-${eventSeq}`, eventSeq, eventAt: at, round: "0" }
      yield* facts.append(
        { v: 1, at: Date.now(), tenant: "acme", endpoint: "hook", ...about, ...fact },
        `beyond-${written++}`
      )
    })
  const plan = {
    part: 0,
    last: true,
    endpoints: [{ id: "hook", generation: "g", revision: 1, deadline: Date.now() + 3_600_000 }],
    skipped: []
  }

  scenario("names each outcome of an event beyond the end of the event stream", () =>
    Effect.gen(function* () {
      yield* delivered(2)
      const { state } = yield* look("history")
      yield* write(7, { kind: "delivered", attempt: 1, status: 200 })
      yield* write(9, { kind: "unroutable" })
      const { judgement } = yield* audit({})
      assert.deepStrictEqual(
        judgement.problems.list.map(({ event, eventSeq, kind, seq }) => [
          ...[kind, event, eventSeq, seq]
        ]),
        [
          ["outcome-without-event", "evt-7", 7, state.last_seq + 1],
          ["outcome-without-event", "evt-9", 9, state.last_seq + 2]
        ]
      )
    })
  )

  scenario("calls it a lost end where the event was planned, and says nothing of its outcome", () =>
    Effect.gen(function* () {
      yield* delivered(2)
      yield* write(4, { kind: "routed", endpoint: "_", type: "invoice.paid", plan })
      yield* write(4, { kind: "delivered", attempt: 1, status: 200 })
      const { problems } = yield* found
      assert.deepStrictEqual(problems, [
        "event-gap: events 3 to 4 are no longer in the event stream: the broker lost the end of the stream"
      ])
    })
  )

  scenario("looks again before it says so", () =>
    Effect.gen(function* () {
      yield* delivered(2)
      yield* write(3, { kind: "delivered", attempt: 1, status: 200 })
      const { state } = yield* look("history")
      const begun = yield* Deferred.make<AuditReading>()
      const auditing = yield* audit({
        onBegin: (reading) => Deferred.doneUnsafe(begun, Effect.succeed(reading))
      }).pipe(Effect.forkChild)
      const reading = yield* Deferred.await(begun)
      yield* Effect.sync(() => reading.history.next).pipe(
        Effect.repeat({ until: (next) => next > state.last_seq, schedule: Schedule.spaced(10) })
      )
      // As a leader does that was just elected.
      yield* publish("invoice.paid")
      const { judgement } = yield* Fiber.join(auditing)
      assert.deepStrictEqual(judgement.problems.list, [])
    })
  )
})
