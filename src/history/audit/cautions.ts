import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { EventHeaders } from "./event-headers.ts"

/** A risk that an operator should know of, and that is no problem of a delivery. */
export interface Caution {
  readonly kind: "ids-without-tenant" | "source-behind"
  readonly tenant: string
  /** Number of events concerned. */
  readonly events: number
  readonly says: string
}

/** Tenants of a shared stream whose ids may collide with ids of other tenants. */
const foreignIds = ({ foreignIds }: EventHeaders): ReadonlyArray<Caution> =>
  foreignIds.size < 2
    ? []
    : [...foreignIds]
        .filter(([, events]) => events > 0)
        .map(([tenant, events]) => ({
          kind: "ids-without-tenant",
          tenant,
          events,
          says: `their ids do not begin with "${tenant}." (or "${tenant}/", "${tenant}:"), and other tenants publish to the same stream: one that uses the same id makes the second event a duplicate, which is not stored`
        }))

/** Events in source streams that EVENTS has not copied yet: the audit does not see them. */
const behind = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { sources = [] } = yield* streamInfo("look at the sources of the events", names.events)
  return sources
    .filter(({ lag }) => lag > 0)
    .map(
      ({ lag, name }): Caution => ({
        kind: "source-behind",
        tenant: names.tenantOf(name) ?? "_",
        events: lag,
        says: `they are in ${name} and have not come to ${names.events} yet: nothing here is about them`
      })
    )
})

/** Reads the cautions, each as a count of events. */
export const readCautions = (headers: EventHeaders) =>
  Effect.map(behind, (cautions) => [...foreignIds(headers), ...cautions])
