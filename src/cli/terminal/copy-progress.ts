import { Effect } from "effect"
import { bytesText } from "../../text/quantities.ts"
import { timers } from "../../time/timers.ts"
import { visible } from "../format/visible.ts"
import { makeBar } from "./progress.ts"
import { Output } from "./stdout.ts"

/** Interval between lines where there is no terminal, ms. */
const lineMs = 10_000
const mebibyte = 1024 * 1024

/** Shows how many bytes of a long copy are done: a bar on a terminal, otherwise a line now and then. */
export const makeCopyBar = (json: boolean) =>
  Effect.map(Output, ({ stderr }) => {
    const bar = makeBar(json)
    let total = 0
    let what = ""
    let saidAt = timers.monotonicMs()
    const show = (bytes: number) => {
      if (bar !== undefined)
        return bar.show(
          Math.floor(bytes / mebibyte),
          Math.ceil(total / mebibyte),
          `MiB  ${visible(what)}`
        )
      const now = timers.monotonicMs()
      if (json || now - saidAt < lineMs) return
      saidAt = now
      stderr.write(`${bytesText(bytes)} of ${bytesText(total)} done: ${visible(what)}\n`)
    }
    let drawnAt = 0
    return {
      total: (bytes: number) => {
        total = bytes
      },
      /** Sets what is copied now. */
      label: (text: string) => {
        what = text
      },
      at: (bytes: number) => {
        const now = timers.monotonicMs()
        if (now - drawnAt < 100) return
        drawnAt = now
        show(bytes)
      },
      clear: Effect.sync(() => bar?.clear())
    }
  })
