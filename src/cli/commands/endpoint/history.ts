import { Clock, Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import type { SettingDifference } from "../../../domain/configuration.ts"
import { Configuration } from "../../../domain/configuration.ts"
import { type EndpointName, endpointLabel, Paused, Stopped } from "../../../domain/endpoint.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import {
  Comparison,
  compareRevisions,
  EndpointStep,
  endpointHistory
} from "../../../operations/endpoints/endpoint-story.ts"
import { askedBy } from "../../../text/fact-line.ts"
import { plainText } from "../../../text/plain-text.ts"
import { localTime } from "../../../text/quantities.ts"
import { settingName } from "../../flags/flag-problems.ts"
import { endpointArgument } from "../../flags/shared.ts"
import { labelled, screenWidth } from "../../format/screen.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { print, remark } from "../../terminal/stdout.ts"
import { type SettingText, settingTexts } from "./setting-texts.ts"
import { sinceText } from "./view.ts"

const decodeStopped = Schema.decodeUnknownOption(Stopped)
const decodePaused = Schema.decodeUnknownOption(Paused)
const decodeSecrets = Schema.decodeUnknownOption(Configuration.fields.secrets)

const texts: ReadonlyMap<string, SettingText> = new Map(Object.entries(settingTexts))

const retryForPart = "retryFor."

/** Returns the flag's name of a setting, without dashes; with the event types of a policy. */
const nameText = (setting: string): string =>
  setting.startsWith(retryForPart)
    ? `${settingName("retryFor")} ${setting.slice(retryForPart.length)}`
    : settingName(setting)

const valueText = (setting: string, value: unknown): string => {
  const text = texts.get(setting.split(".")[0] ?? "")
  if (value === undefined) return text?.unset ?? "default"
  const shown = text?.value?.(value)
  if (shown !== undefined) return shown
  if (typeof value === "boolean") return value ? "on" : "off"
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ")
  return typeof value === "string" ? value : JSON.stringify(value)
}

const secretsText = ({ from, to }: SettingDifference, now: number): string => {
  const [before, after] = [from, to].map((it) => Option.getOrElse(decodeSecrets(it), () => []))
  const [old] = before ?? []
  const [newest, second] = after ?? []
  if (newest === undefined) return "secrets dropped"
  if (old === undefined)
    return after?.length === 1 ? "secret made" : `${after?.length} secrets made`
  if (newest.createdAt === old.createdAt) return "old secrets dropped"
  return second?.createdAt === old.createdAt && second.until !== undefined
    ? `secret rotated, the old one valid until ${localTime(second.until, now)}`
    : "secret rotated, the old one dropped"
}

const urlText = ({ from, to }: SettingDifference): string => {
  if (from === undefined) return `url at ${to}`
  return from === to ? "url changed (same host)" : `url ${from} → ${to}`
}

const pausedText = (value: unknown, now: number): string =>
  Option.match(decodePaused(value), {
    onNone: () => "resumed",
    onSome: (paused) => sinceText("paused", paused, now)
  })

const disabledText = (value: unknown, now: number): string =>
  Option.match(decodeStopped(value), {
    onNone: () => "enabled",
    onSome: (disabled) => sinceText("disabled", disabled, now)
  })

const suspendedText = (value: unknown, now: number): string =>
  Option.match(decodeStopped(value), {
    onNone: () => "resumed",
    onSome: (suspended) => sinceText("suspended", suspended, now)
  })

const differenceText = (difference: SettingDifference, now: number): string => {
  const { from, setting, to } = difference
  if (setting === "generation") return "another endpoint of that name"
  if (setting === "url") return urlText(difference)
  if (setting === "secrets") return secretsText(difference, now)
  if (setting === "disabled") return disabledText(to, now)
  if (setting === "suspended") return suspendedText(to, now)
  if (setting === "paused") return pausedText(to, now)
  return `${nameText(setting)} ${valueText(setting, from)} → ${valueText(setting, to)}`
}

/** The text if only settings have changed that the history does not record. */
const nothingRecorded = "only values that the history does not keep: those of secrets and headers"

/**
 * Returns the differences for people, a line for each setting: `types invoice.> → invoice.>,
 * order.>`.
 *
 * @param now ms since the epoch: times on another day are shown with their date.
 */
export const differenceTexts = (
  differences: ReadonlyArray<SettingDifference>,
  now: number
): ReadonlyArray<string> =>
  differences.length === 0
    ? [nothingRecorded]
    : differences.map((difference) => plainText(differenceText(difference, now)))

/** Returns the settings of a new endpoint, a line for each that differs from its default. */
const additionTexts = (
  differences: ReadonlyArray<SettingDifference>,
  now: number
): ReadonlyArray<string> =>
  differences
    .filter(({ setting, to }) => setting !== "generation" && !isEmpty(to))
    .map((difference) => {
      const { setting, to } = difference
      const isValue = !["url", "secrets", "disabled", "suspended", "paused"].includes(setting)
      return plainText(
        isValue ? `${nameText(setting)} ${valueText(setting, to)}` : differenceText(difference, now)
      )
    })

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0

const encode = jsonOf(EndpointStep)
const encodeComparison = jsonOf(Comparison)

const words: Record<EndpointStep["change"], string> = {
  added: "added",
  changed: "changed",
  removed: "removed",
  unreadable: "made unreadable"
}

const textsOf = ({ change, differences }: EndpointStep, now: number): ReadonlyArray<string> => {
  if (change === "added") return additionTexts(differences, now)
  return change === "changed" ? differenceTexts(differences, now) : []
}

const stepLines = (
  step: EndpointStep,
  now: number,
  width: number | undefined
): ReadonlyArray<string> => {
  const { at, change, revision } = step
  return [
    plainText(`${localTime(at, now)}  revision ${revision}  ${askedBy(words[change], step)}`),
    ...textsOf(step, now).flatMap((text) => labelled("  ", text, width))
  ]
}

/** Prints all recorded changes of an endpoint, oldest first. Includes removed endpoints. */
export const showHistory = Effect.fnUntraced(function* (name: EndpointName) {
  const { json } = yield* petrel
  const steps = yield* endpointHistory(name)
  if (steps.length === 0)
    return yield* remark(
      `the history has no change of ${endpointLabel(name)} yet: a worker records what it finds when it starts`
    )
  const now = yield* Clock.currentTimeMillis
  const width = screenWidth()
  for (const step of steps) {
    const lines = json ? [JSON.stringify(encode(step))] : stepLines(step, now, width)
    yield* Effect.forEach(lines, print, { discard: true })
  }
})

const revisionArgument = (name: string, description: string) =>
  Argument.Int(name).pipe(
    Argument.withDescription(description),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  )

export const diff = Command.make(
  "diff",
  {
    name: endpointArgument,
    from: revisionArgument("A", "The revision before (default: the last but one)"),
    to: revisionArgument("B", "The revision after (default: the last)")
  },
  Effect.fnUntraced(function* ({ from, name, to }) {
    const comparison = yield* compareRevisions(name, { from, to }).pipe(Effect.provide(connected))
    const { differences, problem } = comparison
    const now = yield* Clock.currentTimeMillis
    const label = endpointLabel(name)
    yield* report(
      encodeComparison(comparison),
      problem === undefined
        ? [
            `${label} from revision ${comparison.from} to ${comparison.to}`,
            ...differenceTexts(differences, now).flatMap((text) =>
              labelled("  ", text, screenWidth())
            )
          ].join("\n")
        : `nothing to compare of ${label}: ${problem}`
    )
  })
).pipe(
  Command.withDescription("Show which settings differ between two revisions of an endpoint"),
  Command.withExamples([
    { command: "petrel endpoint diff acme/billing", description: "What the last change did" },
    { command: "petrel endpoint diff acme/billing 12 31" }
  ])
)
