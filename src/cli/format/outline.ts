import type { OutlinedPolicy } from "../../operations/endpoints/outlined-policy.ts"
import { plural, spanText } from "../../text/quantities.ts"

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** Ticks of a scale of lengths of time, ms. */
const ticks: ReadonlyArray<readonly [ms: number, text: string]> = [
  [second, "1 s"],
  [10 * second, "10 s"],
  [minute, "1 min"],
  [10 * minute, "10 min"],
  [hour, "1 h"],
  [6 * hour, "6 h"],
  [day, "1 d"],
  [7 * day, "7 d"]
]

/** A logarithmic scale: waits of a second and of a day are seen side by side. */
interface Scale {
  /** Position of a length of time, from 0 to 1. */
  readonly at: (ms: number) => number
  readonly ticks: ReadonlyArray<{ readonly position: number; readonly text: string }>
}

/** Returns a scale on which all of these lengths of time (ms) have a place. */
export const scaleOf = (lengths: ReadonlyArray<number>): Scale => {
  const shortest = Math.max(1, Math.min(...lengths, hour))
  const longest = Math.max(...lengths, 2 * second)
  const least = Math.min(second, shortest) / 2
  const span = Math.log(longest / least)
  const at = (ms: number) => Math.min(1, Math.max(0, Math.log(Math.max(ms, least) / least) / span))
  return {
    at,
    ticks: ticks
      .filter(([ms]) => ms >= least && ms <= longest)
      .map(([ms, text]) => ({ position: at(ms), text }))
  }
}

/** Columns of a screen that is none. */
const usualWidth = 100
const minBar = 12
const maxBar = 60

/** Returns a range of lengths of time: `30 s to 1 min`. */
const rangeText = (least: number, most: number): string =>
  spanText(least) === spanText(most) ? spanText(most) : `${spanText(least)} to ${spanText(most)}`

/** Returns when a policy gives up, and why, as a sentence. */
const endText = ({ endedBy, givesUp, maxAttempts, window }: OutlinedPolicy): string => {
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

const titleText = ({ name, policy, types }: OutlinedPolicy): string =>
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

/** Sizes in pixels. */
const size = { width: 900, left: 190, bars: 400, row: 22, head: 66, gap: 26, line: 20 }
const colour = {
  text: "#1f2328",
  faint: "#6e7781",
  grid: "#d0d7de",
  least: "#1f6feb",
  most: "#a5c8ff"
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const label = (x: number, y: number, text: string, more = ""): string =>
  `<text x="${x}" y="${y}" fill="${colour.text}"${more}>${escaped(text)}</text>`

const heightOf = ({ statuses, waits }: OutlinedPolicy): number =>
  size.head + waits.length * size.row + size.gap + (1 + statuses.length) * size.line

/** Draws one policy, from a height on. */
const drawn = (outline: OutlinedPolicy, top: number): ReadonlyArray<string> => {
  const { waits } = outline
  const scale = scaleOf(waits.flatMap(({ least, most }) => [least, most]))
  const x = (ms: number) => size.left + Math.round(scale.at(ms) * size.bars)
  const first = top + size.head
  const bottom = first + waits.length * size.row
  const rows = waits.flatMap(({ attempt, earliest, latest, least, mayBeCut, most }, n) => {
    const y = first + n * size.row
    const base = y + 14
    const bar = (to: number, fill: string) =>
      `<rect x="${size.left}" y="${y + 3}" width="${Math.max(2, to - size.left)}" height="14" rx="2" fill="${fill}"/>`
    return [
      label(
        size.left - 12,
        base,
        `wait ${attempt - 1}: ${rangeText(least, most)}`,
        ' text-anchor="end"'
      ),
      bar(x(most), colour.most),
      bar(x(least), colour.least),
      label(
        size.left + size.bars + 12,
        base,
        `#${attempt} after ${rangeText(earliest, latest)}${mayBeCut ? " *" : ""}`
      )
    ]
  })
  const grid = scale.ticks.flatMap(({ position, text }) => {
    const at = size.left + Math.round(position * size.bars)
    return [
      `<line x1="${at}" y1="${first - 4}" x2="${at}" y2="${bottom}" stroke="${colour.grid}"/>`,
      `<text x="${at}" y="${first - 10}" fill="${colour.faint}" text-anchor="middle">${text}</text>`
    ]
  })
  const cut = waits.some(({ mayBeCut }) => mayBeCut) ? " (* if the window lets it)" : ""
  const notes = [`${endText(outline)}${cut}`, ...statusTexts(outline)]
  return [
    label(16, top + 26, titleText(outline), ' font-size="16" font-weight="600"'),
    ...(waits.length === 0 ? [] : grid),
    ...rows,
    ...notes.map((text, n) => label(16, bottom + size.gap + n * size.line, text))
  ]
}

/** Draws policies one below the other as an SVG picture. */
export const outlineSvg = (outlines: ReadonlyArray<OutlinedPolicy>): string => {
  let top = 0
  const parts = outlines.flatMap((outline) => {
    const at = top
    top += heightOf(outline) + size.gap
    return drawn(outline, at)
  })
  const title = escaped(outlines.map(titleText).join("; "))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${top}" viewBox="0 0 ${size.width} ${top}" role="img" font-family="system-ui, sans-serif" font-size="13">`,
    `<title>Retry policy: ${title}</title>`,
    `<desc>${escaped(outlines.map(endText).join("; "))}</desc>`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    ...parts,
    "</svg>",
    ""
  ].join("\n")
}
