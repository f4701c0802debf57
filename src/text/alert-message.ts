import { Option, Schema } from "effect"
import { Alert } from "../domain/alert.ts"
import { alertDetails, alertText } from "./alert-text.ts"

const AlertEvent = Schema.Struct({
  data: Schema.Struct({
    ...Alert.fields,
    state: Schema.Literals(["raised", "cleared"]),
    tenant: Schema.optionalKey(Schema.String),
    endpoint: Schema.optionalKey(Schema.String)
  })
})
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(AlertEvent))

/** Returns what to do about an alert: the command that says more. */
const whatToDo = (tenant: string | undefined, endpoint: string | undefined): string =>
  endpoint !== undefined
    ? `petrel endpoint diagnose ${tenant}/${endpoint}`
    : tenant !== undefined
      ? `petrel endpoint list ${tenant}`
      : "petrel status"

/** Returns the event of an alert as a message for people; undefined for any other text. */
export const alertMessage = (event: string): string | undefined => {
  const decoded = Option.getOrUndefined(decode(event))
  if (decoded === undefined) return undefined
  const { endpoint, state, tenant, ...alert } = decoded.data
  const about = endpoint === undefined ? (tenant ?? "the system") : `${tenant ?? ""}/${endpoint}`
  if (state === "cleared") return `Petrel: ${alert.name} of ${about} is over.`
  const details = [alertText(alert), ...alertDetails(alert)].join("; ")
  const since = new Date(alert.raisedAt).toISOString().replace(/\.\d+Z$/, "Z")
  return `Petrel: ${alert.level} about ${about} (${alert.name}, since ${since}): ${details}. See \`${whatToDo(tenant, endpoint)}\`.`
}
