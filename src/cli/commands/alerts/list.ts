import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import { alertDetails, alertText } from "../../../history/alert-text.ts"
import { plainText } from "../../../history/line.ts"
import { listRaisedAlerts, raisedSubject } from "../../../operations/alerts/raised-alerts.ts"
import { moment } from "../../../operations/text/time.ts"
import { tenantFlag } from "../../flags/shared.ts"
import { cutTo, screenWidth } from "../../format/screen.ts"
import { makeTable } from "../../format/table.ts"
import { connected, petrel } from "../../root-command.ts"
import { print } from "../../terminal/stdout.ts"
import { remark } from "../../terminal/terminal.ts"

const headings = ["about", "since", "level", "alert", "what"]

/** Lists the alerts that are raised. */
export const list = Command.make(
  "list",
  { tenant: tenantFlag },
  Effect.fnUntraced(function* ({ tenant }) {
    const { json } = yield* petrel
    const found = yield* listRaisedAlerts(tenant).pipe(Effect.provide(connected))
    if (json)
      return yield* Effect.forEach(found, (one) => print(JSON.stringify(one)), { discard: true })
    if (found.length === 0) return yield* remark("No alert is raised.")
    const now = yield* Clock.currentTimeMillis
    const rows = found.map((one) => [
      raisedSubject(one),
      moment(one.raisedAt, now),
      one.level,
      one.name,
      plainText([alertText(one), ...alertDetails(one)].join("; "))
    ])
    const width = screenWidth()
    for (const line of makeTable(headings).lines(rows)) yield* print(cutTo(width, line))
  })
).pipe(Command.withDescription("List the alerts that are raised now"))
