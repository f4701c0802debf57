/* A history as a worker would leave it, made up: what an audit reads, without the requests. */
import { Clock, Effect, Stream } from "effect"
import { Broker } from "../src/broker/connection.ts"
import { readStream, storedAt } from "../src/broker/scan.ts"
import { storeAll } from "./rig.ts"

const hour = 60 * 60 * 1000
/** Every twentieth delivery fails once. */
const failing = 20

export interface MadeUp {
  readonly events: number
  /** Deliveries of each. */
  readonly fanOut: number
}

/** Facts that there are of one event and its deliveries. */
const factsOf = (seq: number, eventAt: number, endpoints: ReadonlyArray<string>, at: number) => {
  const event = `bench.event-${seq}`
  const deadline = at + 72 * hour
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
  const chosen = endpoints.map((id) => ({ id, generation: "bench", revision: 1, deadline }))
  const plan = { part: 0, last: true, endpoints: chosen, skipped: [] }
  const ends = endpoints.flatMap((endpoint, index) => {
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

/** Stores events of 64 bytes, their plans and the ends of all their deliveries. */
export const storeHistory = Effect.fnUntraced(function* ({ events, fanOut }: MadeUp) {
  const { names } = yield* Broker
  const at = yield* Clock.currentTimeMillis
  const endpoints = Array.from({ length: fanOut }, (_, index) => `endpoint-${index}`)
  const body = "x".repeat(64)
  yield* storeAll(events, (number) => ({
    ...{ subject: names.subjects.event("bench", "invoice.paid"), body },
    headers: [["Nats-Msg-Id", `bench.event-${number + 1}`]]
  }))
  const times = new Map<number, number>()
  yield* Stream.runForEach(
    readStream({ stream: names.events, subjects: [names.subjects.allEvents], headersOnly: true }),
    (message) => Effect.sync(() => times.set(message.seq, storedAt(message)))
  )
  let seq = 0
  let facts: ReturnType<typeof factsOf> = []
  let used = 0
  const count = events * (1 + fanOut) + Math.ceil((events * fanOut) / failing)
  yield* storeAll(count, () => {
    if (used === facts.length) {
      facts = factsOf(++seq, times.get(seq) ?? 0, endpoints, at)
      used = 0
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
