import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { backlogged, eventually, publishMany } from "./engine.ts"

const hook = { tenant: "acme", endpoint: "hook" }

/** Waits until the broker has sent all changes of endpoints to those that follow them. */
const followersKnow = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const followers = ask("look", () => jsm.consumers.list(`KV_${names.buckets.endpoints}`).next())
  yield* eventually(followers, (all) => {
    // A broker that was killed keeps the consumers of lost connections for a while.
    const bound = all.filter(
      ({ num_waiting, push_bound }) => push_bound === true || num_waiting > 0
    )
    return bound.length > 0 && bound.every(({ num_pending }) => num_pending === 0)
  })
})

/**
 * Publishes events of a type while `acme/hook` is paused, so that all of them go to its backlog,
 * then resumes it. A worker must be running, and the backlog must be empty before.
 */
export const throughBacklog = Effect.fnUntraced(function* (type: string, count: number) {
  yield* pauseEndpoint(hook, undefined, "test")
  yield* followersKnow
  yield* publishMany(count, type)
  yield* eventually(backlogged, (waiting) => waiting === count)
  yield* resumeEndpoint(hook, "test")
})
