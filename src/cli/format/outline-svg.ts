import type { OutlinedPolicy } from "../../operations/endpoints/outlined-policy.ts"
import { scaleOf } from "./outline-scale.ts"
import { endText, rangeText, statusTexts, titleText } from "./outline-view.ts"

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
