import { Effect } from "effect"
import type { Divergence } from "./divergence.ts"
import { lostOf, readLinks } from "./links.ts"
import { copyingStreams, readRecord, stillOpen } from "./record.ts"

/**
 * Reads which sources lost what was copied from them: what the last comparison found, and what the
 * ends of the streams show without one.
 */
export const surveySources = Effect.gen(function* () {
  const { divergences } = yield* readRecord
  const found: Array<Divergence> = []
  for (const stream of yield* copyingStreams) {
    const { info, links } = yield* readLinks(stream)
    const known = stillOpen(divergences, stream, info.config.sources ?? [])
    const isKnown = (source: string) => known.some((one) => one.source === source)
    found.push(...known, ...links.flatMap(lostOf).filter(({ source }) => !isKnown(source)))
  }
  return found
})
