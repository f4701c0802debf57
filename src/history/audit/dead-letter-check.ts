import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { isNoSuchMessage } from "../../broker/broker-error.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { undroppedSince } from "../../broker/kept-since.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import { parseDelivery } from "../../domain/delivery.ts"
import type { RoundAt } from "../fact-record.ts"
import { hasEnded, isBegun, isLate } from "../fold/round.ts"
import type { Ledger } from "./ledger.ts"
import { type DeadEnd, DeadEnds, type LetterOf } from "./ledger-memory.ts"

/** A dead letter in DEAD that no fact names. */
export interface DeadLetterWithoutFact extends RoundAt {
  readonly dead: number
}

/** A dead letter that a fact names and that is not in DEAD. */
export type MissingDeadLetter = DeadEnd

/**
 * Compares the dead letters with the facts about them. A late success resolves the dead letters of
 * its round: neither they nor their facts need be there. A dead letter that DEAD has dropped by age
 * or size need not be there either.
 */
export const compareDeadLetters = Effect.fnUntraced(function* (ledger: Ledger) {
  const { names, streamInfo } = yield* Broker
  const info = yield* streamInfo("look at the dead letters", names.dead)
  const { state } = info
  const there = new DeadEnds()
  const withoutFact: Array<DeadLetterWithoutFact> = []
  yield* readThrough(
    {
      stream: names.dead,
      subjects: [names.subjects.allDead],
      from: state.first_seq,
      to: state.last_seq,
      headersOnly: true
    },
    ({ message, seq }) => {
      const about = parseDelivery(
        message.subject,
        (name) => message.headers?.get(name) || undefined
      )
      if (about === undefined || ledger.isReplaced(about)) return
      const letter = letterOf(about, seq, ledger)
      if (ledger.deadEnds.has(letter)) there.add(letter, 0)
      else if (needsFact(ledger.stateOf(about)) && !ledger.deadEnds.isDiscarded(letter))
        withoutFact.push({ ...about, dead: seq })
    }
  )
  const dueSince = undroppedSince(info) + maxClockSkewMs
  const missing: Array<MissingDeadLetter> = []
  for (const end of ledger.deadEnds.all())
    if (!there.has(end) && !isResolved(end, ledger) && end.at >= dueSince) missing.push(end)
  return { missing, withoutFact }
})

const needsFact = (state: number): boolean => isBegun(state) && !isLate(state)

const isResolved = ({ eventSeq, lane }: DeadEnd, ledger: Ledger): boolean =>
  isLate(ledger.stateOf({ ...ledger.lanes.get(lane), eventSeq }))

/** The dead letter at a sequence of DEAD as the end of this round, not of another one. */
const letterOf = (
  { endpoint, eventSeq, round, tenant }: RoundAt,
  dead: number,
  ledger: Ledger
): LetterOf => ({ dead, eventSeq, lane: ledger.lanes.find(tenant, endpoint, round) ?? 0 })

const isSame = (one: LetterOf, other: LetterOf): boolean =>
  one.dead === other.dead && one.eventSeq === other.eventSeq && one.lane === other.lane

/** Those that the leader does not have either, and that nobody has discarded. */
export const stillMissing = Effect.fnUntraced(function* (
  missing: ReadonlyArray<MissingDeadLetter>,
  ledger: Ledger
) {
  const { names, readMessage } = yield* Broker
  return yield* Effect.filter(
    missing.filter((end) => ledger.deadEnds.has(end) && !isResolved(end, ledger)),
    (end) =>
      readMessage("look for a dead letter", names.dead, { seq: end.dead }).pipe(
        Effect.map((message) => {
          const about =
            message === null
              ? undefined
              : parseDelivery(message.subject, (name) => message.header.get(name) || undefined)
          if (about === undefined || ledger.isReplaced(about)) return true
          return !isSame(letterOf(about, end.dead, ledger), end)
        }),
        Effect.catchIf(isNoSuchMessage, () => Effect.succeed(true))
      ),
    { concurrency: 16 }
  )
})

/** Those that no fact names yet although their delivery has ended. */
export const stillWithoutFact = (
  withoutFact: ReadonlyArray<DeadLetterWithoutFact>,
  ledger: Ledger
): ReadonlyArray<DeadLetterWithoutFact> =>
  withoutFact.filter((letter) => {
    const state = ledger.stateOf(letter)
    if (!hasEnded(state) || isLate(state)) return false
    const named = letterOf(letter, letter.dead, ledger)
    return !ledger.deadEnds.has(named) && !ledger.deadEnds.isDiscarded(named)
  })
