import { Effect, Option, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { readStream } from "../broker/scan.ts"
import type { DeliveryIdentity } from "../domain/delivery.ts"
import { roundKey } from "../domain/delivery.ts"
import type { DeadLetterOwner } from "./dead-letters.ts"
import { parseFact } from "./read.ts"

/** A success that a former owner recorded. */
export interface LateDelivery {
  /** When the receiver answered, ms since the epoch. */
  readonly at: number
  readonly worker: string | undefined
}

/** Returns a round's late delivery, if it has one. */
type LateDeliveries = (round: DeliveryIdentity) => LateDelivery | undefined

/**
 * Reads which rounds were delivered late. A late success may be recorded before the dead letter
 * that it resolves, so this reads all late successes in the history; they are few.
 */
export const readLateDeliveries = Effect.fnUntraced(function* (query: DeadLetterOwner) {
  const { names } = yield* Broker
  const tenant = query.endpoint?.tenant ?? query.tenant ?? "*"
  const found = new Map<string, LateDelivery>()
  yield* readStream({
    stream: names.history,
    subjects: [names.subjects.fact(tenant, query.endpoint?.id ?? "*", "ok", "delivered-late")]
  }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const stored = Option.getOrUndefined(parseFact(message.string(), message.seq))
        if (stored === undefined) return
        const { at, endpoint, eventAt, eventSeq, round, tenant, worker } = stored.fact
        if (eventSeq === undefined || eventAt === undefined || round === undefined) return
        const key = keyOf({ tenant, endpoint, eventSeq, eventAt, round })
        if (!found.has(key)) found.set(key, { at, worker })
      })
    )
  )
  const late: LateDeliveries = (round) => (found.size === 0 ? undefined : found.get(keyOf(round)))
  return late
})

const keyOf = (of: DeliveryIdentity): string => `${of.tenant}.${of.endpoint}.${roundKey(of)}`
