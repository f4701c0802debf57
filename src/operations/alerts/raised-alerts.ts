import { Effect, Schema } from "effect"
import type { RaisedAlert } from "../../alerts/alert-store.ts"
import { listAlerts, raisedIn } from "../../alerts/alert-store.ts"
import { Alert } from "../../domain/alert.ts"
import { nobody } from "../../domain/token.ts"

/** An alert that is raised. */
export const RaisedAlertView = Schema.Struct({
  ...Alert.fields,
  /** Absent if it is about the system. */
  tenant: Schema.optionalKey(Schema.String),
  /** Absent if it is not about one endpoint. */
  endpoint: Schema.optionalKey(Schema.String)
})
export type RaisedAlertView = typeof RaisedAlertView.Type

/** Returns what an alert is about: `the system`, a tenant, or an endpoint. */
export const raisedSubject = ({ about, endpoint = "", tenant = "" }: RaisedAlertView): string => {
  if (about === "system") return "the system"
  return about === "tenant" ? tenant : `${tenant}/${endpoint}`
}

/** Returns an alert with its tenant and endpoint. */
export const raisedView = ({ alert, endpoint, tenant }: RaisedAlert): RaisedAlertView => ({
  ...alert,
  ...(tenant === nobody ? {} : { tenant }),
  ...(endpoint === nobody ? {} : { endpoint })
})

/** Lists the alerts that are raised, or those about one tenant and its endpoints. */
export const listRaisedAlerts = (tenant?: string) =>
  Effect.map(listAlerts(), (all) =>
    raisedIn(all)
      .filter((one) => tenant === undefined || one.tenant === tenant)
      .map(raisedView)
  )
