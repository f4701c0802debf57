import { styleText } from "node:util"
import type { Fact } from "../domain/fact.ts"
import type { SettingsChange, TenantSettingName } from "../domain/settings/tenant-table.ts"
import { nobody } from "../domain/token.ts"
import { alertDetails, alertText } from "./alert-text.ts"
import { plainText } from "./plain-text.ts"
import { countText, localTime, spanText } from "./quantities.ts"

interface LineOptions {
  /** ms since the epoch. A fact of another day is shown with its date. */
  readonly now: number
  readonly colour: boolean
}

type Colour = "green" | "yellow" | "red" | "dim"

/** Endpoints of a plan that a line names; the others are counted. */
const namedEndpoints = 3
/** Columns for event and endpoint, which align the rest of the line for names of usual length. */
const subjectWidth = 35
const durationWidth = 6
/** A longer id is cut in the middle, so that most lines fit into 80 columns. */
const longestId = 24

/** Shortens an event's id to its beginning and its end, which identify most ids. */
const shortId = (id: string): string =>
  id.length > longestId ? `${id.slice(0, 13)}…${id.slice(-10)}` : id

const subjectOf = ({ endpoint, event, tenant }: Fact): string => {
  const target = endpoint === nobody ? tenant : `${tenant}/${endpoint}`
  if (event === undefined) return target === nobody ? "the system" : target
  return target === nobody ? shortId(event) : `${shortId(event)} → ${target}`
}

const answerOf = ({ error, status }: Fact): ReadonlyArray<string> => [
  ...(status === undefined ? [] : [String(status)]),
  ...(error === undefined ? [] : [`${error.class}: ${error.message}`])
]

const redirectsOf = ({ redirects = [] }: Fact): ReadonlyArray<string> => {
  const last = redirects.at(-1)
  if (last === undefined) return []
  const times = redirects.length === 1 ? "" : ` (${redirects.length} redirects)`
  return [`from ${plainText(last.to)}${times}`]
}

const attemptOf = (fact: Fact): ReadonlyArray<string> => [
  ...(fact.attempt === undefined ? [] : [`#${fact.attempt}`]),
  ...(fact.probe === true ? ["probe"] : []),
  ...answerOf(fact),
  ...redirectsOf(fact),
  ...(fact.durationMs === undefined ? [] : [spanText(fact.durationMs).padStart(durationWidth)])
]

const planText = ({ plan, type }: Fact): string => {
  if (plan === undefined) return "routed"
  const names = plan.endpoints.slice(0, namedEndpoints).map(({ id }) => id)
  const others = plan.endpoints.length - names.length
  const chosen = others === 0 ? names.join(", ") : `${names.join(", ")} and ${others} more`
  const skipped = plan.skipped.length === 0 ? "" : ` (${plan.skipped.length} disabled)`
  const none = skipped === "" ? "nobody: no endpoint wants it" : "nobody"
  return `${type ?? "routed"} for ${names.length === 0 ? none : chosen}${skipped}`
}

const deliveredText = ({ type }: Fact): string =>
  type === undefined ? "delivered" : `delivered: ${type}`

/** How many of some attempts were probes, to follow their number: `, 9 of them probes`, or nothing. */
export const probesText = (attempts: number, probes: number): string => {
  if (probes === 0) return ""
  if (probes === 1) return attempts === 1 ? ", a probe" : ", 1 of them a probe"
  return `, ${probes} of them probes`
}

/** How often a delivery was attempted that has ended: `after 12 attempts, 9 of them probes`. */
export const attemptsText = (attempts: number, probes = 0): string => {
  if (attempts === 0) return "never attempted"
  const after = attempts === 1 ? "after 1 attempt" : `after ${attempts} attempts`
  return `${after}${probesText(attempts, probes)}`
}

type Asker = Pick<Fact, "by" | "user">

/** The broker's user that recorded the fact, if known. */
const userOf = ({ user }: Asker): string => (user === undefined ? "" : ` (user ${user})`)

/** The action and who asked for it: `paused by ana@host (user ops)`. */
export const askedBy = (what: string, asker: Asker): string =>
  `${asker.by === undefined ? what : `${what} by ${asker.by}`}${userOf(asker)}`

/**
 * Omits the differences, and whether the endpoint is new: both need the previous change (`petrel
 * endpoint show --history`).
 */
const changeText = (fact: Fact): string => {
  const { change } = fact
  if (change === undefined) return fact.kind
  const { isUnreadable, now, revision } = change
  const withoutSettings = isUnreadable === true ? "unreadable" : "removed"
  return askedBy(
    `${now === undefined ? withoutSettings : "configured"}: revision ${revision}`,
    fact
  )
}

/** What a line says of each setting of a tenant that is set. */
const settingTexts: {
  readonly [Name in TenantSettingName]: (value: NonNullable<SettingsChange["now"][Name]>) => string
} = {
  hostCap: (cap) => `host cap ${cap}`,
  maxTimeout: (most) => `time-outs of at most ${most}`,
  maxEndpoints: (most) => `at most ${most} endpoints`,
  maxTokens: (most) => `at most ${most} tokens`,
  forwardHeaders: (names) => `forwards ${names.join(", ")}`
}

const settingsText = (fact: Fact): string => {
  const set = new Map<string, unknown>(Object.entries(fact.settings?.now ?? {}))
  const texts = Object.entries(settingTexts).flatMap(([name, text]) =>
    set.has(name) ? [text(set.get(name) as never)] : []
  )
  return `${askedBy("settings changed", fact)}: ${texts.length === 0 ? "none is set" : texts.join("; ")}`
}

const thresholdsText = (fact: Fact): string => {
  const { now } = fact.thresholds ?? {}
  const set = now === undefined ? "none is set" : now
  const text =
    typeof set === "string"
      ? set
      : Object.entries(set)
          .map(([name, value]) => `${name} ${value}`)
          .join("; ")
  return `${askedBy("thresholds of alerts changed", fact)}: ${text}`
}

const tokenText = (what: string, fact: Fact): string => {
  const { id = "", name, scopes = [] } = fact.token ?? {}
  return `${askedBy(`token ${id}${name === undefined ? "" : ` (${name})`} ${what}`, fact)}: ${fact.reason ?? scopes.join(", ")}`
}

const sourceText = (what: string, fact: Fact): string => {
  const { changed = [], id = "", provider = "" } = fact.source ?? {}
  const text = askedBy(`source ${id} (${provider}) ${what}`, fact)
  return changed.length === 0 ? text : `${text}: ${changed.join(", ")}`
}

const incomingText = (what: string, { incoming, reason }: Fact): string => {
  const { seq, source = "" } = incoming ?? {}
  const where = seq === undefined ? `source ${source}` : `${seq} of source ${source}`
  return `${where} ${what}${reason === undefined ? "" : `: ${reason}`}`
}

const reconciledText = (fact: Fact): string => {
  const { incoming, kind, reason } = fact
  const { asked = 0, fetched = 0, listed = 0, missing = 0, tooOld = 0 } = fact.reconciled ?? {}
  const counts = [
    `${countText(listed)} listed`,
    `${countText(missing)} missing`,
    ...(fetched === 0 ? [] : [`${countText(fetched)} fetched`]),
    ...(asked === 0 ? [] : [`${countText(asked)} asked for`]),
    ...(tooOld === 0 ? [] : [`${countText(tooOld)} too old to know`])
  ].join(", ")
  const what = `source ${incoming?.source ?? ""}`
  return kind === "reconciled"
    ? `${askedBy(`${what} reconciled`, fact)}: ${counts}`
    : `${what} ${kind === "provider-lost" ? "did not get all" : "could not be reconciled"}: ${reason ?? ""} (${counts})`
}

/** Like {@link askedBy}, with the reason if given: `paused by ana@host: maintenance`. */
const askedFor = (what: string, fact: Fact): string =>
  `${askedBy(what, fact)}${fact.reason === undefined ? "" : `: ${fact.reason}`}`

const alertStory = ({
  alert,
  kind,
  reason
}: Fact): readonly [parts: ReadonlyArray<string>, colour: Colour] => {
  if (alert === undefined) return [[kind], "yellow"]
  const { level, name } = alert
  if (kind === "alert-cleared") return [[`${name} cleared: ${reason}`], "green"]
  return [
    [[`${name}: ${alertText(alert)}`, ...alertDetails(alert)].join("; ")],
    level === "critical" ? "red" : "yellow"
  ]
}

/** The parts of the line that say what happened, and the colour of the last part. */
const storyOf = (fact: Fact): readonly [parts: ReadonlyArray<string>, colour: Colour] => {
  const { kind, nextAttemptAt, reason } = fact
  switch (kind) {
    case "routed":
      return [[planText(fact)], "dim"]
    case "delivered":
      return [[...attemptOf(fact), deliveredText(fact)], "green"]
    case "delivered-late":
      return [[...attemptOf(fact), "delivered late"], "green"]
    case "attempt-failed":
      return nextAttemptAt === undefined
        ? [[...attemptOf(fact), "no further attempt"], "red"]
        : [[...attemptOf(fact), `next in ${spanText(nextAttemptAt - fact.at)}`], "yellow"]
    case "dead-lettered":
      return [
        [
          attemptsText(fact.attempt ?? 0, fact.probes),
          ...answerOf(fact),
          `dead-lettered: ${reason}`
        ],
        "red"
      ]
    case "circuit-opened":
      return [
        [
          `circuit opened: ${reason}`,
          ...(nextAttemptAt === undefined ? [] : [`probed in ${spanText(nextAttemptAt - fact.at)}`])
        ],
        "red"
      ]
    case "circuit-half-opened":
      return [["circuit half-open"], "yellow"]
    case "circuit-closed":
      return [["circuit closed"], "green"]
    case "endpoint-changed":
      return [[changeText(fact)], "yellow"]
    case "settings-changed":
      return [[settingsText(fact)], "yellow"]
    case "thresholds-changed":
      return [[thresholdsText(fact)], "yellow"]
    case "endpoint-paused":
      return [[askedFor("paused", fact)], "yellow"]
    case "endpoint-resumed":
      return [[askedBy("resumed", fact)], "green"]
    case "endpoint-enabled":
      return [[askedBy("enabled", fact)], "green"]
    case "endpoint-suspended":
      return [[askedFor("suspended", fact)], "red"]
    case "endpoint-disabled":
      return [[askedFor("disabled", fact)], "red"]
    case "redelivered":
      return [[askedBy("sent again", fact)], "yellow"]
    case "replayed":
      return [[askedBy("replayed", fact)], "yellow"]
    case "discarded":
      return [[askedBy("dead letter discarded", fact)], "yellow"]
    case "secrets-revealed":
      return [[askedBy("secrets revealed", fact)], "yellow"]
    case "token-created":
      return [[tokenText("made", fact)], "yellow"]
    case "token-revoked":
      return [[tokenText("revoked", fact)], "yellow"]
    case "source-added":
      return [[sourceText("added", fact)], "yellow"]
    case "source-changed":
      return [[sourceText("changed", fact)], "yellow"]
    case "source-removed":
      return [[sourceText("removed", fact)], "yellow"]
    case "quarantined":
      return [[incomingText("is in quarantine", fact)], "red"]
    case "quarantine-released":
      return [[incomingText(askedBy("released from quarantine", fact), fact)], "yellow"]
    case "quarantine-discarded":
      return [[incomingText(askedBy("discarded from quarantine", fact), fact)], "yellow"]
    case "reconciled":
      return [[reconciledText(fact)], "green"]
    case "provider-lost":
    case "reconcile-failed":
      return [[reconciledText(fact)], "red"]
    case "source-refusing":
      return [[incomingText("refuses what comes", fact)], "red"]
    case "alert-raised":
    case "alert-cleared":
      return alertStory(fact)
    case "unroutable":
      return [[`unroutable: ${reason}`], "red"]
    default:
      return [[...attemptOf(fact), reason === undefined ? kind : `${kind}: ${reason}`], "yellow"]
  }
}

/**
 * Formats a fact as one line for people: time, event, endpoint, attempt, result, next step.
 * `10:32:07  acme.invoice-42 → acme/billing       #2  503   12 ms  next in 2 s`
 */
export const factLine = (fact: Fact, { colour, now }: LineOptions): string => {
  const paint = (style: Colour, text: string) =>
    colour ? styleText(style, text, { validateStream: false }) : text
  const [parts, style] = storyOf(fact)
  const words = parts.map(plainText)
  const last = words.pop() ?? ""
  return [
    paint("dim", localTime(fact.at, now)),
    plainText(subjectOf(fact)).padEnd(subjectWidth),
    ...words,
    paint(style, last)
  ].join("  ")
}
