import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readStream, seeStream } from "../../broker/scan.ts"
import type { Addressee } from "../../domain/delivery.ts"
import { readRoundKey } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { factResult } from "../../domain/fact.ts"
import { rawFields } from "../../history/delivery-facts.ts"
import { locate, roundKeyOf } from "../../history/locate.ts"
import { type RoundsUnderWay, storeUnderWay } from "../../rounds/rounds-under-way.ts"
import { readBackupFile } from "./backup-files.ts"
import type { BackupFile, Manifest } from "./manifest.ts"
import { restoreMissingRetries } from "./missing-retries.ts"
import { deliveryNamed, readTail, storeAgain, type TailMessage } from "./tail.ts"

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

/**
 * Stores what moved into a queue while it was copied, unless its delivery has ended since or is in
 * one of the copies. Returns how many.
 */
const restoreMoved = Effect.fnUntraced(function* (
  partition: number,
  messages: ReadonlyArray<TailMessage>,
  { historyFrom }: Manifest
) {
  /** By endpoint and round: of what moved twice, the last place. */
  const wanted = new Map<string, TailMessage>()
  const keyOf = (of: ReturnType<typeof deliveryNamed>) =>
    `${endpointKey(of.tenant, of.endpoint)} ${roundKeyOf(of)}`
  const events = new Set<number | undefined>()
  const endpoints = new Map<string, Addressee>()
  for (const message of messages) {
    const of = deliveryNamed(message)
    wanted.set(keyOf(of), message)
    events.add(readRoundKey(roundKeyOf(of))?.eventSeq)
    endpoints.set(endpointKey(of.tenant, of.endpoint), of)
  }
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
      if (hasEnded) wanted.delete(keyOf(sighting))
      return wanted.size === 0
    }
  )
  yield* Effect.forEach(wanted.values(), storeAgain, {
    concurrency: maxConcurrentStores,
    discard: true
  })
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
  let moved = 0
  for (let index = 0; index < manifest.partitions; index++) {
    const stream = manifest.streams.find(({ name }) => name === names.deliveries(index))
    if (stream?.tail === undefined) continue
    const messages = yield* Effect.flatMap(readBackupFile(directory, stream.tail), readTail)
    moved += yield* restoreMoved(index, messages, manifest)
  }
  return {
    moved,
    deadLettersRemoved: yield* removeUnknownLetters(manifest),
    // After those that moved, and the dead letters: what is open is known then.
    queuedAgain: yield* restoreMissingRetries(manifest),
    roundsTaken: yield* takeRounds(manifest)
  } satisfies Mended
})
