import { Layer, Logger, References } from "effect"

/** A logged line: its level and its text, without its fields. */
export interface Line {
  readonly level: string
  readonly text: string
}

/** Captures log lines instead of printing them. */
export const makeLog = () => {
  const lines: Array<Line> = []
  const logger = Logger.make(({ logLevel, message }) => {
    const [text] = Array.isArray(message) ? message : [message]
    lines.push({ level: logLevel, text: String(text) })
  })
  return {
    lines,
    layer: Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Info")),
    /** Returns how many logged lines contain the text. */
    count: (text: string) => lines.filter((line) => line.text.includes(text)).length
  }
}
