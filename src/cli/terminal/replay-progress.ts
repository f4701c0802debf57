import type { Writable } from "node:stream"
import { Effect } from "effect"
import { countText } from "../../operations/text/number-format.ts"
import { visible } from "../format/visible.ts"
import { Output } from "./output.ts"
import { makeBar } from "./repartition-bar.ts"

/** Shows the progress of a long operation. */
export interface ProgressView {
  readonly total: (count: number) => void
  readonly advance: () => void
  /**
   * Reports that the operation is throttled because `waiting` deliveries wait for an endpoint; 0:
   * it continues.
   */
  readonly held: (endpoint: string, waiting: number) => void
  readonly clear: () => void
}

/** Returns a bar on a terminal. Otherwise, throttling is reported as a line. */
export const makeProgress = (json: boolean): Effect.Effect<ProgressView> =>
  Effect.map(Output, ({ stderr }) => progressOn(stderr, json))

const progressOn = (stderr: Writable, json: boolean): ProgressView => {
  const bar = process.stderr.isTTY && !json ? makeBar(process.stderr) : undefined
  const reported = new Set<string>()
  return {
    total: (count) => {
      if (count > 0) bar?.total(count)
    },
    advance: () => bar?.advance(1),
    held: (endpoint, waiting) => {
      if (bar !== undefined) return bar.label(waiting === 0 ? "" : `held: ${endpoint} is busy`)
      if (waiting === 0 || reported.has(endpoint)) return
      reported.add(endpoint)
      stderr.write(
        `${countText(waiting)} wait for ${visible(endpoint)}: the others are sent as these go out\n`
      )
    },
    clear: () => bar?.clear()
  }
}
