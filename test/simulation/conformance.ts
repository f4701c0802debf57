/* The same random operations, carried out through the Broker interface on any broker. */
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import type { BrokerError } from "../../src/broker/broker-error.ts"
import type { PublishError } from "../../src/broker/publication.ts"
import { defaultTopology, type TopologyOptions } from "../../src/broker/topology.ts"
import type { Names } from "../../src/domain/names.ts"
import type { Chance } from "./chance.ts"
import { chanceOf } from "./chance.ts"

/** The installation that both brokers get: no ack wait ends meanwhile, and DEAD becomes full. */
export const conformanceTopology: TopologyOptions = {
  ...defaultTopology,
  partitions: 1,
  ackWait: 60_000,
  deadBytes: 20_000
}

/** The last sequence stored on each subject, for expectations of it. */
type LastSeqs = Map<string, number>

/** One operation. Its outcome is compared as text. */
export interface Operation {
  readonly what: string
  readonly run: (last: LastSeqs) => Effect.Effect<unknown, PublishError | BrokerError, Broker>
}

interface Readable {
  readonly seq: number
  readonly subject: string
  readonly string: () => string
}

const brief = (message: Readable | null) =>
  message === null ? null : [message.seq, message.subject, message.string().slice(0, 12)]

const endpoints = ["a", "b", "c"]

/** Draws operations on the streams of an installation. */
export const operations = (seed: number, count: number, names: Names): ReadonlyArray<Operation> => {
  const chance = chanceOf(seed, "conformance")
  const { buckets, deliveries, events, history, subjects } = names
  const onSubjects = [
    ...endpoints.flatMap((endpoint) => [
      subjects.delivery(0, "acme", endpoint),
      subjects.backlog(0, "acme", endpoint),
      subjects.dead("acme", endpoint),
      `$KV.${buckets.endpoints}.acme.${endpoint}`,
      `$KV.${buckets.retries}.acme.${endpoint}`
    ]),
    subjects.fact("acme", "a", "ok", "delivered"),
    subjects.fact("acme", "a", "failure", "attempt-failed"),
    subjects.event("acme", "x.y")
  ]
  const streams = [
    deliveries(0),
    names.backlog(0),
    history,
    names.dead,
    events,
    `KV_${buckets.endpoints}`,
    `KV_${buckets.retries}`
  ]
  const filters = [
    ">",
    subjects.backlogOf(0),
    subjects.deliveriesOf(0),
    subjects.fact("*", "*", "ok", "*"),
    `$KV.${buckets.endpoints}.>`
  ]
  const anyFilter = () => (chance.isHit(0.5) ? chance.pick(filters) : chance.pick(onSubjects))
  const seqOf = (most: number) => 1 + chance.int(most)
  const stream = () => chance.pick(streams)
  const kinds: ReadonlyArray<(n: number) => Operation> = [
    ...Array.from({ length: 4 }, () => (n: number) => publish(chance, n, chance.pick(onSubjects))),
    () => {
      const of = stream()
      const seq = seqOf(40)
      return read(`read ${of} ${seq}`, of, { seq })
    },
    () => {
      const of = stream()
      const last_by_subj = anyFilter()
      return read(`last of ${of} ${last_by_subj}`, of, { last_by_subj })
    },
    () => {
      const of = stream()
      const query = { seq: seqOf(40), next_by_subj: anyFilter() }
      return read(`next of ${of} ${query.next_by_subj} ${query.seq}`, of, query)
    },
    () => {
      const of = chance.pick(streams.slice(0, 4))
      return batch(of, anyFilter(), seqOf(40), 1 + chance.int(8))
    },
    () =>
      batchSince(
        chance.pick([history, names.backlog(0), names.dead]),
        seqOf(8),
        chance.int(2) * 60_000
      ),
    () => info(stream(), chance.pick(filters)),
    () => remove(chance, chance.pick(streams.slice(0, 2)), chance.pick(onSubjects), seqOf(40)),
    () => pull(deliveries(0), 1 + chance.int(4), chance.pick(["ack", "nak", "keep"] as const)),
    () => range(chance.pick([history, names.backlog(0), events]), anyFilter(), seqOf(20))
  ]
  return Array.from({ length: count }, (_, n) => chance.pick(kinds)(n))
}

const publish = (chance: Chance, n: number, subject: string): Operation => {
  const headers: Array<readonly [string, string]> = []
  if (chance.isHit(0.4)) headers.push(["Nats-Msg-Id", `id${chance.int(30)}`])
  if (subject.startsWith("$KV.") && chance.isHit(0.2))
    headers.push(["KV-Operation", "PURGE"], ["Nats-Rollup", "sub"])
  else if (chance.isHit(0.1)) headers.push(["Nats-Rollup", "sub"])
  const expects = chance.isHit(0.25) ? chance.pick(["none", "last", "other"] as const) : undefined
  const body = `${n}`.padEnd(chance.isHit(0.05) ? 4_000 : 5, ".")
  return {
    what: `publish ${subject} ${headers} ${expects ?? ""}`,
    run: (last) =>
      Effect.gen(function* () {
        const known = last.get(subject) ?? 0
        const expected = expects === "none" ? 0 : expects === "last" ? known : known + 1
        const all =
          expects === undefined
            ? headers
            : [...headers, ["Nats-Expected-Last-Subject-Sequence", String(expected)] as const]
        const { duplicate, seq } = yield* (yield* Broker).publish(subject, body, all)
        if (!duplicate) last.set(subject, seq)
        return [seq, duplicate]
      })
  }
}

const read = (
  what: string,
  stream: string,
  query: Parameters<Broker["Service"]["readMessage"]>[2]
): Operation => ({
  what,
  run: () =>
    Effect.flatMap(Broker, (broker) => Effect.map(broker.readMessage("read", stream, query), brief))
})

const batch = (stream: string, subject: string, seq: number, size: number): Operation => ({
  what: `batch ${stream} ${subject} ${seq} ${size}`,
  run: () =>
    Effect.flatMap(Broker, (broker) =>
      Effect.map(broker.batch(stream, subject, seq, { batch: size, max_bytes: 100_000 }), (list) =>
        list.map((message) => [brief(message), message.header.get("Nats-Num-Pending")])
      )
    )
})

/**
 * A batch from a time on: when a message was stored, or later. It is the same as one from the first
 * message since then: which ones share a ms differs from broker to broker.
 */
const batchSince = (stream: string, seq: number, laterMs: number): Operation => ({
  what: `batch ${stream} ${laterMs} ms after ${seq}`,
  run: () =>
    Effect.gen(function* () {
      const { batch, firstSince, readMessage } = yield* Broker
      const message = yield* readMessage("read", stream, { seq, next_by_subj: ">" })
      if (message === null) return undefined
      const time = message.time.getTime() + laterMs
      const limits = { batch: 100, max_bytes: 100_000 }
      const since = yield* batch(stream, ">", { time }, limits)
      const same = yield* batch(stream, ">", yield* firstSince(stream, time), limits)
      const isSame = JSON.stringify(since.map(brief)) === JSON.stringify(same.map(brief))
      return [isSame, since.length > 0]
    })
})

const info = (stream: string, subjects_filter: string): Operation => ({
  what: `info ${stream} ${subjects_filter}`,
  run: () =>
    Effect.flatMap(Broker, (broker) =>
      Effect.map(broker.streamInfo("look", stream, { subjects_filter }), ({ state }) => [
        state.messages,
        state.first_seq,
        state.last_seq,
        state.num_subjects ?? 0,
        Object.entries(state.subjects ?? {}).sort()
      ])
    )
})

const remove = (chance: Chance, stream: string, filter: string, seq: number): Operation =>
  chance.isHit(0.5)
    ? {
        what: `purge ${stream} ${filter} ${seq}`,
        run: () =>
          Effect.flatMap(Broker, (broker) =>
            Effect.as(broker.purge("purge", stream, { filter, seq }), "purged")
          )
      }
    : {
        what: `delete ${stream} ${seq}`,
        run: () => Effect.flatMap(Broker, (broker) => broker.deleteMessage("delete", stream, seq))
      }

/** One pull, whose messages are all answered in one way. */
const pull = (stream: string, messages: number, how: "ack" | "nak" | "keep"): Operation => ({
  what: `pull ${messages} and ${how}`,
  run: () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const got: Array<unknown> = []
      let isAsked = false
      yield* broker.pull({
        name: "conformance",
        stream,
        kind: "deliveries",
        consumer: broker.names.deliverConsumer,
        remake: Effect.void,
        demand: Effect.sync(() => {
          isAsked = true
          return { messages, bytes: 100_000 }
        }),
        stopping: () => isAsked && got.length >= 0,
        tooLarge: () => {},
        take: (message, header) => {
          got.push([message.seq, message.subject, message.deliveryCount, header("nats-msg-id")])
          if (how === "ack") message.ack()
          else if (how === "nak") message.nak(3_600_000)
        }
      })
      yield* broker.flush
      return got
    })
})

const range = (stream: string, subject: string, from: number): Operation => ({
  what: `range ${stream} ${subject} ${from}`,
  run: () =>
    Effect.scoped(
      Effect.gen(function* () {
        const got: Array<number> = []
        yield* (yield* Broker).see({ stream, subjects: [subject] }, from, ({ seq }) => {
          got.push(seq)
          return false
        })
        return got
      })
    )
})

/** Carries operations out one after the other, and returns their outcomes as text. */
export const outcomesOf = Effect.fnUntraced(function* (
  all: ReadonlyArray<Operation>,
  last: LastSeqs
) {
  const outcomes: Array<string> = []
  for (const { run } of all)
    outcomes.push(
      yield* Effect.match(run(last), {
        onFailure: (error) => `${error._tag} ${error.code ?? ""}`,
        onSuccess: (value) => JSON.stringify(value)
      })
    )
  return outcomes
})
