import { spanText } from "../../history/span.ts"
import type { OutlinedPolicy } from "../../operations/endpoints/outlined-policy.ts"
import { plural } from "../../operations/text/number-format.ts"
import type { Scale } from "./outline-scale.ts"
import { scaleOf } from "./outline-scale.ts"

/** Columns of a screen that is none. */
const usualWidth = 100
const minBar = 12
const maxBar = 60

/** Returns a range of lengths of time: `30 s to 1 min`. */
export const rangeText = (least: number, most: number): string =>
  spanText(least) === spanText(most) ? spanText(most) : `${spanText(least)} to ${spanText(most)}`

/** Returns when a policy gives up, and why, as a sentence. */
export const endText = ({ endedBy, givesUp, maxAttempts, window }: OutlinedPolicy): string => {
  const { earliest, latest } = givesUp
  const when = latest === 0 ? "at once" : `after ${rangeText(earliest, latest)}`
  switch (endedBy) {
    case "attempts":
      return `gives up when ${plural(maxAttempts, "attempt")} have failed: ${when}`
    case "window":
      return `gives up at the end of its window of ${spanText(window)}, the last attempt ${when}`
    case "either":
      return `gives up when ${plural(maxAttempts, "attempt")} have failed, or at the end of its window of ${spanText(window)}: ${when}`
  }
}

/** Returns the limits of single statuses as sentences. */
export const statusTexts = ({ statuses }: OutlinedPolicy): ReadonlyArray<string> =>
  statuses.map(({ attempts, status, waits, window }) =>
    [
      `${status}: at most ${plural(attempts, "attempt")} within ${spanText(window)}`,
      ...(waits.length === 0 ? [] : [`waits about ${waits.map(spanText).join(", ")}`])
    ].join("; ")
  )

export const titleText = ({ name, policy, types }: OutlinedPolicy): string =>
  `${types === undefined ? "" : `${types}: `}${name} (jitter: ${policy.backoff.kind === "decorrelated" ? "decorrelated" : policy.jitter})`

const barText = (least: number, most: number, scale: Scale, width: number): string => {
  const from = Math.max(1, Math.round(scale.at(least) * width))
  const to = Math.max(from, Math.round(scale.at(most) * width))
  return "█".repeat(from) + "░".repeat(to - from)
}

const axisText = ({ ticks }: Scale, width: number): string => {
  let line = ""
  for (const { position, text } of ticks) {
    const column = Math.round(position * width)
    if (column >= line.length + (line === "" ? 0 : 2) && column + text.length <= width + 4)
      line = `${line.padEnd(column)}${text}`
  }
  return line
}

/**
 * Draws the waits of a policy for a screen: a bar for each on a logarithmic scale, shaded where
 * jitter draws its length.
 *
 * @param width columns of the screen. (Default: 100)
 */
export const outlineLines = (
  outline: OutlinedPolicy,
  width: number = usualWidth
): ReadonlyArray<string> => {
  const { waits } = outline
  const rows = waits.map(({ attempt, earliest, latest, least, mayBeCut, most }) => ({
    label: `wait ${attempt - 1}`,
    range: rangeText(least, most),
    bar: (scale: Scale, columns: number) => barText(least, most, scale, columns),
    comes: `#${attempt} after ${rangeText(earliest, latest)}${mayBeCut ? ", if the window lets it" : ""}`
  }))
  const widest = (texts: ReadonlyArray<string>) => Math.max(0, ...texts.map((text) => text.length))
  const labels = widest(rows.map(({ label }) => label))
  const ranges = widest(rows.map(({ range }) => range))
  const comings = widest(rows.map(({ comes }) => comes))
  const besides = labels + ranges + comings + 8
  const columns = Math.min(maxBar, Math.max(minBar, width - besides))
  const fits = besides + columns <= width
  const scale = scaleOf(waits.flatMap(({ least, most }) => [least, most]))
  const bars = rows.map(({ bar, comes, label, range }) => {
    const drawn = `  ${label.padEnd(labels)}  ${range.padEnd(ranges)}  ${bar(scale, columns)}`
    return fits ? `${drawn.padEnd(besides - comings - 2 + columns)}  ${comes}` : drawn
  })
  return [
    titleText(outline),
    ...(rows.length === 0
      ? []
      : [`${" ".repeat(labels + ranges + 6)}${axisText(scale, columns)}`.trimEnd(), ...bars]),
    ...(fits || rows.length === 0 ? [] : rows.map(({ comes }) => `  ${comes}`)),
    `  ${endText(outline)}`,
    ...statusTexts(outline).map((text) => `  ${text}`)
  ]
}
