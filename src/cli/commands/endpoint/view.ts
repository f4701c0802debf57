import type { StandingAlert } from "../../../domain/alert.ts"
import type { Endpoint } from "../../../domain/endpoint.ts"
import { endpointLabel } from "../../../domain/endpoint.ts"
import type {
  ActivityView,
  CircuitView,
  EndpointDetail,
  EndpointHealthView,
  EndpointView,
  HealthView,
  LastHour,
  ListedEndpoint
} from "../../../operations/endpoints/endpoint-view.ts"
import { tallySince } from "../../../policy/tally.ts"
import { alertDetails, alertText } from "../../../text/alert-text.ts"
import { plainText } from "../../../text/plain-text.ts"
import {
  countText,
  durationText,
  localTime,
  percentText,
  plural,
  spanText
} from "../../../text/quantities.ts"
import { labelled } from "../../format/screen.ts"
import { type Row, type SettingText, settingTexts } from "./setting-texts.ts"

const circuitText = (circuit: CircuitView, now: number): string => {
  const { probesSucceeded: done = 0, ramping, since = 0, state, successes, why = "" } = circuit
  if (ramping === true) return `closed since ${localTime(since, now)}, and traffic comes back`
  if (state === undefined || state === "closed") return "closed"
  const probeAt = circuit.nextProbeAt ?? now
  const probe =
    probeAt > now ? `probed at ${localTime(probeAt, now)}` : "probed with the next delivery"
  const progress = state === "half-open" ? `${done} of ${successes} probes succeeded` : probe
  return `${state} since ${localTime(since, now)} (${plainText(why)}), ${progress}`
}

const opensText = ({ coolDown, failures, maxCoolDown, onOpen, rate, successes }: CircuitView) => {
  const share =
    rate === "none"
      ? ""
      : ` or ${rate.percent}% of at least ${rate.of} in ${durationText(rate.over)}`
  const meanwhile = onOpen === "backlog" ? "events wait" : "events are dead-lettered"
  return `at ${failures} failures in a row${share}; ${meanwhile}; probed after ${durationText(coolDown)}, up to ${durationText(maxCoolDown)}, until ${successes} succeed`
}

const givenUp = { disable: "disabled", suspend: "suspended" } as const

const givesUpText = ({ giveUpAfter, onGiveUp, onGone, permanentFailures }: CircuitView): string => {
  const after = `after ${durationText(giveUpAfter)} of failures, or ${permanentFailures} permanent ones in a row: ${givenUp[onGiveUp]} then`
  return onGone === onGiveUp ? after : `${after}; ${givenUp[onGone]} at a 410`
}

const failingText = (
  health: HealthView,
  { onGiveUp }: CircuitView,
  now: number
): string | undefined => {
  const { failingSince, failuresInRow, giveUpAt, lastError, lastStatus, permanentInRow } = health
  const answer = [lastStatus, lastError].filter((part) => part !== undefined).join(" ")
  const last = answer === "" ? "" : `, the last: ${plainText(answer)}`
  if (failingSince !== undefined && giveUpAt !== undefined)
    return `since ${localTime(failingSince, now)}, ${failuresInRow} in a row${last}; ${givenUp[onGiveUp]} if it goes on until ${localTime(giveUpAt, now)}`
  return permanentInRow === 0 ? undefined : `${permanentInRow} permanent failures in a row${last}`
}

/** Returns an endpoint's health for people, one row per property. */
export const healthRows = (
  { circuit, health }: EndpointHealthView,
  now: number
): ReadonlyArray<readonly [string, string]> => {
  const failing = failingText(health, circuit, now)
  const { notBefore = 0 } = health
  return [
    ["circuit", circuitText(circuit, now)],
    ["opens", opensText(circuit)],
    ["gives up", givesUpText(circuit)],
    ...(failing === undefined ? [] : [["failing", failing] as const]),
    ...(notBefore > now
      ? [["left alone", `until ${localTime(notBefore, now)}, as the receiver asked`] as const]
      : [])
  ]
}

const waitingText = ({ inFlight, waiting }: ActivityView): string => {
  const { backlog, memory, queue, schedules } = waiting
  const places = [
    `${countText(backlog)} in the backlog`,
    `${countText(queue)} in the queue`,
    schedules === null
      ? "too many schedules to count"
      : `${countText(schedules)} scheduled for a later retry`
  ].join(", ")
  const inMemory = (inFlight ?? 0) + (memory ?? 0)
  return inMemory === 0 ? places : `${places}; those in flight or in line may be among them`
}

const lastHourText = (
  { attempts, delivered, p50Ms, p95Ms, since }: LastHour,
  owner: string,
  now: number
): string => {
  const from =
    since > tallySince(now)
      ? ` since ${localTime(since, now)}, when ${plainText(owner)} took its partition`
      : ""
  if (attempts === 0) return `no attempts${from}`
  return `${plural(attempts, "attempt")}${from}: ${percentText(delivered, attempts)} delivered, p50 ${spanText(p50Ms ?? 0)}, p95 ${spanText(p95Ms ?? 0)}`
}

const unknownText = ({ owner, partition }: ActivityView): string =>
  owner === null
    ? `not known: no worker owns partition ${partition} now`
    : `not known: ${plainText(owner)}, which has partition ${partition}, does not answer now`

/** Returns an endpoint's current activity for people, one row per property. */
export const nowRows = (
  activity: ActivityView,
  now: number
): ReadonlyArray<readonly [string, string]> => {
  const { inFlight, lastHour, owner, waiting } = activity
  if (inFlight === null || lastHour === null)
    return [
      ["in flight", unknownText(activity)],
      ["waiting", waitingText(activity)],
      ["last hour", "not known"]
    ]
  const { memory } = waiting
  const line = memory === null || memory === 0 ? "" : `; ${countText(memory)} in line`
  return [
    ["in flight", `${inFlight}${line}`],
    ["waiting", waitingText(activity)],
    ["last hour", lastHourText(lastHour, owner ?? "its owner", now)]
  ]
}

/** The activity columns of the list: deliveries now, and the attempts of the last hour. */
const nowHeadings = ["in flight", "waiting", "sent/h", "ok", "p50", "p95"]

/** Returns an endpoint's activity in the columns of `nowHeadings`; `-` for unknown values. */
export const nowCells = ({ inFlight, lastHour, waiting }: ActivityView): ReadonlyArray<string> => {
  // Deliveries in flight or in the lane may be stored in the queue or in the backlog, so one sum
  // covers all.
  const sum = waiting.queue + waiting.backlog + (waiting.schedules ?? 0)
  const all = waiting.schedules === null ? `${countText(sum)}+` : countText(sum)
  if (inFlight === null || lastHour === null) return ["-", all, "-", "-", "-", "-"]
  const { attempts, delivered, p50Ms, p95Ms } = lastHour
  if (attempts === 0) return [countText(inFlight), all, "0", "-", "-", "-"]
  return [
    countText(inFlight),
    all,
    countText(attempts),
    percentText(delivered, attempts),
    spanText(p50Ms ?? 0),
    spanText(p95Ms ?? 0)
  ]
}

/** Returns since when, by whom and why an endpoint is in a state. */
export const sinceText = (
  state: string,
  { at, by, reason }: { readonly at: number; readonly by: string; readonly reason?: string },
  now: number
): string => {
  const why = reason === undefined ? "" : `: ${plainText(reason)}`
  return `${state} since ${localTime(at, now)} by ${plainText(by)}${why}`
}

/** Returns `enabled`, or since when and why the endpoint is disabled, suspended or paused. */
export const stateText = (
  { disabled, paused, suspended }: Pick<Endpoint, "disabled" | "paused" | "suspended">,
  now: number
): string => {
  if (disabled !== undefined) return sinceText("disabled", disabled, now)
  if (suspended !== undefined) return sinceText("suspended", suspended, now)
  return paused === undefined ? "enabled" : sinceText("paused", paused, now)
}

/** How an endpoint is displayed. */
interface TextOptions {
  /** The current time, ms since the epoch. */
  readonly at: number
  /** Columns of the screen. (Default: no limit) */
  readonly width: number | undefined
}

/** Returns an endpoint's configuration and health for people, one or more lines per property. */
export const endpointText = (endpoint: EndpointDetail, { at: now, width }: TextOptions): string => {
  const { raised, revision } = endpoint
  const { types, url, ...others } = settingTexts
  const rows: ReadonlyArray<Row> = [
    ...url.rows(endpoint, now),
    ...types.rows(endpoint, now),
    ["state", stateText(endpoint, now)],
    ...nowRows(endpoint, now),
    ...healthRows(endpoint, now),
    ...raised.map((alert) => ["raised", raisedText(alert, now)] as const),
    ...Object.values<SettingText>(others).flatMap((setting) => setting.rows(endpoint, now)),
    ["created", localTime(endpoint.createdAt, now)],
    ["changed", `${localTime(endpoint.updatedAt, now)} (revision ${revision})`]
  ]
  return [
    endpointLabel(endpoint),
    ...rows.flatMap(([name, value]) => labelled(`  ${name.padEnd(12)}`, plainText(value), width))
  ].join("\n")
}

const raisedText = (alert: StandingAlert, now: number): string => {
  const { level, name, raisedAt } = alert
  const said = plainText([alertText(alert), ...alertDetails(alert)].join("; "))
  return `${name} (${level}) since ${localTime(raisedAt, now)}: ${said}`
}

/** Minimum width of a terminal for the column of URLs. */
const minWidthForUrls = 120

/** Returns the headings of a list of endpoints that fit the terminal's width. */
export const listHeadings = (width: number | undefined): ReadonlyArray<string> => [
  "endpoint",
  "state",
  ...nowHeadings,
  ...(width === undefined || width >= minWidthForUrls ? ["url"] : [])
]

const stateWord = ({ circuit, disabled, paused, suspended }: ListedEndpoint): string => {
  if (disabled !== undefined) return "disabled"
  if (suspended !== undefined) return "suspended"
  if (paused !== undefined) return "paused"
  return circuit.state === undefined || circuit.state === "closed" ? "enabled" : circuit.state
}

/** Returns an endpoint as a row under `listHeadings`. */
export const listRow = (endpoint: ListedEndpoint): ReadonlyArray<string> => [
  endpointLabel(endpoint),
  stateWord(endpoint),
  ...nowCells(endpoint),
  endpoint.url
]

/** Returns the lines that show a new secret, and who gets which key. Empty without one. */
export const secretLines = ({
  secret,
  ...endpoint
}: EndpointView & { readonly secret?: string }): ReadonlyArray<string> => {
  if (secret === undefined) return []
  const { publicKey } = endpoint
  return publicKey === undefined
    ? [
        `  secret      ${secret}`,
        `  The receiver verifies with it. To see it again: \`petrel endpoint show ${endpointLabel(endpoint)} --reveal\`.`
      ]
    : [
        `  public key  ${publicKey}`,
        `  secret      ${secret}`,
        "  The receiver verifies with the public key. Give the secret to nobody."
      ]
}
