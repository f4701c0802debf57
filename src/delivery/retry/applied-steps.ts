import { Clock, Effect, Option, Semaphore, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { readStream } from "../../broker/scan.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import type { PlacedDelivery, RoundIdentity } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { type Fact, placeName, slotOf } from "../../domain/fact.ts"
import type { Names } from "../../domain/names.ts"
import type { RetryRecord } from "../../domain/retry-record.ts"
import { rawFields, readFact } from "../../history/delivery-facts.ts"
import type { LocateQuery } from "../../history/locate.ts"
import { locate, roundKeyOf } from "../../history/locate.ts"
import { appliedSince } from "../../policy/decide.ts"
import { timers } from "../../time/timers.ts"

/*
 * A decision is applied in steps. After a crash, or a try with an unknown outcome, these functions
 * find out whether a step was done already. The broker's deduplication is not enough: it forgets
 * message ids after its window, and, for messages that have left their stream, with a restart.
 */

/**
 * The time from which a stream may hold what follows a decision, ms since the epoch. A sequence
 * would not do: a truncated stream reuses sequences.
 */
const consequencesSince = ({ place }: PlacedDelivery, decidedAt: number) =>
  Effect.map(
    Clock.currentTimeMillis,
    (now) => appliedSince(decidedAt, place.at, now) - maxClockSkewMs
  )

/** Matches facts about a round. */
const isAbout = (of: RoundIdentity) => {
  const key = roundKey(of)
  return ({ eventAt = 0, eventSeq = 0, round = "" }: Fact): boolean =>
    roundKey({ eventSeq, eventAt, round }) === key
}

/** An endpoint's failed attempts that were read from the history. */
interface KnownAttempts {
  /** Lets one search read at a time. */
  readonly one: Semaphore.Semaphore
  /** Where the read began, ms since the epoch. */
  since: number
  /** The sequence of the history at which it continues; undefined where none was read. */
  next: number | undefined
  /** Attempts, by `attemptKey`. */
  readonly attempts: Set<string>
}

const attemptKey = (of: RoundIdentity, attempt: number): string => `${roundKey(of)} ${attempt}`

/** How long read attempts are kept, ms: those who ask after a crash ask one after the other. */
const keepAttemptsMs = 60_000
/** Number of attempts that are kept, of all endpoints; beyond it all are read again. */
const maxKeptAttempts = 200_000

/**
 * Makes the search for the fact of the attempt that a record is about: true where the history holds
 * it. An endpoint's attempts are read once for all that ask: after a crash there may be thousands,
 * and each of them would read those of all others.
 */
export const makeIsAttemptRecorded = Effect.gen(function* () {
  const broker = yield* Broker
  const { names } = broker
  const byEndpoint = new Map<string, KnownAttempts>()
  let kept = 0

  const forget = (known: KnownAttempts): void => {
    kept -= known.attempts.size
    known.attempts.clear()
    known.since = Number.POSITIVE_INFINITY
    known.next = undefined
  }
  const note = (known: KnownAttempts, key: string): void => {
    if (known.attempts.has(key)) return
    if (kept >= maxKeptAttempts) for (const each of byEndpoint.values()) forget(each)
    known.attempts.add(key)
    kept++
  }
  const knownOf = (subject: string): KnownAttempts => {
    const before = byEndpoint.get(subject)
    if (before !== undefined) return before
    const known = {
      one: Semaphore.makeUnsafe(1),
      since: Number.POSITIVE_INFINITY,
      next: undefined,
      attempts: new Set<string>()
    }
    byEndpoint.set(subject, known)
    const end = () => {
      byEndpoint.delete(subject)
      forget(known)
    }
    timers.after(keepAttemptsMs, end).unref()
    return known
  }

  /**
   * Reads on in the history, from its beginning if that is earlier than what was read. Returns whether
   * an attempt is among what it has read.
   */
  const readOn = Effect.fnUntraced(function* (
    subject: string,
    known: KnownAttempts,
    since: number,
    wanted: string
  ) {
    let isFound = false
    if (since < known.since) {
      // Others were decided about before this one: from twice as long ago, few begin anew.
      const now = yield* Clock.currentTimeMillis
      known.since = since - Math.max(0, now - since)
      known.next = undefined
    }
    const { next } = known
    const start = next === undefined ? { fromTime: known.since } : { fromSeq: next }
    yield* readStream({ stream: names.history, subjects: [subject], ...start }).pipe(
      Stream.runForEach((message) =>
        Effect.sync(() => {
          const { attempt, eventAt, eventSeq, round } = rawFields(message.string())
          const key = attemptKey(
            { eventSeq: Number(eventSeq), eventAt: Number(eventAt), round: String(round) },
            Number(attempt)
          )
          isFound ||= key === wanted
          note(known, key)
          known.next = message.seq + 1
        })
      )
    )
    return isFound
  })

  return Effect.fnUntraced(function* (held: PlacedDelivery, { decidedAt, progress }: RetryRecord) {
    const { endpoint, tenant } = held.delivery
    const subject = names.subjects.fact(tenant, endpoint, "failure", "attempt-failed")
    const known = knownOf(subject)
    const key = attemptKey(held.delivery, progress.attempts)
    if (known.attempts.has(key)) return true
    const since = yield* consequencesSince(held, decidedAt)
    const search = Effect.suspend(() =>
      known.attempts.has(key) ? Effect.succeed(true) : readOn(subject, known, since, key)
    )
    return yield* known.one.withPermit(Effect.provideService(search, Broker, broker))
  })
})

/** A read of an endpoint's dead letters that has not begun. */
interface DeadLetterRead {
  /** Start of the read, ms since the epoch. */
  since: number
  /** Sequences in DEAD, by the place that each dead letter came from. */
  readonly found: Effect.Effect<ReadonlyMap<string, number>, BrokerError>
}

/**
 * Makes the search for the dead letter that a message became: its sequence in DEAD, or undefined.
 * Requests that arrive while an endpoint's dead letters are read are answered together by the next
 * read: after a crash there may be thousands.
 */
export const makeFindDeadLetter = Effect.gen(function* () {
  const broker = yield* Broker
  const { names } = broker
  const one = yield* Semaphore.make(1)
  const next = new Map<string, DeadLetterRead>()

  const begin = Effect.fnUntraced(function* (subject: string, since: number) {
    const read = Effect.gen(function* () {
      if (next.get(subject) === reading) next.delete(subject)
      const found = new Map<string, number>()
      yield* readStream({
        stream: names.dead,
        subjects: [subject],
        fromTime: reading.since,
        headersOnly: true
      }).pipe(
        Stream.runForEach(({ headers, seq }) =>
          Effect.sync(() => found.set(headers?.get("petrel-origin") ?? "", seq))
        )
      )
      return found
    }).pipe(Effect.provideService(Broker, broker))
    const reading: DeadLetterRead = { since, found: yield* Effect.cached(one.withPermit(read)) }
    return reading
  })

  return Effect.fnUntraced(function* (held: PlacedDelivery, decidedAt: number) {
    const { delivery, place } = held
    const subject = names.subjects.dead(delivery.tenant, delivery.endpoint)
    const since = yield* consequencesSince(held, decidedAt)
    const reading = next.get(subject) ?? (yield* begin(subject, since))
    reading.since = Math.min(reading.since, since)
    next.set(subject, reading)
    return (yield* reading.found).get(placeName(place))
  })
})

/** True where a sequence of DEAD holds the dead letter that a message became. Asks the leader. */
export const isDeadLetter = Effect.fnUntraced(function* (seq: number, { place }: PlacedDelivery) {
  const { names, readMessage } = yield* Broker
  const letter = yield* readMessage("look at a dead letter", names.dead, { seq })
  return letter?.header.get("petrel-origin") === placeName(place)
})

/** True where a sequence of the history holds the `dead-lettered` fact of a round. */
export const isEndFact = Effect.fnUntraced(function* (seq: number, of: RoundIdentity) {
  const isOfRound = isAbout(of)
  return Option.exists(
    yield* readFact(seq),
    (fact) => fact.kind === "dead-lettered" && isOfRound(fact)
  )
})

/**
 * Returns the id of a message's schedule. Queue and backlog number their messages independently, so
 * a backlog's ids have a prefix.
 */
export const scheduleId = (
  { at, entry, seq, stream }: Place,
  partition: number,
  names: Names,
  { progress }: Pick<RetryRecord, "progress">
): string => {
  const of = entry === undefined ? `${seq}` : `${seq}.${entry}`
  const id = stream === names.backlog(partition) ? `backlog-${of}-${at}` : `${of}-${at}`
  return progress.ends === undefined ? id : `${endedPrefix}${id}`
}

/** Prefix of schedules whose delivery has ended and waits for space in DEAD. */
export const endedPrefix = "ended."

/**
 * True where a message was stored after another one of the same delivery, and so holds what became of
 * it. A message that was moved on and whose acknowledgement was lost stays, and is no proof that the
 * later one moved on as well: each would be released because of the other. In doubt it is false, and
 * the delivery is repeated.
 */
export const isFollowedBy = (
  place: Place,
  { origin, place: other }: { readonly origin: string | undefined; readonly place: Place }
): boolean => {
  if (origin === placeName(place) || other.at > place.at) return true
  const isSameStream = other.stream === place.stream && other.at === place.at
  return isSameStream && slotOf(other) > slotOf(place)
}

/**
 * True where the schedule of a message exists, has fired, or its delivery has gone on or ended. The
 * checks follow the way a delivery moves, because it may move meanwhile.
 */
export const findMoved = Effect.fnUntraced(function* (
  held: PlacedDelivery,
  partition: number,
  record: RetryRecord
) {
  const { names, readMessage } = yield* Broker
  const { endpoint, tenant } = held.delivery
  const stream = names.deliveries(partition)
  const { place } = held
  const last_by_subj = names.subjects.schedule(
    partition,
    scheduleId(place, partition, names, record)
  )
  const schedule = yield* readMessage("look for a schedule", stream, { last_by_subj })
  if (schedule !== null) return true
  // A fired schedule's delivery may have moved on to the backlog, where only the delivery itself
  // identifies it.
  const key = roundKey(held.delivery)
  const { attempts } = record.progress
  const goesOn = ({ attempt = 0, kind }: Fact) => kind !== "attempt-failed" || attempt > attempts
  let isMoved = false
  const fromTime = yield* consequencesSince(held, record.decidedAt)
  const search: LocateQuery = {
    within: { partition },
    endpoints: [{ tenant, endpoint }],
    places: ["queue", "backlog", "history"],
    backlogSince: fromTime,
    historySince: { fromTime }
  }
  yield* locate(search, (sighting) => {
    if (roundKeyOf(sighting) !== key) return false
    isMoved =
      sighting.where === "history"
        ? goesOn(sighting.fact)
        : isFollowedBy(place, sighting) && sighting.attempts >= attempts
    return isMoved
  })
  return isMoved
})
