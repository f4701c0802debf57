import { Effect, Option, Stream } from "effect"
import { Broker } from "../../broker/connection.ts"
import { readStream, scanQueue } from "../../broker/scan.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { roundKey, roundKeyIn } from "../../domain/delivery.ts"
import { successKinds } from "../../domain/fact.ts"
import { decodeFact } from "../../history/fact-at.ts"

/**
 * Which rounds of an endpoint's deliveries have a message, by their `roundKey`: it waits in the queue or
 * in the backlog, or the history tells of it. A retry that waits as a schedule has a fact, too.
 *
 * @param from a sequence of HISTORY: what is told of them stands beyond.
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
  // Most have come to their end, and then nothing else need be read.
  yield* readHistory
  if (isComplete()) return found
  // In the order in which deliveries go, and the history last: what moves meanwhile is told of there.
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
