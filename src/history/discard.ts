import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { removeIf } from "../broker/removal.ts"
import { maxClockSkewMs } from "../domain/clock-bounds.ts"
import { deliveryId, namesOf, roundKey } from "../domain/delivery.ts"
import { openClaims } from "./claims.ts"
import type { DeadLetter } from "./dead-letters.ts"
import { parseDeadLetter } from "./dead-letters.ts"

/** Dead letters that are removed concurrently. */
const maxConcurrentDiscards = 16
/**
 * Removes dead letters for good. Before each removal, the history records who asked for it. Safe to
 * interrupt and to run again.
 *
 * @param by who asked for it.
 * @param done called after each dead letter.
 */
export const discardDeadLetters = Effect.fnUntraced(function* (
  letters: ReadonlyArray<DeadLetter>,
  by: string,
  done: () => void
) {
  const { names } = yield* Broker
  const remove = ({ delivery, id }: DeadLetter) =>
    removeIf(`remove dead letter ${id}`, names.dead, id, ({ header, seq, subject }) => {
      const letter = parseDeadLetter({ headers: header, seq, subject })
      return letter !== undefined && roundKey(letter.delivery) === roundKey(delivery)
    })
  const groups = Map.groupBy(
    letters,
    ({ delivery }) => `${delivery.tenant}.${delivery.endpoint}`
  ).values()

  const discardOf = Effect.fnUntraced(function* (own: ReadonlyArray<DeadLetter>) {
    const [first] = own
    if (first === undefined) return
    const { endpoint, tenant } = first.delivery
    const since = own.reduce((least, { deadAt }) => Math.min(least, deadAt), first.deadAt)
    const claims = yield* openClaims({
      kind: "discarded",
      target: { tenant, endpoint },
      rounds: new Set(own.map(({ delivery }) => roundKey(delivery))),
      from: { fromTime: since - maxClockSkewMs }
    })
    yield* Effect.forEach(
      own,
      (letter) => {
        const { delivery, id, reason } = letter
        const claimed = claims.claim(
          { ...namesOf(delivery), delivery: deliveryId(delivery), reason, dead: id, by },
          delivery
        )
        return claimed.pipe(
          Effect.andThen(remove(letter)),
          Effect.andThen(Effect.sync(done)),
          Effect.uninterruptible
        )
      },
      { concurrency: maxConcurrentDiscards, discard: true }
    )
  })
  yield* Effect.forEach(groups, discardOf, { concurrency: 4, discard: true })
})
