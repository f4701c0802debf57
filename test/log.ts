import { Layer, Logger, References } from "effect"

/** One line that was logged: its level and what it says, without its fields. */
export interface Line {
  readonly level: string
  readonly text: string
}

/** Keeps what is logged instead of printing it. */
export const makeLog = () => {
  const lines: Array<Line> = []
  const logger = Logger.make(({ logLevel, message }) => {
    const [text] = Array.isArray(message) ? message : [message]
    lines.push({ level: logLevel, text: String(text) })
  })
  return {
    lines,
    layer: Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Info")),
    /** How often a line with this in it was logged. */
    count: (text: string) => lines.filter((line) => line.text.includes(text)).length
  }
}
