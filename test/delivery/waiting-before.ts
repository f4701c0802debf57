import { assert } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { scanQueue } from "../../src/broker/scan.ts"
import { eraseRecord, readRecord, writeRecord } from "../../src/delivery/retry/retry-records.ts"
import type { Delivery, Progress } from "../../src/domain/delivery.ts"
import { deliveryHeaders, untried } from "../../src/domain/delivery.ts"
import type { Fact, FactKind, Place } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import type { Decision, RetryRecord } from "../../src/domain/retry-record.ts"
import { Facts } from "../../src/history/facts.ts"

export const hour = 3_600_000
export const now = Date.now()
/** Partitions before the change. */
export const from = 4
const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`
export const endpoints = [0, 1, 4, 5].map((index) => `hook-${index}`)

export const delivery = (
  endpoint: string,
  eventSeq: number,
  progress: Progress = untried
): Delivery => ({
  tenant: "acme",
  endpoint,
  event: `acme-${eventSeq}`,
  eventSeq,
  eventAt: now,
  type: "invoice.paid",
  round: "0",
  began: now,
  deadline: now + 72 * hour,
  generation: "g",
  revision: 7,
  content: { contentType: "text/plain", traceparent },
  progress
})

export const tried = (at: number): Progress => ({ attempts: 3, lastStatus: 503, nextAttemptAt: at })

type Kind = "deliveries" | "backlog"

/** Puts a delivery where it waits while there are so many partitions, and says where that is. */
export const put = Effect.fnUntraced(function* (
  kind: Kind,
  it: Delivery,
  at?: number,
  count = from
) {
  const { names, publisher } = yield* natsClients
  const { readMessage } = yield* Broker
  const { endpoint, eventSeq, tenant } = it
  const partition = partitionOf(tenant, endpoint, count)
  const target =
    kind === "backlog"
      ? names.subjects.backlog(partition, tenant, endpoint)
      : names.subjects.delivery(partition, tenant, endpoint)
  const headers = deliveryHeaders(it, `${kind}.${endpoint}.${eventSeq}`)
  const body = `${eventSeq} for ${endpoint}`
  const { seq, stream } = yield* at === undefined
    ? publisher.publish(target, body, headers)
    : publisher.publish(names.subjects.schedule(partition, `${endpoint}-${eventSeq}`), body, [
        ...headers,
        ["Nats-Schedule", `@at ${new Date(at).toISOString()}`],
        ["Nats-Schedule-Target", target]
      ])
  const message = yield* readMessage("look at what waits", stream, { seq })
  return { seq, stream, at: message?.time.getTime() ?? 0 } satisfies Place
})

const factOf = (kind: FactKind, { endpoint, eventSeq }: Delivery, from: Place): Fact => ({
  v: 1,
  kind,
  at: now,
  tenant: "acme",
  endpoint,
  eventSeq,
  eventAt: now,
  round: "0",
  attempt: 3,
  from
})

/** Writes down what was decided about a waiting delivery. */
const decide = Effect.fnUntraced(function* (
  place: Place,
  it: Delivery,
  decision: Decision,
  outcome?: RetryRecord["outcome"]
) {
  const record: RetryRecord = {
    v: 1,
    progress: tried(decision._tag === "Nak" ? decision.at : now - hour),
    decision,
    decidedAt: Date.now(),
    ...(outcome === undefined ? {} : { outcome })
  }
  yield* writeRecord(place, record, it.deadline)
})

/** One of each way in which an endpoint's deliveries may wait. */
export const fill = Effect.fnUntraced(function* (endpoint: string) {
  const facts = yield* Facts
  yield* put("deliveries", delivery(endpoint, 1))
  const nak = delivery(endpoint, 2)
  const nakAt = yield* put("deliveries", nak)
  const untold = { fact: factOf("attempt-failed", nak, nakAt), id: `untold.${endpoint}` }
  yield* decide(nakAt, nak, { _tag: "Nak", at: now + hour }, untold)
  const trying = delivery(endpoint, 3)
  yield* decide(yield* put("deliveries", trying), trying, { _tag: "Trying", times: 2 })
  const ended = delivery(endpoint, 4)
  const endedAt = yield* put("deliveries", ended)
  yield* facts.append(factOf("delivered", ended, endedAt), `ended.${endpoint}`)
  const dead = delivery(endpoint, 5)
  yield* decide(yield* put("deliveries", dead), dead, { _tag: "Dead", reason: "attempts" })
  const later = delivery(endpoint, 6, tried(now + 2 * hour))
  yield* put("deliveries", later, now + 2 * hour)
  for (const eventSeq of [7, 8, 9])
    yield* put("backlog", delivery(endpoint, eventSeq, tried(now - hour)))
  const endedThere = delivery(endpoint, 10)
  const there = yield* put("backlog", endedThere)
  yield* facts.append(factOf("dead-lettered", endedThere, there), `ended-there.${endpoint}`)
  const forgotten = delivery(endpoint, 11)
  yield* eraseRecord(yield* put("deliveries", forgotten))
})

/** All that waits, as text: where, for whom, and what is known of it. */
export const inventory = Effect.fnUntraced(function* (partitions: number) {
  const { names } = yield* Broker
  const found: Array<string> = []
  for (let partition = 0; partition < partitions; partition++)
    for (const stream of [names.deliveries(partition), names.backlog(partition)]) {
      const messages = yield* Stream.runCollect(scanQueue(stream, ">"))
      for (const { data, header, seq, subject, time } of messages) {
        const target = header.get("Nats-Schedule-Target") || subject
        const [kind, index, tenant = "", endpoint = ""] = target.split(".").slice(-4)
        assert.strictEqual(Number(index), partition)
        assert.strictEqual(partitionOf(tenant, endpoint, partitions), partition)
        const at = header.get("Nats-Schedule").slice(4)
        assert.isBelow(Date.parse(at) || 0, now + 3 * hour, "none is kept from firing")
        const eventSeq = Number(header.get("petrel-event-seq"))
        assert.strictEqual(new TextDecoder().decode(data), `${eventSeq} for ${endpoint}`)
        const progress = JSON.parse(header.get("petrel-progress") || "{}")
        const record = yield* readRecord({ stream, seq, at: time.getTime() })
        const decided = record?.decision
        const waits = at !== "" ? Date.parse(at) : decided?._tag === "Nak" ? decided.at : 0
        found.push(
          [
            endpoint,
            eventSeq,
            kind,
            record?.progress.attempts ?? progress.attempts ?? 0,
            waits,
            decided?._tag === "Trying" ? "trying" : "-",
            header.get("petrel-deadline"),
            header.get("traceparent"),
            header.get("content-type"),
            header.get("petrel-revision")
          ].join(" ")
        )
      }
    }
  return found
})

export const expected = (endpoint: string): ReadonlyArray<string> => {
  const rest = `${now + 72 * hour} ${traceparent} text/plain 7`
  return [
    `${endpoint} 1 deliveries 0 0 - ${rest}`,
    `${endpoint} 2 deliveries 3 ${now + hour} - ${rest}`,
    `${endpoint} 3 deliveries 3 0 trying ${rest}`,
    `${endpoint} 6 deliveries 3 ${now + 2 * hour} - ${rest}`,
    ...[7, 8, 9].map((eventSeq) => `${endpoint} ${eventSeq} backlog 3 0 - ${rest}`)
  ]
}
