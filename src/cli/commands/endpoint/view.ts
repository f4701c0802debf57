import type { Alert } from "../../../domain/alert.ts"
import type { Endpoint } from "../../../domain/endpoint.ts"
import { alertDetails, alertText } from "../../../history/alert-text.ts"
import { plainText } from "../../../history/line.ts"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import type {
  EndpointDetail,
  EndpointView,
  ListedEndpoint
} from "../../../operations/endpoints/endpoint-view.ts"
import { moment } from "../../../operations/text/time.ts"
import { labelled } from "../../format/screen.ts"
import { healthRows } from "./health.ts"
import { nowCells, nowHeadings, nowRows } from "./now.ts"
import type { Row, SettingText } from "./setting-texts.ts"
import { settingTexts } from "./setting-texts.ts"

/** Returns since when, by whom and why an endpoint is in a state. */
export const sinceText = (
  state: string,
  { at, by, reason }: { readonly at: number; readonly by: string; readonly reason?: string },
  now: number
): string => {
  const why = reason === undefined ? "" : `: ${plainText(reason)}`
  return `${state} since ${moment(at, now)} by ${plainText(by)}${why}`
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
export interface TextOptions {
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
    ["created", moment(endpoint.createdAt, now)],
    ["changed", `${moment(endpoint.updatedAt, now)} (revision ${revision})`]
  ]
  return [
    endpointLabel(endpoint),
    ...rows.flatMap(([name, value]) => labelled(`  ${name.padEnd(12)}`, plainText(value), width))
  ].join("\n")
}

const raisedText = (alert: Alert, now: number): string => {
  const { level, name, raisedAt } = alert
  const said = plainText([alertText(alert), ...alertDetails(alert)].join("; "))
  return `${name} (${level}) since ${moment(raisedAt, now)}: ${said}`
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
        "  The receiver verifies with the public key; the secret is nobody else's."
      ]
}
