import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import type { RaisedAlert } from "../alerts/alert-store.ts"
import { listAlerts, raisedIn } from "../alerts/alert-store.ts"
import { nobody } from "../domain/token.ts"
import { alertDetails, alertText } from "../history/alert-text.ts"
import { plainText } from "../history/line.ts"
import { moment } from "../operations/text/time.ts"
import { connected, petrel } from "./root-command.ts"
import { cutTo, screenWidth } from "./screen.ts"
import { tenantFlag } from "./selection.ts"
import { print } from "./stdout.ts"
import { makeTable } from "./table.ts"
import { remark } from "./terminal.ts"

/** Returns the subject of an alert as text. */
export const subjectText = ({ alert: { about }, endpoint, tenant }: RaisedAlert): string => {
  if (about === "system") return "the system"
  return about === "tenant" ? tenant : `${tenant}/${endpoint}`
}

const json = ({ alert, endpoint, tenant }: RaisedAlert): object => ({
  ...alert,
  ...(tenant === nobody ? {} : { tenant }),
  ...(endpoint === nobody ? {} : { endpoint })
})

const headings = ["about", "since", "level", "alert", "what"]

/** Lists the alerts that are raised. */
export const list = Command.make(
  "list",
  { tenant: tenantFlag },
  Effect.fnUntraced(function* ({ tenant }) {
    const { json: asJson } = yield* petrel
    const all = raisedIn(yield* listAlerts().pipe(Effect.provide(connected)))
    const found = tenant === undefined ? all : all.filter((one) => one.tenant === tenant)
    if (asJson)
      return yield* Effect.forEach(found, (one) => print(JSON.stringify(json(one))), {
        discard: true
      })
    if (found.length === 0) return yield* remark("No alert is raised.")
    const now = yield* Clock.currentTimeMillis
    const rows = found.map((one) => [
      subjectText(one),
      moment(one.alert.raisedAt, now),
      one.alert.level,
      one.alert.name,
      plainText([alertText(one.alert), ...alertDetails(one.alert)].join("; "))
    ])
    const width = screenWidth()
    for (const line of makeTable(headings).lines(rows)) yield* print(cutTo(width, line))
  })
).pipe(Command.withDescription("List the alerts that are raised now"))
