import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"

/** Ends the leases of consoles that were killed, instead of waiting until they expire. */
export const endJobLeases = Effect.gen(function* () {
  const { ask, bucket, names } = yield* natsClients
  const jobs = yield* bucket(names.buckets.jobs)
  yield* ask("end the leases", async () => {
    for await (const key of await jobs.keys("lease.>")) await jobs.purge(key)
  })
})
