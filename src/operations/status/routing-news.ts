import type { Survey } from "../../delivery/introspection/survey.ts"
import { spanText } from "../../history/span.ts"
import { countText, plural } from "../text/number-format.ts"
import type { AllNews } from "./news.ts"
import { newsIf } from "./news.ts"

/** Number of events that may be queued in a healthy router under load. */
const queueWorthNoting = 1_000
/** An event that waits for longer while none is routed is a problem, ms. */
const stoppedAfterMs = 30_000
/** An event that waits for longer while others are routed is worth a notice, ms. */
const heldAfterMs = 5 * 60_000

/** Returns the news of events that are not routed, or were lost before. */
export const routingNews = ({ at, events, room, writeErrors }: Survey): AllNews => {
  const { inRouter = 0, isRouterMissing, lastRoutedAt = 0, oldestUnroutedAt, pending = 0 } = events
  // A failed write counts as stored in the stream's state, until the broker is restarted.
  const isUnwritten = writeErrors.some(({ stream }) => stream === room.events.name)
  const lost = isUnwritten ? 0 : events.lost
  const waitsMs = oldestUnroutedAt === undefined ? 0 : at - oldestUnroutedAt
  const restsMs = at - lastRoutedAt
  const isStopped = waitsMs > stoppedAfterMs && restsMs > stoppedAfterMs
  const since = lastRoutedAt === 0 ? "" : ` for ${spanText(restsMs)}`
  const waiting = `${plural(pending + inRouter, "event")} ${pending + inRouter === 1 ? "waits" : "wait"} to be routed`
  return {
    problems: [
      ...newsIf(
        isRouterMissing,
        "router-consumer-missing",
        "the routers' consumer is gone from the event stream, so nothing is routed: a running worker makes it again, or `petrel init` without one"
      ),
      ...newsIf(
        isStopped,
        "routing-stopped",
        `${waiting}, the oldest for ${spanText(waitsMs)}, and none was routed${since}: if no other problem says why, look at the logs of the workers with the role \`router\``
      ),
      ...newsIf(
        lost > 0,
        "events-lost",
        `${plural(lost, "event")} left the event stream before ${lost === 1 ? "it was" : "they were"} routed, by hand or by a limit set with another tool: \`petrel audit\` names ${lost === 1 ? "it" : "them"}`
      )
    ],
    notices: [
      ...newsIf(
        pending >= queueWorthNoting,
        "router-behind",
        `${plural(pending, "event")} wait to be routed: if they become more, start another worker`
      ),
      ...newsIf(
        !isStopped && waitsMs > heldAfterMs,
        "event-held",
        `${waiting}, the oldest for ${spanText(waitsMs)}, while others are routed (${countText(inRouter)} in routers): see \`petrel audit\``
      )
    ]
  }
}
