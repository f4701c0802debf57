import type { JsMsg } from "@nats-io/jetstream"
import { Effect, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { firstSince, readStream, storedAt } from "../broker/scan.ts"
import type { Delivery } from "../domain/delivery.ts"
import { parseDelivery } from "../domain/delivery.ts"
import { DeadReason } from "../domain/outcome.ts"
import { TypeIndex } from "../domain/type-filter.ts"

/** An endpoint that dead letters were for. */
export interface DeadLetterEndpoint {
  readonly tenant: string
  readonly id: string
}

/** Whose dead letters: of a tenant, or of one endpoint. (Default: all) */
export interface DeadLetterOwner {
  readonly tenant?: string | undefined
  readonly endpoint?: DeadLetterEndpoint | undefined
}

type OneOrMore<A> = A | ReadonlyArray<A>

const listed = <A>(given: OneOrMore<A> | undefined): ReadonlyArray<A> | undefined =>
  given === undefined ? undefined : ([given].flat() as ReadonlyArray<A>)

/** Which dead letters to read; all conditions hold at once, and of several values of one any. */
export interface DeadLetterQuery {
  readonly tenant?: string | undefined
  readonly endpoint?: OneOrMore<DeadLetterEndpoint> | undefined
  readonly reason?: OneOrMore<DeadReason> | undefined
  /** The last answer's status, or its class: `503`, `5xx`. */
  readonly status?: OneOrMore<string> | undefined
  /** Filters of event types. */
  readonly type?: OneOrMore<string> | undefined
  /** Stored then or later, ms since the epoch. */
  readonly since?: number | undefined
  /** Stored then or earlier, ms since the epoch. */
  readonly until?: number | undefined
  /** Only those with a higher id. (Default: all) */
  readonly after?: number | undefined
  /** Only those with this id or a lower one. (Default: any) */
  readonly upTo?: number | undefined
}

/** A delivery that ended without success, as stored in DEAD. */
export interface DeadLetter {
  /** Sequence in DEAD: what `--id` means. */
  readonly id: number
  readonly delivery: Delivery
  readonly reason: DeadReason
  /** Time of the decision to dead-letter it, ms since the epoch. */
  readonly deadAt: number
}

const isReason = Schema.is(DeadReason)

/** Parses a dead letter from its headers; undefined if the message is not a dead letter. */
export const parseDeadLetter = (
  message: Pick<JsMsg, "headers" | "seq" | "subject">
): DeadLetter | undefined => {
  const get = (name: string) => message.headers?.get(name) || undefined
  const delivery = parseDelivery(message.subject, get)
  const reason = get("petrel-reason")
  const deadAt = Number(get("petrel-dead-at"))
  if (delivery === undefined || !isReason(reason) || !Number.isFinite(deadAt)) return undefined
  return { id: message.seq, delivery, reason, deadAt }
}

/** Whether a dead letter matches a query, apart from its time. */
const isOf = (tenant: string | undefined, { delivery }: DeadLetter): boolean =>
  tenant === undefined || delivery.tenant === tenant

const isAskedFor = (query: DeadLetterQuery) => {
  const { tenant } = query
  const [endpoints, reasons, statuses] = [
    listed(query.endpoint),
    listed(query.reason),
    listed(query.status)
  ]
  const filters = listed(query.type)
  const types = new TypeIndex<true>()
  types.add(filters ?? [], true)
  return (letter: DeadLetter): boolean => {
    const { delivery, reason: why } = letter
    const last = String(delivery.progress.lastStatus ?? "")
    return (
      isOf(tenant, letter) &&
      (endpoints?.some((one) => delivery.tenant === one.tenant && delivery.endpoint === one.id) ??
        true) &&
      (reasons?.includes(why) ?? true) &&
      (filters === undefined || types.match(delivery.type).size > 0) &&
      (statuses?.some((status) => last === status || `${last.slice(0, 1)}xx` === status) ?? true)
    )
  }
}

/**
 * Reads the dead letters that match a query, oldest first, without their bodies. Skips messages
 * that are not dead letters, and logs their number at the end.
 *
 * @param wanted how many its reader wants. (Default: all)
 */
export const readDeadLetters = (
  query: DeadLetterQuery,
  wanted?: number
): Stream.Stream<DeadLetter, BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { names } = yield* Broker
      const { after, since = 0, tenant, until, upTo = Number.POSITIVE_INFINITY } = query
      const all = { tenant: tenant ?? "*", id: "*" }
      const targets = (listed(query.endpoint) ?? [all]).filter(
        (one) => tenant === undefined || one.tenant === tenant
      )
      if (targets.length === 0) return Stream.empty
      let skipped = 0
      const warnOfSkipped = Effect.suspend(() =>
        skipped === 0
          ? Effect.void
          : Effect.logWarning(
              `skipped messages that are not dead letters in ${names.dead}: ${skipped}`
            )
      )
      // Bodies may be large, and a list shows none.
      const letters = readStream({
        stream: names.dead,
        // The broker refuses a filter that is named twice.
        subjects: [...new Set(targets.map((one) => names.subjects.dead(one.tenant, one.id)))],
        ...(after === undefined ? { fromTime: since } : { fromSeq: after + 1 }),
        headersOnly: true,
        ...(wanted === undefined ? {} : { wanted })
      })
      return letters.pipe(
        Stream.takeWhile(
          (message) => message.seq <= upTo && (until === undefined || storedAt(message) <= until)
        ),
        Stream.filter((message) => after === undefined || storedAt(message) >= since),
        Stream.map((message) => {
          const letter = parseDeadLetter(message)
          if (letter === undefined) skipped++
          return letter
        }),
        Stream.ensuring(warnOfSkipped),
        Stream.filter((letter) => letter !== undefined),
        Stream.filter(isAskedFor(query))
      )
    })
  )

/** Sequences of DEAD that a reading backwards looks at first; each further look takes so many times more. */
const firstLook = 1_000
const growth = 4

/**
 * Reads the last dead letters before an id that match a query, oldest first. Looks back in growing
 * steps, so that those just before it cost no pass over all.
 *
 * @param most how many are returned at most.
 */
export const readDeadLettersBefore = Effect.fnUntraced(function* (
  query: Omit<DeadLetterQuery, "after" | "upTo">,
  before: number,
  most: number
) {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the dead letters", names.dead)
  const since = query.since === undefined ? 1 : yield* firstSince(names.dead, query.since)
  const least = Math.max(1, state.first_seq, since)
  let found: ReadonlyArray<DeadLetter> = []
  let size = Math.max(firstLook, most)
  let to = Math.min(before - 1, state.last_seq)
  for (; to >= least && found.length < most; size *= growth) {
    const from = Math.max(least, to - size + 1)
    const part = yield* readDeadLetters({ ...query, after: from - 1, upTo: to }).pipe(
      Stream.takeRight(most - found.length),
      Stream.runCollect
    )
    found = [...part, ...found]
    to = from - 1
  }
  return found
})

/** A dead letter as a whole. */
export interface WholeDeadLetter extends DeadLetter {
  readonly body: Uint8Array
  /** When the broker stored it, ms since the epoch. */
  readonly storedAt: number
}

/** A dead letter by its id, from the leader; undefined where there is none (any more). */
export const getDeadLetter = Effect.fnUntraced(function* (id: number) {
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage(`read dead letter ${id}`, names.dead, { seq: id })
  if (message === null) return undefined
  const { data, header, seq, subject, time } = message
  const letter = parseDeadLetter({ headers: header, seq, subject })
  return letter === undefined
    ? undefined
    : ({ ...letter, body: data, storedAt: time.getTime() } satisfies WholeDeadLetter)
})

/**
 * Those of some dead letters that a query asks for, in the order of their ids, and the ids that
 * name none. One of another tenant is none: who asks for one tenant does not learn which numbers
 * others have.
 */
export const getDeadLetters = Effect.fnUntraced(function* (
  ids: ReadonlyArray<number>,
  query: DeadLetterQuery
) {
  const { since = 0, until = Number.POSITIVE_INFINITY } = query
  const wanted = isAskedFor(query)
  const missing: Array<number> = []
  const found = yield* Effect.forEach(
    [...new Set(ids)].sort((a, b) => a - b),
    (id) =>
      Effect.map(getDeadLetter(id), (letter): DeadLetter | undefined => {
        if (letter === undefined || !isOf(query.tenant, letter)) missing.push(id)
        if (letter === undefined || !wanted(letter)) return undefined
        const { body: _, storedAt, ...rest } = letter
        return storedAt >= since && storedAt <= until ? rest : undefined
      }),
    { concurrency: 16 }
  )
  return {
    missing: missing.sort((a, b) => a - b),
    letters: found.filter((letter) => letter !== undefined)
  }
})
