import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readStream, seeStream } from "../../broker/scan.ts"
import { originStreams } from "../../domain/backlog-message.ts"
import type { Addressee } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { factResult } from "../../domain/fact.ts"
import { rawFields } from "../../history/delivery-facts.ts"
import { locate, roundKeyOf } from "../../history/locate.ts"
import { type RoundsUnderWay, storeUnderWay } from "../../history/rounds-under-way.ts"
import { readBackupFile } from "./backup-files.ts"
import type { BackupFile, Manifest } from "./manifest.ts"
import { restoreMissingRetries } from "./missing-retries.ts"
import {
  deliveriesIn,
  readTail,
  storeAgain,
  storeInBacklog,
  type TailDelivery,
  type TailMessage
} from "./tail.ts"

/** What a restore did in addition to making the streams from their copies. */
export interface Mended {
  /** Deliveries that moved while they were copied, and were stored where they had moved to. */
  readonly moved: number
  /** Deliveries that had failed after their queue and backlog were copied, and were stored again. */
  readonly queuedAgain: number
  /** Dead letters that were removed, as the history does not know them: their deliveries go on. */
  readonly deadLettersRemoved: number
  /** Replays and redeliveries that were under way: a worker finishes what they had claimed. */
  readonly roundsTaken: number
}

/** Concurrent publications of one tail. */
const maxConcurrentStores = 64

/** Stores what came into a bucket while it was copied: the last of each key. */
export const restoreTail = Effect.fnUntraced(function* (directory: string, tail: BackupFile) {
  const messages = yield* Effect.flatMap(readBackupFile(directory, tail), readTail)
  const newest = new Map(messages.map((message) => [message.subject, message]))
  yield* Effect.forEach(newest.values(), storeAgain, {
    concurrency: maxConcurrentStores,
    discard: true
  })
})

/** What was stored in a partition's streams after their copies. */
interface PartitionTails {
  readonly queue: ReadonlyArray<TailMessage>
  readonly backlog: ReadonlyArray<TailMessage>
}

/**
 * Stores what moved in a partition while it was copied, unless its delivery has ended since or is in
 * one of the copies. Returns how many.
 */
const restoreMoved = Effect.fnUntraced(function* (
  partition: number,
  { backlog, queue }: PartitionTails,
  { historyFrom }: Manifest
) {
  const { names } = yield* Broker
  const streams = originStreams(names, partition)
  /**
   * By endpoint and round: of what moved twice, the last place. A backlog still has for a while what
   * has left it.
   */
  const wanted = new Map<string, TailDelivery>()
  const keyOf = (of: Addressee, round: string) => `${endpointKey(of.tenant, of.endpoint)} ${round}`
  const events = new Set<number>()
  const endpoints = new Map<string, Addressee>()
  const unreadable = new Set<TailMessage>()
  for (const message of [...backlog, ...queue]) {
    const deliveries = deliveriesIn(message, streams)
    if (deliveries === undefined) unreadable.add(message)
    for (const of of deliveries ?? []) {
      wanted.set(keyOf(of, roundKey(of)), of)
      events.add(of.eventSeq)
      endpoints.set(endpointKey(of.tenant, of.endpoint), of)
    }
  }
  // Nothing tells whether the copies hold what is in them.
  const store = (message: TailMessage, deliveries: ReadonlyArray<TailDelivery>) =>
    storeInBacklog(names.backlog(partition), message, deliveries, streams)
  for (const message of queue) if (unreadable.has(message)) yield* storeAgain(message)
  for (const message of backlog) if (unreadable.has(message)) yield* store(message, [])
  if (wanted.size === 0) return 0
  yield* locate(
    {
      within: { partition },
      endpoints: [...endpoints.values()],
      places: ["queue", "schedules", "backlog", "history"],
      historySince: { fromSeq: Math.max(1, historyFrom) },
      isWanted: (eventSeq) => events.has(eventSeq)
    },
    (sighting) => {
      const hasEnded = sighting.where !== "history" || sighting.fact.kind !== "attempt-failed"
      if (hasEnded) wanted.delete(keyOf(sighting, roundKeyOf(sighting)))
      return wanted.size === 0
    }
  )
  const missing = Map.groupBy(wanted.values(), ({ message }) => message)
  yield* Effect.forEach(
    queue.filter((message) => missing.has(message)),
    storeAgain,
    { concurrency: maxConcurrentStores, discard: true }
  )
  // One after the other: each counts what its endpoint's backlog holds.
  yield* Effect.forEach(
    backlog,
    (message) => {
      const deliveries = missing.get(message)
      return deliveries === undefined ? Effect.void : store(message, deliveries)
    },
    { discard: true }
  )
  return wanted.size
})

/** Removes dead letters of which the history has no fact: theirs came after it was copied. */
const removeUnknownLetters = Effect.fnUntraced(function* ({ deadBefore, historyFrom }: Manifest) {
  const { deleteMessage, names } = yield* Broker
  const unknown = new Set<number>()
  yield* seeStream(
    { stream: names.dead, subjects: [">"], fromSeq: deadBefore + 1, headersOnly: true },
    ({ seq }) => {
      unknown.add(seq)
      return false
    }
  )
  if (unknown.size === 0) return 0
  const kind = "dead-lettered"
  const subjects = [names.subjects.fact("*", "*", factResult(kind), kind)]
  yield* seeStream({ stream: names.history, subjects, fromSeq: historyFrom + 1 }, (message) => {
    const { dead } = rawFields(message.string())
    if (typeof dead === "number") unknown.delete(dead)
    return unknown.size === 0
  })
  yield* Effect.forEach(unknown, (seq) =>
    deleteMessage("remove a dead letter without a fact", names.dead, seq)
  )
  return unknown.size
})

/**
 * Notes the replays and redeliveries of which the history has claims since the backup was begun: what
 * they claimed may have no message in the copies.
 */
const takeRounds = Effect.fnUntraced(function* ({ historyFrom }: Manifest) {
  const { names } = yield* Broker
  const found = new Map<string, Omit<RoundsUnderWay, "v" | "at">>()
  for (const kind of ["redelivered", "replayed"] as const) {
    const subjects = [names.subjects.fact("*", "*", factResult(kind), kind)]
    yield* readStream({ stream: names.history, subjects, fromSeq: historyFrom + 1 }).pipe(
      Stream.runForEach((message) =>
        Effect.sync(() => {
          const { by, endpoint, tenant } = rawFields(message.string())
          if (typeof tenant !== "string" || typeof endpoint !== "string") return
          const key = `${kind}.${endpointKey(tenant, endpoint)}`
          const behind = message.seq - 1
          const asker = typeof by === "string" ? by : "restore"
          if (!found.has(key)) found.set(key, { kind, tenant, endpoint, behind, by: asker })
        })
      )
    )
  }
  let number = 0
  for (const rounds of found.values()) yield* storeUnderWay(`restored-${number++}`, rounds)
  return found.size
})

/** Makes the streams agree, which were copied one after the other. */
export const mend = Effect.fnUntraced(function* (directory: string, manifest: Manifest) {
  const { names } = yield* Broker
  const tailOf = Effect.fnUntraced(function* (name: string) {
    const stream = manifest.streams.find((one) => one.name === name)
    // A backup of an earlier commit has none of its backlogs.
    if (stream?.tail === undefined) return []
    return yield* Effect.flatMap(readBackupFile(directory, stream.tail), readTail)
  })
  let moved = 0
  for (let index = 0; index < manifest.partitions; index++) {
    const queue = yield* tailOf(names.deliveries(index))
    const backlog = yield* tailOf(names.backlog(index))
    moved += yield* restoreMoved(index, { queue, backlog }, manifest)
  }
  return {
    moved,
    deadLettersRemoved: yield* removeUnknownLetters(manifest),
    // After those that moved, and the dead letters: what is open is known then.
    queuedAgain: yield* restoreMissingRetries(manifest),
    roundsTaken: yield* takeRounds(manifest)
  } satisfies Mended
})
