import type { StreamInfo, StreamSource } from "@nats-io/jetstream"
import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker.ts"
import { BrokerError, streamNotFound } from "../broker-error.ts"
import { firstSince } from "../scan.ts"
import { readValue, type StoredValue, writeValue } from "../values.ts"
import { compareSources } from "./comparison.ts"
import { Divergence } from "./divergence.ts"
import { lostOf, readLinks, restartOf } from "./links.ts"

/** What was found out about sources, kept for the next worker, for `petrel init` and the status. */
export const SourceRecord = Schema.Struct({
  v: Schema.Literal(1),
  /** By source: what was copied of it until then was compared, ms since the epoch. */
  comparedUntil: Schema.Record(Schema.String, Schema.Number),
  /** Sources that are to be started again. */
  divergences: Schema.Array(Divergence)
})
export type SourceRecord = typeof SourceRecord.Type

/** By default the broker syncs what it stores every 2 minutes: a power cut loses that much, ms. */
const syncMs = 2 * 60_000
/** How far back what was compared before is compared again where a source lost its end, ms. */
const maxBackMs = 32 * 60_000

/** Where the bucket of workers has it. */
const key = "sources"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(SourceRecord))

const nothingKnown: SourceRecord = { v: 1, comparedUntil: {}, divergences: [] }

const recordIn = (text: string): SourceRecord => Option.getOrElse(decode(text), () => nothingKnown)

/** Reads the record; an empty one if there is none. */
export const readRecord = Effect.gen(function* () {
  const { names } = yield* Broker
  const entry = yield* readValue(names.buckets.workers, key)
  return recordIn(entry?.string() ?? "")
})

export const writeRecord = Effect.fnUntraced(function* (record: SourceRecord) {
  const { names } = yield* Broker
  yield* writeValue(names.buckets.workers, key, JSON.stringify(record))
})

/** The streams that copy from others. */
export const copyingStreams = Effect.map(Broker, ({ names }) => [names.events, names.configuration])

/**
 * Compares what was copied since the last comparison. The time stays where it is for a source with a
 * difference, or that cannot be read.
 *
 * @param again whether sources with a known difference are compared again.
 */
export const compareNew = Effect.fnUntraced(function* (before: SourceRecord, again: boolean) {
  const { streamInfo } = yield* Broker
  const comparedUntil: Record<string, number> = { ...before.comparedUntil }
  const divergences: Array<Divergence> = []
  const unread = new Map<string, BrokerError>()
  for (const stream of yield* copyingStreams) {
    const { config } = yield* streamInfo(`look at ${stream}`, stream)
    const sources = config.sources ?? []
    const known = again ? [] : stillOpen(before.divergences, stream, sources)
    divergences.push(...known)
    const wanted = sources
      .map(({ name }) => name)
      .filter((name) => known.every(({ source }) => source !== name))
    if (wanted.length === 0) continue
    const since = Math.min(...wanted.map((name) => comparedUntil[name] ?? 0))
    const compareFrom = Effect.fnUntraced(function* (time: number) {
      const from = yield* firstSince(stream, Math.max(0, time))
      return yield* compareSources(stream, { from, isWanted: (name) => wanted.includes(name) })
    })
    let found = yield* compareFrom(since)
    // What was compared is lost, too, where the broker had not synced it.
    const isBefore = since > 0
    for (let backMs = syncMs; isBefore && found.isStartOpen && backMs <= maxBackMs; backMs *= 4)
      found = yield* compareFrom(since - backMs)
    divergences.push(...found.divergences)
    for (const [source, error] of found.unread) unread.set(source, error)
    for (const source of wanted)
      if (
        found.at !== undefined &&
        !found.unread.has(source) &&
        found.divergences.every((one) => one.source !== source)
      )
        comparedUntil[source] = Math.max(comparedUntil[source] ?? 0, found.at)
  }
  const record: SourceRecord = { v: 1, comparedUntil, divergences }
  return { record, unread }
})

/** Returns the differences whose source was not started again since. */
export const stillOpen = (
  divergences: ReadonlyArray<Divergence>,
  stream: string,
  sources: ReadonlyArray<StreamSource>
): ReadonlyArray<Divergence> =>
  divergences.filter(
    ({ restarts, source, target }) =>
      target === stream &&
      sources.some((one) => one.name === source && (restartOf(one)?.number ?? 0) === restarts)
  )

/**
 * Reads which sources lost what was copied from them: what the last comparison found, and what the
 * ends of the streams show without one. Returns the sources that answered as well, and the names of
 * those that are missing.
 *
 * @param workers the values of the bucket of workers.
 * @param infoOf what the leader of a stream has said of it; undefined where that is not known.
 */
export const surveySources = Effect.fnUntraced(function* (
  workers: ReadonlyArray<StoredValue>,
  infoOf: (stream: string) => StreamInfo | undefined
) {
  const { divergences } = recordIn(workers.find((value) => value.key === key)?.text ?? "")
  const found = yield* Effect.forEach(
    yield* copyingStreams,
    (stream) =>
      Effect.map(readLinks(stream, infoOf(stream)), ({ info, links }) => {
        const known = stillOpen(divergences, stream, info.config.sources ?? [])
        const isKnown = (source: string) => known.some((one) => one.source === source)
        const lost = links.flatMap(lostOf).filter(({ source }) => !isKnown(source))
        return { divergences: [...known, ...lost], links }
      }),
    { concurrency: "unbounded" }
  )
  const links = found.flatMap((one) => one.links)
  return {
    divergences: found.flatMap((one) => one.divergences),
    streams: links.flatMap(({ info }) => (info instanceof BrokerError ? [] : info)),
    missing: links.flatMap(({ info, link }) =>
      info instanceof BrokerError && info.code === streamNotFound ? link.source : []
    )
  }
})
