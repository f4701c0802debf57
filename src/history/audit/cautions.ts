import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import type { EventHeaders } from "./event-headers.ts"

/** Something that is no problem of any delivery, and that somebody should know. */
export interface Caution {
  readonly kind: "ids-without-tenant" | "source-behind"
  readonly tenant: string
  /** Events that it is about. */
  readonly events: number
  readonly says: string
}

/** Tenants that share a stream where one of them uses ids that may be another's, each with their number. */
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

/** Events that lie in a stream that EVENTS is sourced from, of which nothing else here knows. */
const behind = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const { sources = [] } = yield* ask("look at the sources of the events", () =>
    jsm.streams.info(names.events)
  )
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

/** What the events say beside what became of them, counted and not event by event. */
export const readCautions = (headers: EventHeaders) =>
  Effect.map(behind, (cautions) => [...foreignIds(headers), ...cautions])
