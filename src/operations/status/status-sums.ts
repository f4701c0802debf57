import type { Survey } from "../../delivery/introspection/survey.ts"
import { quantile } from "../../policy/durations.ts"
import { addCounts } from "../../policy/tally.ts"

const sum = (numbers: ReadonlyArray<number | null | undefined>): number =>
  numbers.reduce<number>((all, number) => all + (number ?? 0), 0)

/**
 * Returns the waiting deliveries by place. Values that only owners know cover the partitions that
 * answer, and are null where none does.
 */
export const waitingIn = ({ partitions }: Survey) => {
  const partitionsAnswering = partitions.filter(({ answers }) => answers).length
  const ifAnswered = (counts: ReadonlyArray<number | null>) =>
    partitionsAnswering === 0 ? null : sum(counts)
  const stored = {
    new: sum(partitions.map((partition) => partition.new)),
    ackPending: sum(partitions.map(({ ackPending }) => ackPending)),
    scheduled: sum(partitions.map(({ scheduled }) => scheduled)),
    backlog: sum(partitions.map(({ backlog }) => backlog))
  }
  // An owner of an older version does not count them.
  const unreadable = partitions.flatMap((partition) => partition.unreadable ?? [])
  return {
    waiting: sum(Object.values(stored)),
    ...stored,
    inFlight: ifAnswered(partitions.map(({ inFlight }) => inFlight)),
    inLine: ifAnswered(partitions.map(({ inLine }) => inLine)),
    retries: ifAnswered(partitions.map(({ retries }) => retries)),
    unreadable: unreadable.length === 0 ? null : sum(unreadable),
    partitionsAnswering
  }
}

/** Returns the number of endpoints with deliveries in their backlog; null if one partition's is not known. */
export const endpointsWithBacklog = ({ partitions }: Survey): number | null =>
  partitions.some((partition) => partition.endpointsWithBacklog === null)
    ? null
    : sum(partitions.map((partition) => partition.endpointsWithBacklog))

/** Returns the attempts of the last hour in the partitions that answer; undefined if none does. */
export const lastHourOf = ({ partitions }: Survey) => {
  const counted = partitions.flatMap(({ lastHour }) => lastHour ?? [])
  if (counted.length === 0) return undefined
  const { attempts, delivered, durations } = addCounts(counted)
  return {
    /** The start of the shortest count: that partition had another owner before. */
    since: Math.max(...counted.map(({ since }) => since)),
    attempts,
    delivered,
    p50: quantile(durations, 0.5),
    p95: quantile(durations, 0.95)
  }
}

/** Returns the bytes of all streams. Replicas are not counted. */
export const storedBytes = ({ streams }: Survey): number =>
  sum(streams.map(({ info }) => info?.state.bytes))

/** Returns the number of replicas of each stream. */
export const copiesOf = ({ streams }: Survey): number =>
  Math.max(1, ...streams.map(({ info }) => info?.config.num_replicas ?? 1))
