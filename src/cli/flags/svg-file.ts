import { writeFile } from "node:fs/promises"
import { Effect } from "effect"
import type { OutlinedPolicy } from "../../operations/endpoints/outlined-policy.ts"
import { outlineSvg } from "../format/outline.ts"
import { Refused } from "../refused.ts"
import { remark } from "../terminal/stdout.ts"
import { textFlag } from "./shared.ts"

export const svgFlag = textFlag("svg", "FILE", "Write the drawing as an SVG picture instead")

/** Writes policies as a picture. */
export const writeSvg = Effect.fnUntraced(function* (
  file: string,
  outlines: ReadonlyArray<OutlinedPolicy>
) {
  yield* Effect.tryPromise({
    try: () => writeFile(file, outlineSvg(outlines)),
    catch: (error) =>
      new Refused({
        message: `cannot write ${file}: ${error instanceof Error ? error.message : ""}`
      })
  })
  yield* remark(`${file} is written`)
})
