import { Clock, Effect } from "effect"
import type { AuditRange } from "../../../history/audit/reach.ts"
import type { Raised } from "../../../history/audit/watch.ts"
import { watch } from "../../../history/audit/watch.ts"
import { momentText } from "../../../history/line.ts"
import { checkAudit } from "../../../operations/audit/check-audit.ts"
import { noteAudit } from "../../../operations/audit/last-audit.ts"
import { connected, report } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"

const line = ({ endpoint, event, reason, tenant }: Raised, now: number): string =>
  `${momentText(now, now)}  missing: ${event} → ${tenant}/${endpoint}: ${reason}`

/**
 * Audits new events periodically (every `every` ms) and raises alerts for missing deliveries, until
 * stopped.
 */
export const watchFor = (range: AuditRange, every: number) =>
  untilStopped(
    Effect.andThen(
      checkAudit(range),
      watch(range, every, {
        raised: Effect.fnUntraced(function* (raised) {
          const now = yield* Clock.currentTimeMillis
          yield* report({ missing: raised }, line(raised, now))
        }),
        failed: (why) => Effect.logWarning("could not audit; trying again", { why }),
        looked: ({ pending, problems, verdict }) =>
          Effect.andThen(
            range.tenant === undefined ? noteAudit(verdict, problems) : Effect.void,
            Effect.logInfo("audited what is new", { verdict, waiting: pending })
          )
      })
    )
  ).pipe(Effect.provide(connected))
