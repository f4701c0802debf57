import { Effect, FiberMap } from "effect"
import { keepGoing } from "../broker/keep-going.ts"
import { isEnqueuing } from "../cluster/enqueuer-presence.ts"
import type { RoundIdentity } from "../domain/delivery.ts"
import {
  claimedFrom,
  eraseUnderWay,
  type RoundsUnderWay,
  readUnderWay,
  type StoredUnderWay
} from "../history/rounds-under-way.ts"
import { readLetterContents, redeliveredLetter } from "./redeliver.ts"
import { readEventContents } from "./replay.ts"
import { type Round, readTarget, type StartedRound, steadyLayout } from "./round.ts"
import { openRounds } from "./rounds.ts"

/** Processes whose rounds are finished at the same time. */
const maxProcesses = 8

/** Reads the rounds that processes have left in the middle. */
export const readAbandoned = Effect.flatMap(readUnderWay, (found) =>
  Effect.filter(found, ({ instance }) => Effect.map(isEnqueuing(instance), (lives) => !lives))
)

/** The rounds as they are begun: a redelivery is of a dead letter. */
const roundsOf = (
  { kind }: RoundsUnderWay,
  claimed: ReadonlyArray<RoundIdentity>
): ReadonlyArray<Round> =>
  claimed.map((of) => {
    const dead = kind === "redelivered" ? redeliveredLetter(of.round) : undefined
    return { ...of, ...(dead === undefined ? {} : { dead }) }
  })

/**
 * Gives each round that a process has claimed and left without a message its message or, if its
 * contents are gone, its end; then forgets the process. Safe to interrupt and to run again, also at
 * the same time as another, or as the process itself.
 *
 * @param done called with each round that needed it.
 */
export const finishAbandoned = Effect.fnUntraced(function* (
  { instance, revision, rounds: left }: StoredUnderWay,
  done: (round: Round, begun: StartedRound) => void = () => undefined
) {
  const { behind, by, endpoint, kind, tenant } = left
  const layout = yield* steadyLayout
  // What was claimed for an endpoint that takes nothing any more is stored, and ends there.
  const { target } = yield* readTarget(tenant, endpoint)
  for (let from = behind + 1; ; ) {
    const { last, rounds: claimed } = yield* claimedFrom(left, from)
    if (claimed.length === 0) break
    const rounds = roundsOf(left, claimed)
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
  const finish = (abandoned: StoredUnderWay) => {
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
