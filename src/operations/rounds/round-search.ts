import { Effect, Option, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readStream, scanQueue } from "../../broker/scan.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { roundKey, roundKeyIn } from "../../domain/delivery.ts"
import { successKinds } from "../../domain/fact.ts"
import { decodeFact } from "../../history/fact-at.ts"

/**
 * Returns the `roundKey`s of the rounds that have, or had, a message: it waits in the queue or in
 * the backlog, or the history has a fact of it. A retry that waits as a schedule has a fact, too.
 *
 * @param from a sequence of HISTORY before all facts of these rounds.
 */
export const findRounds = Effect.fnUntraced(function* (
  { endpoint, tenant }: Pick<Delivery, "tenant" | "endpoint">,
  partition: number,
  wanted: ReadonlySet<string>,
  from: number
) {
  const { names } = yield* Broker
  const { subjects } = names
  const found = new Set<string>()
  const isComplete = () => found.size === wanted.size
  const note = (key: string) => {
    if (wanted.has(key)) found.add(key)
    return isComplete()
  }
  const noteHeaders = (header: (name: string) => string | undefined) => note(roundKeyIn(header))

  let next = from
  const readHistory = Effect.suspend(() =>
    readStream({
      stream: names.history,
      subjects: [
        ...successKinds.map((kind) => subjects.fact(tenant, endpoint, "ok", kind)),
        subjects.fact(tenant, endpoint, "failure", "*")
      ],
      fromSeq: next
    }).pipe(
      Stream.takeUntil((message) => {
        next = message.seq + 1
        const fact = Option.getOrUndefined(decodeFact(message.string()))
        const { eventAt = 0, eventSeq = 0, round = "" } = fact ?? {}
        return note(roundKey({ eventSeq, eventAt, round }))
      }),
      Stream.runDrain
    )
  )

  if (isComplete()) return found
  // Most rounds have ended, so that the history suffices.
  yield* readHistory
  if (isComplete()) return found
  // In the order in which deliveries move. The history comes last: it has a fact of what moved.
  yield* scanQueue(
    names.deliveries(partition),
    subjects.delivery(partition, tenant, endpoint)
  ).pipe(
    Stream.takeUntil(({ header }) => noteHeaders((name) => header.get(name))),
    Stream.runDrain
  )
  if (isComplete()) return found
  yield* readStream({
    stream: names.backlog(partition),
    subjects: [subjects.backlog(partition, tenant, endpoint)],
    headersOnly: true
  }).pipe(
    Stream.takeUntil(({ headers }) => noteHeaders((name) => headers?.get(name))),
    Stream.runDrain
  )
  if (!isComplete()) yield* readHistory
  return found
})
