import { Effect } from "effect"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { backlogged, eventually, publishMany } from "./engine.ts"

const hook = { tenant: "acme", endpoint: "hook" }

/**
 * Publishes events of a type while `acme/hook` is paused, so that all of them go to its backlog,
 * then resumes it. The backlog must be empty before.
 */
export const throughBacklog = Effect.fnUntraced(function* (type: string, count: number) {
  yield* pauseEndpoint(hook, undefined, "test")
  yield* publishMany(count, type)
  yield* eventually(backlogged, (waiting) => waiting === count)
  yield* resumeEndpoint(hook, "test")
})
