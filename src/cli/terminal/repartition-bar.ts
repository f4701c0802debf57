import { visible } from "../format/visible.ts"
import { coloured } from "./terminal.ts"

const width = 30
/** Minimum time between redraws, ms. */
const interval = 100

/** A progress bar on one line of a terminal. */
export interface Bar {
  readonly total: (messages: number) => void
  readonly advance: (messages: number, label?: string) => void
  /** Sets the description of the current step. */
  readonly label: (text: string) => void
  /** Erases the bar before other output. */
  readonly clear: () => void
}

/** Returns the bar's line. */
export const barLine = (done: number, total: number, label: string): string => {
  const share = total === 0 ? 0 : Math.min(1, done / total)
  const full = Math.floor(share * width)
  const numbers = `${done.toLocaleString("en")} of ${total.toLocaleString("en")}`
  const percent = `${Math.floor(share * 100)}%`.padStart(4)
  return `${"█".repeat(full)}${"░".repeat(width - full)} ${percent}  ${numbers}  ${label}`
}

/** Draws a progress bar on a terminal's stream. */
export const makeBar = (out: NodeJS.WriteStream): Bar => {
  let total = 0
  let done = 0
  let label = ""
  let drawnAt = 0
  let isDrawn = false
  const draw = (isUrgent: boolean) => {
    const now = performance.now()
    if (!isUrgent && now - drawnAt < interval) return
    drawnAt = now
    isDrawn = true
    const line = total === 0 ? label : barLine(done, total, label)
    const fitting = visible(line).slice(0, Math.max(10, out.columns - 1))
    out.write(`\r\u001b[2K${coloured() ? `\u001b[36m${fitting}\u001b[39m` : fitting}`)
  }
  return {
    total: (messages) => {
      total = messages
      label = ""
      draw(true)
    },
    advance: (messages, text = label) => {
      done += messages
      label = text
      // Messages may be added meanwhile, such as schedules that fire.
      total = Math.max(total, done)
      draw(done === total)
    },
    label: (text) => {
      label = text
      draw(true)
    },
    clear: () => {
      if (isDrawn) out.write("\r\u001b[2K")
      isDrawn = false
    }
  }
}
