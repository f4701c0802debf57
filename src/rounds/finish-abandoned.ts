import { Effect, FiberMap } from "effect"
import { Broker } from "../broker/broker.ts"
import { keepGoing } from "../broker/keep-going.ts"
import { seeStream } from "../broker/scan.ts"
import { factResult } from "../domain/fact.ts"
import { claimIn } from "../history/claims.ts"
import { readLetterContents, redeliveredLetter } from "./redeliver.ts"
import { readEventContents } from "./replay.ts"
import { type Round, readTarget, type StartedRound, steadyLayout } from "./round.ts"
import { openRounds } from "./rounds.ts"
import type { AbandonedRounds, RoundsUnderWay } from "./rounds-under-way.ts"
import { eraseUnderWay, readAbandoned } from "./rounds-under-way.ts"

/** Claims that are looked at together. */
const maxTogether = 10_000
/** Processes whose rounds are finished at the same time. */
const maxProcesses = 8

/** Reads the next claimed rounds from a sequence of HISTORY on, and the sequence of the last. */
const claimedFrom = Effect.fnUntraced(function* (
  { endpoint, kind, tenant }: RoundsUnderWay,
  fromSeq: number
) {
  const { names } = yield* Broker
  const rounds: Array<Round> = []
  let last = fromSeq
  const subjects = [names.subjects.fact(tenant, endpoint, factResult(kind), kind)]
  yield* seeStream({ stream: names.history, subjects, fromSeq }, (message) => {
    const claim = claimIn(message.string(), message.seq)
    last = message.seq
    if (claim === undefined) return false
    const { eventAt, eventSeq, round } = claim
    const dead = kind === "redelivered" ? redeliveredLetter(round) : undefined
    rounds.push({ eventSeq, eventAt, round, ...(dead === undefined ? {} : { dead }) })
    return rounds.length === maxTogether
  })
  return { rounds, last }
})

/**
 * Gives each round that a process has claimed and left without a message its message or, if its
 * contents are gone, its end; then forgets the process. Safe to interrupt and to run again, also at
 * the same time as another, or as the process itself.
 *
 * @param done called with each round that needed it.
 */
export const finishAbandoned = Effect.fnUntraced(function* (
  { instance, revision, rounds: left }: AbandonedRounds,
  done: (round: Round, begun: StartedRound) => void = () => undefined
) {
  const { behind, by, endpoint, kind, tenant } = left
  const layout = yield* steadyLayout
  // What was claimed for an endpoint that takes nothing any more is stored, and ends there.
  const { target } = yield* readTarget(tenant, endpoint)
  for (let from = behind + 1; ; ) {
    const { last, rounds } = yield* claimedFrom(left, from)
    if (rounds.length === 0) break
    const open = yield* openRounds({
      kind,
      target,
      layout,
      by,
      rounds,
      from: { fromSeq: from },
      read: (round) =>
        kind === "replayed"
          ? readEventContents(round, target.forwards)
          : readLetterContents({ tenant, endpoint }, round),
      held: () => undefined
    })
    yield* open.beginAll(open.finishing, done)
    from = last + 1
  }
  yield* eraseUnderWay(instance, revision)
})

/**
 * Finishes the rounds that processes leave in the middle, at an interval (ms), until it is
 * interrupted. One that waits holds up no other: a round without contents ends after an hour only.
 */
export const keepFinishing = Effect.fnUntraced(function* (every: number) {
  const running = yield* FiberMap.make<string>()
  const finish = (abandoned: AbandonedRounds) => {
    const { endpoint, kind, tenant } = abandoned.rounds
    let count = 0
    return finishAbandoned(abandoned, () => {
      count++
    }).pipe(
      Effect.andThen(
        Effect.suspend(() =>
          count === 0
            ? Effect.void
            : Effect.logInfo("finished what a process had begun that ended in the middle of it", {
                what: kind,
                to: `${tenant}/${endpoint}`,
                count
              })
        )
      ),
      Effect.catchCause((cause) =>
        Effect.logWarning("cannot finish what another process has begun; trying again", cause)
      )
    )
  }
  const look = Effect.gen(function* () {
    for (const abandoned of yield* readAbandoned) {
      const { instance } = abandoned
      if ((yield* FiberMap.size(running)) >= maxProcesses) return
      if (yield* FiberMap.has(running, instance)) continue
      yield* FiberMap.run(running, instance, finish(abandoned))
    }
  })
  return yield* keepGoing(
    "look for rounds that others have begun",
    Effect.andThen(look, Effect.sleep(every)),
    every
  )
}, Effect.scoped)
