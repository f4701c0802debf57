/* A projection in a process of its own, which tests kill. Prints its status as JSON lines. */
import { Effect } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import type { ProjectionOptions } from "../../src/projection/projection.ts"
import { startProjection } from "../../src/projection/projection.ts"
import { answerLog } from "../../src/projection/remote-log.ts"

const options: ProjectionOptions = JSON.parse(process.argv[2] ?? "{}")

await Effect.runPromise(
  Effect.gen(function* () {
    yield* answerLog(yield* startProjection(options))
    console.log("ready")
    return yield* Effect.never
  }).pipe(Effect.scoped, Effect.provide(connectTo(options.broker)))
)
