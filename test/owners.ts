import { Effect } from "effect"
import { Broker } from "../src/broker/connection.ts"
import { readValue } from "../src/broker/values.ts"

/** Endpoints of acme of which one lies in each of 8 partitions, by partition. */
export const eight = ["c", "h", "e", "b", "g", "d", "a", "f"]

/** What the lease of a partition says: its worker, and which process that is. */
export const lease = (partition = 0) =>
  Effect.gen(function* () {
    const { bucket, names } = yield* Broker
    const entry = yield* readValue(yield* bucket(names.buckets.workers), `owner.${partition}`)
    const value: { readonly worker?: string; readonly instance?: string } =
      entry === undefined ? {} : JSON.parse(entry.string())
    return value
  })

/** Who owns each of so many partitions. */
export const owners = (partitions: number) =>
  Effect.forEach(
    Array.from({ length: partitions }, (_, partition) => lease(partition)),
    Effect.map(({ worker }) => worker)
  )
