import { nobody } from "../../domain/token.ts"
import { plural } from "../../text/quantities.ts"

/** A risk that an operator should know of, and that is no problem of a delivery. */
export interface Caution {
  readonly kind: "ids-without-tenant" | "restored" | "source-behind"
  /** `_` where it is about several. */
  readonly tenant: string
  /** Number of events concerned, as far as it is known. */
  readonly events: number
  readonly says: string
}

/** A difference without consequence for deliveries. */
export interface Remark {
  readonly kind: "health-differs"
  /** `_`, as the endpoint, where it is about several. */
  readonly tenant: string
  readonly endpoint: string
  readonly says: string
}

/** Most of one kind that are told one by one: a job's result is one message. */
const maxOfKind = 20

/** Returns the cautions with most events of each kind, and the rest of a kind as one. */
export const boundedCautions = (cautions: ReadonlyArray<Caution>): ReadonlyArray<Caution> =>
  [...Map.groupBy(cautions, ({ kind }) => kind)].flatMap(([kind, ofKind]) => {
    const byEvents = ofKind.toSorted((one, other) => other.events - one.events)
    const rest = byEvents.slice(maxOfKind)
    if (rest.length === 0) return byEvents
    const events = rest.reduce((sum, one) => sum + one.events, 0)
    const says = `the same is true of ${plural(events, "event")} of ${plural(rest.length, "more tenant")}`
    return [...byEvents.slice(0, maxOfKind), { kind, tenant: nobody, events, says }]
  })

/** Returns the first remarks, and the rest as one. */
export const boundedRemarks = (remarks: ReadonlyArray<Remark>): ReadonlyArray<Remark> => {
  const rest = remarks.length - maxOfKind
  if (rest <= 0) return remarks
  const says = `the same is true of ${plural(rest, "more endpoint")}`
  return [
    ...remarks.slice(0, maxOfKind),
    { kind: "health-differs", tenant: nobody, endpoint: nobody, says }
  ]
}
