import { Option, Schema } from "effect"
import type { DeadLetterAttempts } from "../domain/alert.ts"
import { Alert, type StandingAlert } from "../domain/alert.ts"
import { spanText } from "./quantities.ts"

const number = (value: number): string =>
  value.toLocaleString("en-US", { maximumFractionDigits: 2 })

const measureText = (value: number, unit: string): string => {
  if (unit === "ms") return spanText(value)
  return unit === "percent" ? `${number(value)}%` : number(value)
}

/**
 * The alert's finding when it was raised, its threshold, and its present value if that differs;
 * without its subject.
 */
export const alertText = (alert: StandingAlert): string => {
  const { currentValue: now, unit, value } = alert
  const found = findingText(alert)
  return now === undefined || now === value ? found : `${found}; now ${measureText(now, unit)}`
}

const findingText = ({ name, status, threshold, value = 0, windowMs }: Alert): string => {
  const over = `over ${spanText(windowMs)}`
  switch (name) {
    case "circuit-opened":
      return "its circuit has opened"
    case "endpoint-disabled":
      return "it is disabled"
    case "endpoint-suspended":
      return "it is suspended: its events wait until it is resumed, or until they expire"
    case "dead-letters":
    case "tenant-dead-letters":
    case "system-dead-letters":
      return `${number(value)} dead ${value === 1 ? "letter" : "letters"} ${over}`
    case "success-low":
    case "success-critical":
      return `${number(value)}% succeeded ${over}, less than ${number(threshold)}%`
    case "retries-high":
      return `${number(value)}% failed their first attempt ${over}, more than ${number(threshold)}%`
    case "permanent-high":
      return `${number(value)}% failed permanently ${over}, more than ${number(threshold)}%`
    case "attempts-high":
      return `${number(value)} attempts per delivery ${over}, more than ${number(threshold)}`
    case "median-slow":
      return `half took ${spanText(value)} or longer ${over}, more than ${spanText(threshold)}`
    case "p99-slow":
      return `1 in 100 took ${spanText(value)} or longer ${over}, more than ${spanText(threshold)}`
    case "endpoint-not-found":
    case "status-repeated":
      return `it answered ${status ?? "the same"} ${number(value)} ${value === 1 ? "time" : "times"} in a row`
    case "failures-in-row":
      return `${number(value)} attempts failed in a row, and its circuit is closed`
    case "events-unrouted":
      return `an event has waited ${spanText(value)} to be routed, longer than ${spanText(threshold)}: see \`petrel status\``
    case "waiting-growing":
      return `${number(value)} more deliveries wait than ${spanText(windowMs)} ago`
    case "circuits-open":
      return `${number(value)} circuits are open at the same time`
    case "test":
      return "a test: nothing is wrong"
    case "disk-failed":
      return `the broker stores nothing more in ${number(value)} ${value === 1 ? "stream" : "streams"}, for example after a failed write to its disk: see \`petrel status\``
    case "outbox-stuck":
      return `rows of an outbox have waited for ${spanText(value)} to be published, or its relay has been silent for as long, longer than ${spanText(threshold)}: see \`petrel outbox status\``
    case "outbox-set-aside":
      return `${number(value)} ${value === 1 ? "row of an outbox" : "rows of outboxes"} can never be published as ${value === 1 ? "it is" : "they are"}: see \`petrel outbox status\` and \`petrel outbox list\``
    case "source-refusing":
      return `${number(value)} ${value === 1 ? "source refuses" : "sources refuse"} every request: \`petrel status\` says why, such as a secret that has changed at the provider, or a request that is too large`
    case "quarantined":
      return `${number(value)} ${value === 1 ? "request is" : "requests are"} in quarantine and could not become ${value === 1 ? "an event" : "events"}: see \`petrel quarantine list\``
    case "provider-lost":
      return `${number(value)} ${value === 1 ? "event" : "events"} of providers had not come in when sources were last reconciled: see \`petrel history\` and \`petrel source show\``
    case "deliveries-missing":
      return "an audit found deliveries missing: see `petrel audit`"
  }
}

/** The alert that it replaces, what else is bad, the endpoint's failures in a row, its last failure, its last dead letter, and its contact. */
export const alertDetails = ({
  also = [],
  contact,
  failuresInRow = 0,
  lastDeadLetter,
  lastError,
  lastStatus,
  replaces
}: Alert): ReadonlyArray<string> => {
  const last = [...(lastStatus === undefined ? [] : [`${lastStatus}`]), lastError ?? ""]
  const answer = last.join(" ").trim()
  return [
    ...(replaces === undefined ? [] : [`it was ${replaces}`]),
    ...(also.length === 0 ? [] : [`also raised: ${also.join(", ")}`]),
    ...(failuresInRow === 0 ? [] : [`${number(failuresInRow)} failed in a row`]),
    // Without failures in a row, the last answer was a success.
    ...(answer === "" ? [] : [`the last${failuresInRow === 0 ? " failure" : ""}: ${answer}`]),
    ...(lastDeadLetter === undefined ? [] : [deadLetterText(lastDeadLetter)]),
    ...(contact === undefined ? [] : [`contact: ${contact}`])
  ]
}

/** Returns the delivery and what its attempts got, such as `503 ×15, timeout`. */
const deadLetterText = ({ attempts, delivery, reason }: DeadLetterAttempts): string => {
  const runs: Array<{ readonly answer: string; times: number }> = []
  for (const { error, status } of attempts) {
    const answer = status === undefined ? (error ?? "no answer") : String(status)
    const last = runs.at(-1)
    if (last?.answer === answer) last.times++
    else runs.push({ answer, times: 1 })
  }
  const answers = runs.map(({ answer, times }) => (times === 1 ? answer : `${answer} ×${times}`))
  return [
    `${delivery} was given up`,
    ...(answers.length === 0 ? [] : [` after ${answers.join(", ")}`]),
    ...(reason === undefined ? [] : [` (reason: ${reason})`])
  ].join("")
}

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
const whatToDo = (
  name: Alert["name"],
  tenant: string | undefined,
  endpoint: string | undefined
): string => {
  if (name === "quarantined") return `petrel quarantine list ${tenant}`
  if (name === "source-refusing" || name === "provider-lost") return `petrel source list ${tenant}`
  return endpoint !== undefined
    ? `petrel endpoint diagnose ${tenant}/${endpoint}`
    : tenant !== undefined
      ? `petrel endpoint list ${tenant}`
      : "petrel status"
}

/** Returns the event of an alert as a message for people; undefined for any other text. */
export const alertMessage = (event: string): string | undefined => {
  const decoded = Option.getOrUndefined(decode(event))
  if (decoded === undefined) return undefined
  const { endpoint, state, tenant, ...alert } = decoded.data
  const about = endpoint === undefined ? (tenant ?? "the system") : `${tenant ?? ""}/${endpoint}`
  if (state === "cleared") return `Petrel: ${alert.name} of ${about} is over.`
  const details = [alertText(alert), ...alertDetails(alert)].join("; ")
  const since = new Date(alert.raisedAt).toISOString().replace(/\.\d+Z$/, "Z")
  return `Petrel: ${alert.level} about ${about} (${alert.name}, since ${since}): ${details}. See \`${whatToDo(alert.name, tenant, endpoint)}\`.`
}
