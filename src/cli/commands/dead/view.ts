import type {
  DeadLetterView,
  Redelivery
} from "../../../operations/dead-letters/dead-letter-view.ts"
import { plural } from "../../../operations/text/number-format.ts"
import { moment } from "../../../operations/text/time.ts"

/** Returns the outcome of a redelivery in a word. */
export const outcomeText = ({ dead, outcome }: Redelivery): string => {
  if (outcome === "dead-lettered") return dead === undefined ? "dead again" : `dead as ${dead}`
  return outcome === "delivered-late" ? "delivered late" : outcome
}

/** Returns the number of attempts and the last result: `12× 503, 9 probes`. */
const triedText = ({ attempts, lastErrorClass, lastStatus, probes = 0 }: DeadLetterView) => {
  if (attempts === 0) return "never"
  const tried = `${attempts}× ${lastStatus ?? lastErrorClass ?? ""}`.trimEnd()
  return probes === 0 ? tried : `${tried}, ${plural(probes, "probe")}`
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
  (now: number) =>
  (letter: DeadLetterView): ReadonlyArray<string> => {
    const { deadAt, deliveredLate, endpoint, event, id, reason, redelivered, tenant } = letter
    const since = [
      ...(redelivered === undefined
        ? []
        : [`${moment(redelivered.at, now)} ${outcomeText(redelivered)}`]),
      ...(deliveredLate === undefined ? [] : [`${moment(deliveredLate.at, now)} delivered late`])
    ]
    return [
      String(id),
      moment(deadAt, now),
      `${tenant}/${endpoint}`,
      reason,
      triedText(letter),
      since.length === 0 ? "-" : since.join(", "),
      event
    ]
  }
