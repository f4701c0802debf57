import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { readValue } from "../../src/broker/values.ts"

/** Endpoints of acme, one in each of 8 partitions, in the order of partitions. */
export const eight = ["c", "h", "e", "b", "g", "d", "a", "f"]

/** Reads the lease of a partition: its worker, and the id of the process. */
export const lease = (partition = 0) =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const entry = yield* readValue(names.buckets.workers, `owner.${partition}`)
    const value: { readonly worker?: string; readonly instance?: string } =
      entry === undefined ? {} : JSON.parse(entry.string())
    return value
  })

/** Returns the owners of all partitions. */
export const owners = (partitions: number) =>
  Effect.forEach(
    Array.from({ length: partitions }, (_, partition) => lease(partition)),
    Effect.map(({ worker }) => worker)
  )
