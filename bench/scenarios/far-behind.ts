import { Effect } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { addDownAndCalm, follow, tick, untilRouted } from "../down-and-calm.ts"
import { endpointCap, workerRoom } from "../ground.ts"
import { watch } from "../machine.ts"
import type { Publisher, Receiver, Worker } from "../processes.ts"
import {
  memoryOf,
  readBy,
  startLimit,
  startPublisher,
  startReceiver,
  startWorker,
  writtenBy
} from "../processes.ts"
import type { Counted } from "../programs/receiver.ts"
import { addEndpoints, startBroker } from "../rig.ts"
import type { Outcome, Row, Scenario, Settings } from "../scenario.ts"

const store = 2 * 1024 ** 3
/** Service time of the receiver that comes back, ms. */
const service = 5
/** Events a second of the tenant that is well. */
const calmPerSecond = 200
/** Deliveries a second for the others while it is measured. */
const otherPerSecond = 1_500
/**
 * Each side is measured in this many turns. The middle one counts: a machine that stands still for a
 * second decides the 99th percentile of one turn, and of all turns together.
 */
const turns = 5
/** Events of the control's worker before it is measured: its code is warm then. */
const warming = 5_000
/** The last of what waits for an endpoint may be retries, whose time comes later. */
const tail = 20

/** Endpoints that get an event of those that come while it is measured. */
const perEvent = 3
/** What all endpoints get, and what some of them get. */
const others = "events.bench.type"
const some = "events.bench.some-*"
const groupsOf = (endpoints: number) => Math.ceil(endpoints / perEvent)
/** How many deliveries so many events for some of the endpoints are, one group after the other. */
const deliveriesOf = (events: number, endpoints: number) => {
  const groups = groupsOf(endpoints)
  const last = events % groups
  const inLast = last * Math.floor(endpoints / groups) + Math.min(last, endpoints % groups)
  return Math.floor(events / groups) * endpoints + inLast
}

/** A broker and a worker with a tenant that is well, beside one with endpoints that may be down. */
interface Side {
  readonly broker: { readonly pid: number; readonly url: string }
  readonly worker: Worker
  /** Of the endpoints that may be down. */
  readonly receiver: Receiver
  readonly calmReceiver: Receiver
  readonly publisher: Publisher
  readonly calmPublisher: Publisher
}

const startSide = Effect.fnUntraced(function* (endpoints: number) {
  const broker = yield* startBroker(store)
  const receivers = yield* addDownAndCalm(broker, endpoints, (number) => [
    "type",
    `some-${number % groupsOf(endpoints)}`
  ])
  const side: Side = {
    ...{ broker, ...receivers },
    worker: yield* startWorker(broker.url),
    publisher: yield* startPublisher(broker.url),
    calmPublisher: yield* startPublisher(broker.url)
  }
  return side
})

/** The tenant that is well, while events for the others go on coming. */
const measureCalm = async (
  side: Side,
  { groups, perSecond, seconds }: { groups: number; perSecond: number; seconds: number }
) => {
  const { calmPublisher, calmReceiver, publisher } = side
  const count = seconds * calmPerSecond
  await calmReceiver.reset()
  await Promise.all([
    publisher.publish({
      ...{ subject: some, subjects: groups, bytes: 300 },
      ...{ count: seconds * perSecond, perSecond }
    }),
    calmPublisher.publish({ ...tick, count, perSecond: calmPerSecond })
  ])
  return await calmReceiver.received(count).catch(() => calmReceiver.count())
}

const middleP99 = (all: ReadonlyArray<Counted>) =>
  all.map(({ latency }) => latency.p99).toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0

const useOf = (side: Side) =>
  watch({
    ...{ worker: [side.worker.pid], broker: [side.broker.pid] },
    ...{ publisher: [side.publisher.pid, side.calmPublisher.pid] },
    receiver: [side.receiver.pid, side.calmReceiver.pid]
  })

const runDown = Effect.fnUntraced(function* ({ load, quick }: Settings, row: (row: Row) => void) {
  const { endpoints = 3, body: bytes = 300 } = load
  const { events = Math.max(1, Math.floor((quick ? 60_000 : 3_000_000) / endpoints)) } = load
  const seconds = quick ? 5 : 10
  const groups = groupsOf(endpoints)
  const perSecond = Math.floor(otherPerSecond / Math.min(perEvent, endpoints))
  // What comes while it is measured counts: a backlog takes no more than a million.
  const meanwhile = turns * deliveriesOf(seconds * perSecond, endpoints)
  const first = Math.max(1, events - Math.ceil(meanwhile / endpoints))
  const side = yield* startSide(endpoints)
  const control = yield* startSide(endpoints)
  const limit = yield* startLimit(side.receiver)
  const { receiver, worker } = side

  yield* Effect.promise(() => receiver.behave({ service }))
  const tried = Math.min(events * endpoints, 20_000)
  const atOnce = Math.min(endpoints * endpointCap, workerRoom)
  const posted = yield* Effect.promise(() => limit.post({ count: tried, endpoints, bytes, atOnce }))
  const loopPerSecond = tried / (posted.ms / 1000)

  const warm = Math.max(1, Math.floor(warming / endpoints))
  yield* Effect.promise(() =>
    control.publisher.publish({ subject: others, subjects: 1, bytes, count: warm })
  )
  yield* Effect.promise(() => receiver.behave({ down: true }))
  const watched = useOf(side)
  const memoryBefore = memoryOf(worker.pid)
  const published = yield* Effect.promise(() =>
    side.publisher.publish({ subject: others, subjects: 1, bytes, count: first })
  )
  const began = performance.now()
  const routed = yield* untilRouted(side.broker)
  const routing = (published.ms + performance.now() - began) / 1000
  const memory = memoryOf(worker.pid)
  const deferred = Math.max(1, endpoints * (first - routed.unrouted) - routed.dead)

  yield* Effect.promise(() => control.receiver.received(warm * endpoints))
  const measured = calmPerSecond * seconds
  const measure = (side: Side) =>
    Effect.promise(() => measureCalm(side, { groups, perSecond, seconds }))
  const calm: Array<Counted> = []
  const beside: Array<Counted> = []
  for (let turn = 0; turn < turns; turn++) {
    calm.push(yield* measure(control))
    beside.push(yield* measure(side))
  }
  const [calmP99, p99] = [middleP99(calm), middleP99(beside)]

  const later = yield* untilRouted(side.broker)
  yield* Effect.promise(() => receiver.reset())
  yield* Effect.promise(() => receiver.behave({ service }))
  const wanted = endpoints * first + meanwhile - later.dead
  const readBefore = readBy(side.broker.pid)
  const last = Math.min(tail * endpoints, Math.floor(wanted / 50))
  const drained = yield* Effect.promise(() => follow(receiver, wanted, last))
  const read = (readBy(side.broker.pid) - readBefore) / wanted
  yield* Effect.sleep(2_000)
  const all = yield* Effect.promise(() => receiver.count())
  const { use } = watched()
  const of = `${endpoints.toLocaleString("en")} down, ${events.toLocaleString("en")} events`
  row({
    of,
    round: 1,
    figures: {
      heldBack: later.unrouted,
      undelivered: beside.reduce((sum, { requests }) => sum + measured - requests, 0),
      ...{ p99, calmP99, ratio: p99 / calmP99 },
      disk: routed.waitingBytes / deferred,
      memory: ((memory - memoryBefore) * 1024 ** 2) / deferred,
      routing,
      dead: later.dead,
      missing: Math.max(0, wanted - all.requests),
      twice: Math.max(0, all.requests - wanted),
      ...{ drained: drained.seconds, drainRatio: drained.seconds / (wanted / loopPerSecond) },
      read: read / 1024
    },
    machine: { petrel: use }
  })
  const outcome: Outcome = {
    settings: { events, endpoints, bytes, store, cap: endpointCap, "service, ms": service },
    aims: [
      ...["heldBack", "undelivered", "dead", "missing", "twice"].map((figure) => ({
        ...{ of, figure },
        atMost: 0
      })),
      { of, figure: "ratio", atMost: 1.2 },
      { of, figure: "disk", atMost: 16 },
      { of, figure: "memory", atMost: 64 },
      { of, figure: "drainRatio", atMost: 1.2 }
    ],
    notes: [
      "the control is another worker and broker, of which all endpoints are well and get the same events",
      `the time of the drain leaves out the last ${last.toLocaleString("en")}, which may be retries`
    ],
    details: { routed, later }
  }
  return outcome
})

const runFailing = Effect.fnUntraced(function* (
  { load, quick }: Settings,
  row: (row: Row) => void
) {
  const { body: bytes = 65_536, events = quick ? 300 : 2_000, failing = 3 } = load
  const receiver = yield* startReceiver()
  const broker = yield* startBroker(store)
  const add = addEndpoints(1, () => ({
    ...{ id: "e0", url: receiver.url, types: ["type"] },
    circuit: { failures: 10_000, rate: "none" },
    retry: {
      ...{ backoff: { kind: "fixed", delay: "2 seconds" }, jitter: "none", maxAttempts: 30 },
      ...{ window: "1 hour", retryAfterCap: "24 hours" }
    }
  }))
  yield* Effect.provide(add, connectTo(broker))
  yield* startWorker(broker.url)
  const publisher = yield* startPublisher(broker.url)
  yield* Effect.promise(() => receiver.behave({ failing }))
  const before = writtenBy(broker.pid)
  yield* Effect.promise(() =>
    Promise.all([
      publisher.publish({ subject: others, subjects: 1, bytes, count: events }),
      receiver.received(events)
    ])
  )
  // The broker writes behind.
  yield* Effect.sleep(2_000)
  const written = (writtenBy(broker.pid) - before) / events
  const of = `every attempt of ${failing} fails, ${bytes.toLocaleString("en")} bytes`
  row({ of, round: 1, figures: { written: written / 1024, writtenRatio: written / bytes } })
  const outcome: Outcome = { settings: { events, bytes, failing, store } }
  return outcome
})

/** Endpoints that are down for long, with much waiting for them, beside a tenant that is well. */
export const farBehind: Scenario = {
  name: "far-behind",
  measures:
    "What much that waits for endpoints costs, what it does to another tenant, and how it is delivered once they are back.",
  limit:
    "Its measures are another worker without endpoints that are down, and a loop of requests under the same caps.",
  onlyNamed: true,
  figures: {
    heldBack: { title: "events not routed", unit: "", digits: 0 },
    undelivered: { title: "the other tenant's, not delivered", unit: "", digits: 0 },
    p99: { title: "the other tenant's p99", unit: "ms", digits: 1 },
    calmP99: { title: "p99 where all are well", unit: "ms", digits: 1 },
    ratio: { title: "p99, ratio", unit: "", digits: 2 },
    disk: { title: "disk a deferred delivery", unit: "bytes", digits: 0 },
    memory: { title: "worker memory a deferred delivery", unit: "bytes", digits: 0 },
    routing: { title: "published and routed in", unit: "s", digits: 1 },
    dead: { title: "dead letters", unit: "", digits: 0 },
    missing: { title: "missing", unit: "", digits: 0 },
    twice: { title: "delivered more than once", unit: "", digits: 0 },
    drained: { title: "delivered in, once back", unit: "s", digits: 1 },
    drainRatio: { title: "ratio to the loop", unit: "", digits: 2 },
    read: { title: "read by the broker a delivery, then", unit: "KiB", digits: 1 },
    written: { title: "written a delivery", unit: "KiB", digits: 1 },
    writtenRatio: { title: "written a byte of body", unit: "", digits: 2 }
  },
  run: (settings, row) =>
    settings.load.failing === undefined ? runDown(settings, row) : runFailing(settings, row)
}
