import { HashMap, Option } from "effect"
import type { EventIdentity } from "../../domain/event.ts"
import { eventName } from "../../domain/event.ts"
import type { Fact } from "../../domain/fact.ts"
import { nobody } from "../../domain/token.ts"
import type { DeliveryLife } from "./delivery.ts"
import { afterDeliveryStep } from "./delivery.ts"
import type { EndpointLife } from "./endpoint.ts"
import { afterEndpointFact, newEndpoint } from "./endpoint.ts"
import { stepsOf } from "./steps.ts"
import type { Totals } from "./totals.ts"
import { afterCounting, beginningOf, noTotals } from "./totals.ts"

/** The state that results from all facts, or from a view and the facts after it. */
export interface View {
  /** By {@link deliveryKey}. */
  readonly deliveries: HashMap.HashMap<string, DeliveryLife>
  /** By `<tenant>.<endpoint>`. */
  readonly endpoints: HashMap.HashMap<string, EndpointLife>
  /** By `<tenant>.<beginning of the hour>`. */
  readonly totals: HashMap.HashMap<string, Totals>
}

export const emptyView: View = {
  deliveries: HashMap.empty(),
  endpoints: HashMap.empty(),
  totals: HashMap.empty()
}

/** A delivery's identity. */
export const deliveryKey = (event: EventIdentity, tenant: string, endpoint: string): string =>
  `${eventName(event)}.${tenant}.${endpoint}`

/** The view after one more fact. */
export const afterFact = (view: View, fact: Fact): View => {
  let { deliveries, endpoints, totals } = view
  for (const taken of stepsOf(fact)) {
    const key = deliveryKey(taken.of, fact.tenant, taken.endpoint)
    const life = Option.getOrUndefined(HashMap.get(deliveries, key))
    deliveries = HashMap.set(deliveries, key, afterDeliveryStep(life, taken))
  }
  if (fact.endpoint !== nobody) {
    const key = `${fact.tenant}.${fact.endpoint}`
    const life = Option.getOrElse(HashMap.get(endpoints, key), () => newEndpoint)
    endpoints = HashMap.set(endpoints, key, afterEndpointFact(life, fact))
  }
  const key = `${fact.tenant}.${beginningOf(fact.at, "hour")}`
  const sum = Option.getOrElse(HashMap.get(totals, key), () => noTotals)
  totals = HashMap.set(totals, key, afterCounting(sum, fact))
  return { deliveries, endpoints, totals }
}

/** The view after facts, in order. */
export const viewOf = (facts: Iterable<Fact>, from: View = emptyView): View => {
  let view = from
  for (const fact of facts) view = afterFact(view, fact)
  return view
}
