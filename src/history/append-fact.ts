import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import type { Fact } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"

/**
 * Appends one fact, outside of deliveries. The id stores it once within the history's dedupe window.
 */
export const appendFact = Effect.fnUntraced(function* (fact: Fact, id: string) {
  const { names, publish } = yield* Broker
  const { endpoint, kind, tenant } = fact
  const subject = names.subjects.fact(tenant, endpoint, factResult(kind), kind)
  return yield* publish(subject, JSON.stringify(fact), [["Nats-Msg-Id", id]])
})
