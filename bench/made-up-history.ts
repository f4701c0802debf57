/* A generated history, as a worker would leave it: the input of an audit, without the requests. */
import { Clock, Effect, Stream } from "effect"
import { Broker } from "../src/broker/broker.ts"
import { readStream, storedAt } from "../src/broker/scan.ts"
import { storeAll } from "./rig.ts"

const hour = 60 * 60 * 1000
/** One in this many deliveries fails once. */
const failing = 20
/** Number of changes of endpoints, spread over all events. */
const changes = 10_000
/**
 * Events that are stored between two groups of changes. A plan may not miss a change that was made
 * 10 s before its event: a group takes less, on a busy machine, too.
 */
const eventsInGroup = 10_000
/** Endpoints that subscribe to none of the events and are changed like the others. */
const others = 100

export interface MadeUp {
  readonly events: number
  /** Deliveries of each event. */
  readonly fanOut: number
}

/** An endpoint with changes, and the revision of its last change. */
interface Changed {
  readonly id: string
  revision: number
}

/** Returns the fact of a change, which gives the endpoint its next revision. */
const changeOf = (endpoint: Changed, revision: number, storedAt: number) => {
  const types = endpoint.id.startsWith("other")
    ? [revision % 2 === 0 ? "order.>" : "user.*"]
    : [">"]
  const now = {
    ...{ generation: "bench", origin: "https://example.com", urlDigest: "0".repeat(12), types },
    ...{
      sign: "standard",
      secrets: [{ createdAt: 0 }],
      retry: "default",
      maxInFlight: 1 + (revision % 1000)
    },
    ...{ redirects: 3, headers: [] }
  }
  endpoint.revision = revision
  const kind = "endpoint-changed"
  const change = { revision, storedAt, now }
  return {
    ...{ kind, mood: "ok" as const, endpoint: endpoint.id, id: `${kind}.${revision}` },
    body: JSON.stringify({
      v: 1,
      kind,
      at: storedAt,
      tenant: "bench",
      endpoint: endpoint.id,
      change
    })
  }
}

/** Returns the facts of one event and its deliveries. */
const factsOf = (
  seq: number,
  eventAt: number,
  endpoints: ReadonlyArray<Changed>,
  directory: number,
  at: number
) => {
  const event = `bench.event-${seq}`
  const deadline = eventAt + 72 * hour
  const about = {
    v: 1,
    at,
    tenant: "bench",
    event,
    eventSeq: seq,
    eventAt,
    type: "invoice.paid",
    worker: "b"
  }
  const fact = (kind: string, mood: "ok" | "failure", endpoint: string, more: object) => ({
    ...{ kind, mood, endpoint, id: `${kind}.${seq}.${endpoint}` },
    body: JSON.stringify({ ...about, kind, endpoint, ...more })
  })
  const chosen = endpoints.map(({ id, revision }) => ({
    ...{ id, generation: "bench", revision, deadline }
  }))
  const plan = { part: 0, last: true, endpoints: chosen, skipped: [], directory }
  const ends = endpoints.flatMap(({ id: endpoint }, index) => {
    const of = {
      ...{ delivery: `${event}.${endpoint}`, round: "0", deadline, durationMs: 12.5 },
      from: { stream: `PETREL_DELIVERIES_${index % 8}`, seq, at }
    }
    const fails = ((seq - 1) * endpoints.length + index) % failing === 0
    const retried = { ...of, attempt: 1, status: 503, nextAttemptAt: at + 1_000, wait: "nak" }
    const response = { headers: { "content-type": "application/json" }, body: "ok", bytes: 2 }
    const end = { ...of, attempt: fails ? 2 : 1, status: 200, firstByteMs: 11.2, response }
    const delivered = fact("delivered", "ok", endpoint, end)
    return fails ? [fact("attempt-failed", "failure", endpoint, retried), delivered] : [delivered]
  })
  return [fact("routed", "ok", "_", { plan }), ...ends]
}

/** Texts of the facts about events and their one delivery each, a thousand events a second. */
export function* madeUpFacts(events: number): Generator<string> {
  const endpoint: Changed = { id: "endpoint-0", revision: 1 }
  for (let seq = 1; seq <= events; seq++)
    for (const { body } of factsOf(seq, began + seq, [endpoint], 1, began + seq)) yield body
}
/** When the first of them happened, ms since the epoch. */
const began = Date.UTC(2026, 0, 1)

/** Reads when each message of a stream was stored, ms since the epoch, by sequence. */
const storedTimes = Effect.fnUntraced(function* (stream: string, subject: string) {
  const times = new Map<number, number>()
  yield* Stream.runForEach(
    readStream({ stream, subjects: [subject], headersOnly: true }),
    (message) => Effect.sync(() => times.set(message.seq, storedAt(message)))
  )
  return times
})

/** Stores events of 64 bytes, their plans and the ends of all their deliveries. */
export const storeHistory = Effect.fnUntraced(function* ({ events, fanOut }: MadeUp) {
  const { names } = yield* Broker
  const at = yield* Clock.currentTimeMillis
  const endpoints = Array.from(
    { length: fanOut },
    (_, index): Changed => ({
      id: `endpoint-${index}`,
      revision: 0
    })
  )
  const all = [
    ...endpoints,
    ...Array.from(
      { length: others },
      (_, index): Changed => ({ id: `other-${index}`, revision: 0 })
    )
  ]
  const revisions = all.length + changes
  const changedBy = (revision: number) => all[(revision - 1) % all.length]
  /** Returns how many changes come before an event. */
  const dueBefore = (seq: number) => all.length + Math.floor((seq * changes) / events)
  const body = "x".repeat(64)
  let changed = 0
  for (let first = 0; first < events; first += eventsInGroup) {
    const count = Math.min(eventsInGroup, events - first)
    const before = changed
    changed = dueBefore(first + count)
    yield* storeAll(changed - before, (number) => ({
      subject: `$KV.${names.buckets.endpoints}.bench.${changedBy(before + number + 1)?.id}`,
      body: "{}",
      headers: []
    }))
    yield* storeAll(count, (number) => ({
      ...{ subject: names.subjects.event("bench", "invoice.paid"), body },
      headers: [["Nats-Msg-Id", `bench.event-${first + number + 1}`]]
    }))
  }
  const times = yield* storedTimes(names.events, names.subjects.allEvents)
  const bucket = names.buckets.endpoints
  const changedAt = yield* storedTimes(`KV_${bucket}`, `$KV.${bucket}.>`)
  let seq = 0
  let directory = 0
  const facts: Array<ReturnType<typeof changeOf> | ReturnType<typeof factsOf>[number]> = []
  /** Returns the facts of the next event, preceded by the changes made before it. */
  const makeMore = () => {
    seq++
    const eventAt = times.get(seq) ?? 0
    const due = dueBefore(seq)
    while (directory < due) {
      const endpoint = changedBy(++directory)
      if (endpoint === undefined) continue
      facts.push(changeOf(endpoint, directory, changedAt.get(directory) ?? eventAt))
    }
    facts.push(...factsOf(seq, eventAt, endpoints, directory, at))
  }
  let used = 0
  const count = revisions + events * (1 + fanOut) + Math.ceil((events * fanOut) / failing)
  yield* storeAll(count, () => {
    if (used === facts.length) {
      facts.length = 0
      used = 0
      makeMore()
    }
    const fact = facts[used++]
    if (fact === undefined) throw new Error("there are fewer facts than were counted")
    return {
      subject: names.subjects.fact("bench", fact.endpoint, fact.mood, fact.kind),
      body: fact.body,
      headers: [["Nats-Msg-Id", fact.id]]
    }
  })
  return { events, facts: count }
})
