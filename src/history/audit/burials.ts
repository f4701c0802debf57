import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { isNoSuchMessage } from "../../broker/scan.ts"
import { parseDelivery } from "../../domain/delivery.ts"
import { hasEnded, isBegun, isLate } from "../fold/round.ts"
import type { DeadEnd } from "./dead-ends.ts"
import type { Ledger } from "./ledger.ts"
import { readThrough } from "./reading.ts"
import type { About } from "./record.ts"

/** A dead letter in DEAD that no fact names. */
export interface Untold extends About {
  readonly dead: number
}

/** A dead letter that a fact names and that is not in DEAD. */
export interface Unburied extends DeadEnd {
  readonly dead: number
}

/** Removed by age a little before its time: clocks differ, ms. */
const margin = 5 * 60_000

/**
 * Compares the dead letters with what the facts say of them. A late success has resolved those of its
 * round: they may be there or not, and be told of or not.
 *
 * @param now ms since the epoch: what is older than DEAD keeps its letters need not be there.
 */
export const compareDeadLetters = Effect.fnUntraced(function* (ledger: Ledger, now: number) {
  const { ask, jsm, names } = yield* Broker
  const { config, state } = yield* ask("look at the dead letters", () =>
    jsm.streams.info(names.dead)
  )
  const there = new Set<number>()
  const untold: Array<Untold> = []
  yield* readThrough(
    {
      stream: names.dead,
      subjects: [names.subjects.allDead],
      from: Math.max(1, state.first_seq),
      to: state.last_seq,
      headersOnly: true
    },
    ({ message, seq }) => {
      const about = parseDelivery(
        message.subject,
        (name) => message.headers?.get(name) || undefined
      )
      if (about === undefined) return
      if (isTold(about, seq, ledger)) there.add(seq)
      else if (mayBeUntold(ledger.stateOf(about)) && !ledger.deadEnds.isTaken(seq))
        untold.push({ ...about, dead: seq })
    }
  )
  const age = config.max_age / 1e6
  const unburied: Array<Unburied> = []
  for (const [dead, end] of ledger.deadEnds.entries())
    if (!there.has(dead) && !isResolved(end, ledger) && (age === 0 || now - end.at < age - margin))
      unburied.push({ ...end, dead })
  return { unburied, untold }
})

const mayBeUntold = (state: number): boolean => isBegun(state) && !isLate(state)

const isResolved = ({ eventSeq, lane }: DeadEnd, ledger: Ledger): boolean =>
  isLate(ledger.stateOf({ ...ledger.lanes.get(lane), eventSeq }))

/** True where a fact names a dead letter as the end of this round, not of another one. */
const isTold = ({ endpoint, eventSeq, round, tenant }: About, dead: number, ledger: Ledger) => {
  const told = ledger.deadEnds.get(dead)
  return (
    told !== undefined &&
    told.eventSeq === eventSeq &&
    told.lane === ledger.lanes.find(tenant, endpoint, round)
  )
}

/** Those of which the leader knows no more either, and which nobody has discarded. */
export const stillUnburied = Effect.fnUntraced(function* (
  unburied: ReadonlyArray<Unburied>,
  ledger: Ledger
) {
  const { ask, jsm, names } = yield* Broker
  return yield* Effect.filter(
    unburied.filter(
      (end) => ledger.deadEnds.get(end.dead) !== undefined && !isResolved(end, ledger)
    ),
    ({ dead }) =>
      ask("look for a dead letter", () => jsm.streams.getMessage(names.dead, { seq: dead })).pipe(
        Effect.map((message) => {
          const about =
            message === null
              ? undefined
              : parseDelivery(message.subject, (name) => message.header.get(name) || undefined)
          return about === undefined || !isTold(about, dead, ledger)
        }),
        Effect.catchIf(isNoSuchMessage, () => Effect.succeed(true))
      ),
    { concurrency: 16 }
  )
})

/** Those that no fact names yet, though their delivery has come to another end. */
export const stillUntold = (untold: ReadonlyArray<Untold>, ledger: Ledger): ReadonlyArray<Untold> =>
  untold.filter((letter) => {
    const state = ledger.stateOf(letter)
    return (
      hasEnded(state) &&
      !isLate(state) &&
      !isTold(letter, letter.dead, ledger) &&
      !ledger.deadEnds.isTaken(letter.dead)
    )
  })
