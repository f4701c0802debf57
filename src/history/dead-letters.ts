import type { JsMsg } from "@nats-io/jetstream"
import { Effect, Schema, Stream } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import { readStream } from "../broker/scan.ts"
import type { Delivery } from "../domain/delivery.ts"
import { parseDelivery } from "../domain/delivery.ts"
import { DeadReason } from "../domain/outcome.ts"

/** Which dead letters to read; all conditions hold at once. */
export interface DeadLetterQuery {
  readonly tenant?: string | undefined
  readonly endpoint?: { readonly tenant: string; readonly id: string } | undefined
  readonly reason?: DeadReason | undefined
  /** Stored then or later, ms since the epoch. */
  readonly since?: number | undefined
}

/** A delivery that ended without success, as it lies in DEAD. */
export interface DeadLetter {
  /** Sequence in DEAD: what `--id` means. */
  readonly id: number
  readonly delivery: Delivery
  readonly reason: DeadReason
  /** When its end was decided, ms since the epoch. */
  readonly deadAt: number
}

const isReason = Schema.is(DeadReason)

/** A dead letter from its message's headers; undefined where the message is none. */
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

/**
 * The dead letters that a query asks for, oldest first, without their bodies. A message that is
 * none is passed over; how many were is said at the end.
 */
export const readDeadLetters = (
  query: DeadLetterQuery
): Stream.Stream<DeadLetter, BrokerError, Broker> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { names } = yield* Broker
      const { endpoint, reason, since = 0 } = query
      const tenant = endpoint?.tenant ?? query.tenant ?? "*"
      if (query.tenant !== undefined && query.tenant !== tenant) return Stream.empty
      let skipped = 0
      const warnOfSkipped = Effect.suspend(() =>
        skipped === 0
          ? Effect.void
          : Effect.logWarning(`passed over what is no dead letter in ${names.dead}: ${skipped}`)
      )
      // Bodies may be large, and a list shows none.
      const letters = readStream({
        stream: names.dead,
        subjects: [names.subjects.dead(tenant, endpoint?.id ?? "*")],
        fromTime: since,
        headersOnly: true
      })
      return letters.pipe(
        Stream.map((message) => {
          const letter = parseDeadLetter(message)
          if (letter === undefined) skipped++
          return letter
        }),
        Stream.ensuring(warnOfSkipped),
        Stream.filter((letter) => letter !== undefined),
        Stream.filter((letter) => reason === undefined || letter.reason === reason)
      )
    })
  )
