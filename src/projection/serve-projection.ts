import { Effect } from "effect"
import { DeliveryLog } from "./delivery-log.ts"
import type { ProjectionOptions } from "./projection.ts"
import { startProjection } from "./projection.ts"
import { answerLog } from "./remote-log.ts"

/** What a projection keeps by default: how long, ms, and how many bytes. */
export const defaultKeepMs = 7 * 24 * 60 * 60_000
export const defaultMaxBytes = 10 * 1_024 ** 3

/**
 * Runs a projection until the scope ends, and lets other processes ask it over NATS. Returns its log
 * for this process.
 */
export const serveProjection = Effect.fnUntraced(function* (options: ProjectionOptions) {
  const projection = yield* startProjection(options)
  yield* answerLog(projection)
  return DeliveryLog.of(projection.log)
})
