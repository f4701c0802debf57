import type { Fate } from "../history/dead-fates.ts"
import type { DeadLetter } from "../history/dead-letters.ts"
import { momentText } from "../history/line.ts"

export const momentOf = (at: number, now: number): string =>
  momentText(at, now).replace(/\.\d+$/, "")

/** What a dead letter says, as an object. */
export const letterJson = ({ deadAt, delivery, id, reason }: DeadLetter, fate?: Fate) => {
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
    ...(fate === undefined ? {} : { redelivered: fate })
  }
}

/** What came of sending it again, in a word. */
export const outcomeText = ({ dead, outcome }: Fate): string =>
  outcome === "dead-lettered" ? (dead === undefined ? "dead again" : `dead as ${dead}`) : outcome

/** How often it was tried, and how it went the last time: `16× 503`. */
const triedText = ({ delivery }: DeadLetter): string => {
  const { attempts, lastErrorClass, lastStatus } = delivery.progress
  return attempts === 0 ? "never" : `${attempts}× ${lastStatus ?? lastErrorClass ?? ""}`.trimEnd()
}

/** The event comes last: ids may be long, and a terminal cuts them. */
export const listHeadings = [
  "id",
  "dead since",
  "endpoint",
  "reason",
  "tried",
  "sent again",
  "event"
]

/** A dead letter as a row of the list. */
export const listRow =
  (now: number, fates: ReadonlyMap<number, Fate>) =>
  (letter: DeadLetter): ReadonlyArray<string> => {
    const { deadAt, delivery, id, reason } = letter
    const fate = fates.get(id)
    return [
      String(id),
      momentOf(deadAt, now),
      `${delivery.tenant}/${delivery.endpoint}`,
      reason,
      triedText(letter),
      fate === undefined ? "-" : `${momentOf(fate.at, now)} ${outcomeText(fate)}`,
      delivery.event
    ]
  }
