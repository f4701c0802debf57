import type { Fate } from "../history/dead-fates.ts"
import type { DeadLetter } from "../history/dead-letters.ts"
import type { LateDeliveries, LateDelivery } from "../history/late-deliveries.ts"
import { momentText } from "../history/line.ts"

export const momentOf = (at: number, now: number): string =>
  momentText(at, now).replace(/\.\d+$/, "")

/** Returns a dead letter as an object. */
export const letterJson = (
  { deadAt, delivery, id, reason }: DeadLetter,
  fate?: Fate,
  late?: LateDelivery
) => {
  const { deadline, endpoint, event, eventAt, eventSeq, origin, progress, round, tenant, type } =
    delivery
  const { nextAttemptAt: _, ...attempted } = progress
  return {
    id,
    tenant,
    endpoint,
    event,
    eventSeq,
    eventAt,
    type,
    round,
    reason,
    ...attempted,
    deadline,
    deadAt,
    ...(origin === undefined ? {} : { origin }),
    ...(fate === undefined ? {} : { redelivered: fate }),
    ...(late === undefined ? {} : { deliveredLate: late })
  }
}

/** Returns the outcome of a redelivery in a word. */
export const outcomeText = ({ dead, outcome }: Fate): string => {
  if (outcome === "dead-lettered") return dead === undefined ? "dead again" : `dead as ${dead}`
  return outcome === "delivered-late" ? "delivered late" : outcome
}

/** Returns the text of a late success, which resolves a dead letter, with its time. */
export const lateText = ({ at }: LateDelivery, now: number): string =>
  `${momentOf(at, now)} delivered late`

/** Returns the number of attempts and the last result: `16× 503`. */
const triedText = ({ delivery }: DeadLetter): string => {
  const { attempts, lastErrorClass, lastStatus } = delivery.progress
  return attempts === 0 ? "never" : `${attempts}× ${lastStatus ?? lastErrorClass ?? ""}`.trimEnd()
}

/** The event is the last column, since ids may be long and a terminal truncates them. */
export const listHeadings = [
  "id",
  "dead since",
  "endpoint",
  "reason",
  "tried",
  "sent again",
  "event"
]

/** Returns a dead letter as a row of the list. */
export const listRow =
  (now: number, fates: ReadonlyMap<number, Fate>, lateDelivery: LateDeliveries) =>
  (letter: DeadLetter): ReadonlyArray<string> => {
    const { deadAt, delivery, id, reason } = letter
    const fate = fates.get(id)
    const late = lateDelivery(delivery)
    const since = [
      ...(fate === undefined ? [] : [`${momentOf(fate.at, now)} ${outcomeText(fate)}`]),
      ...(late === undefined ? [] : [lateText(late, now)])
    ]
    return [
      String(id),
      momentOf(deadAt, now),
      `${delivery.tenant}/${delivery.endpoint}`,
      reason,
      triedText(letter),
      since.length === 0 ? "-" : since.join(", "),
      delivery.event
    ]
  }
