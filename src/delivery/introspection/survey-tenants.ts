import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"

/** Streams that are counted at once: each answer names all endpoints that have something there. */
const countedAtOnce = 4

/** Counts what waits in the backlogs of all partitions by tenant, in messages. */
export const countByTenant = Effect.fnUntraced(function* (partitions: ReadonlyArray<number>) {
  const { names, streamInfo } = yield* Broker
  const byTenant = new Map<string, number>()
  const countIn = Effect.fnUntraced(function* (index: number) {
    const stream = names.backlog(index)
    const { state } = yield* streamInfo(`count what waits in ${stream}`, stream, {
      subjects_filter: names.subjects.backlogOf(index)
    })
    for (const [subject, count] of Object.entries(state.subjects ?? {})) {
      const tenant = subject.split(".").at(-2) ?? ""
      byTenant.set(tenant, (byTenant.get(tenant) ?? 0) + count)
    }
  })
  yield* Effect.forEach(partitions, countIn, { concurrency: countedAtOnce, discard: true })
  return byTenant
})
