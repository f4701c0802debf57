import { Effect, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { readThrough } from "../broker/bulk-read.ts"
import { countSince } from "../broker/survey-streams.ts"
import { maxClockSkewMs } from "../domain/clock-bounds.ts"
import { readDeadLetters } from "./dead-letters.ts"
import { numberIn, readRecord } from "./fact-record.ts"
import { readLateDeliveries } from "./late-deliveries.ts"

/** Maximum number of facts, and of dead letters, that are read for a count: a second's worth. */
const maxFacts = 50_000
const maxLetters = 20_000

/** What is known of the dead letters without reading one. */
interface StoredDeadLetters {
  readonly stored: number
  /** Sequence in DEAD of the oldest. */
  readonly firstId: number
  /** When the oldest was stored, ms since the epoch. */
  readonly oldestAt: number
  /** Number of those removed from between the others. */
  readonly removed: number
}

/** Reads the ids of the dead letters that facts of a kind are about. */
const idsIn = Effect.fnUntraced(function* (kind: "redelivered" | "discarded", since: number) {
  const { firstSince, names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  const ids: Array<number> = []
  const from = Math.max(1, state.first_seq, yield* firstSince(names.history, since))
  const subjects = [names.subjects.fact("*", "*", "ok", kind)]
  const range = { stream: names.history, subjects, from, to: state.last_seq }
  yield* readThrough(range, ({ message }) => {
    const id = numberIn(readRecord(message.string())?.dead)
    if (id !== undefined) ids.push(id)
  })
  return ids
})

/** Reads the ids of the dead letters whose rounds were delivered late. */
const lateIds = Effect.gen(function* () {
  const late = yield* readLateDeliveries({})
  return yield* readDeadLetters({}).pipe(
    Stream.filter(({ delivery }) => late(delivery) !== undefined),
    Stream.map(({ id }) => id),
    Stream.runCollect
  )
})

/**
 * Counts the dead letters that were neither sent again nor delivered late. Reads no dead letter
 * unless something was delivered late, and of the history only what was sent again since the oldest
 * dead letter was stored. Undefined if that is too much to read, or the broker does not say.
 */
export const countOpen = Effect.fnUntraced(function* (letters: StoredDeadLetters) {
  const { firstId, oldestAt, removed, stored } = letters
  if (stored === 0) return 0
  const { names } = yield* Broker
  const since = oldestAt - maxClockSkewMs
  const count = (kind: string, from: number) =>
    countSince(names.history, from, names.subjects.fact("*", "*", "ok", kind))
  const [again, late, discarded] = yield* Effect.all(
    [
      count("redelivered", since),
      count("delivered-late", 0),
      removed === 0 ? Effect.succeed(0) : count("discarded", since)
    ],
    { concurrency: 3 }
  )
  if (again === undefined || late === undefined || discarded === undefined) return undefined
  // Nothing was ever removed, and a dead letter is sent again once: no fact needs to be read.
  if (firstId === 1 && removed === 0 && late === 0) return Math.max(0, stored - again)
  if (again + discarded > maxFacts || (late > 0 && Math.max(late, stored) > maxLetters))
    return undefined
  const settled = new Set<number>()
  if (again > 0) for (const id of yield* idsIn("redelivered", since)) settled.add(id)
  if (late > 0) for (const id of yield* lateIds) settled.add(id)
  if (settled.size > 0 && discarded > 0)
    for (const id of yield* idsIn("discarded", since)) settled.delete(id)
  let gone = 0
  for (const id of settled) if (id < firstId) gone++
  return Math.max(0, stored - settled.size + gone)
})
