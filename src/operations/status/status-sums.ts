import { waitingRooms } from "../../broker/storage-limits.ts"
import type { PartitionSurvey, Survey } from "../../delivery/introspection/survey.ts"
import { quantile } from "../../policy/durations.ts"
import { addCounts } from "../../policy/tally.ts"

const sum = (numbers: ReadonlyArray<number | undefined>): number =>
  numbers.reduce<number>((all, number) => all + (number ?? 0), 0)

/**
 * Returns how many of a partition's unacknowledged messages wait for a retry; undefined if its
 * owner does not answer.
 */
export const retriesIn = ({ ackPending, answer }: PartitionSurvey): number | undefined =>
  answer === undefined || ackPending === undefined
    ? undefined
    : Math.max(0, ackPending - answer.prefetched)

/** Returns the number of waiting messages that no owner can read; undefined if no owner answers. */
const unreadableIn = (partitions: Survey["partitions"]): number | undefined => {
  const counts = partitions.map(({ answer }) => answer?.unreadable)
  return counts.every((count) => count === undefined) ? undefined : sum(counts)
}

/**
 * Returns the waiting deliveries by place. Values that only owners know cover the partitions that
 * answer.
 */
export const waitingSums = ({ partitions }: Survey) => {
  const answers = partitions.flatMap(({ answer }) => (answer === undefined ? [] : [answer]))
  const fresh = sum(partitions.map((partition) => partition.new))
  const ackPending = sum(partitions.map((partition) => partition.ackPending))
  const scheduled = sum(partitions.map((partition) => partition.scheduled))
  const backlog = sum(partitions.map((partition) => partition.backlog))
  return {
    all: fresh + ackPending + scheduled + backlog,
    fresh,
    ackPending,
    scheduled,
    backlog,
    /** Endpoints with deliveries in their backlog. */
    backlogs: sum(partitions.map((partition) => partition.backlogs)),
    answering: answers.length,
    inFlight: sum(answers.map(({ inFlight }) => inFlight)),
    inLine: sum(answers.map(({ inLine }) => inLine)),
    retries: sum(partitions.map(retriesIn)),
    unreadable: unreadableIn(partitions)
  }
}

/** Returns the attempts of the last hour in the partitions that answer; undefined if none does. */
export const lastHourOf = ({ partitions }: Survey) => {
  const answers = partitions.flatMap(({ answer }) => (answer === undefined ? [] : [answer]))
  if (answers.length === 0) return undefined
  const { attempts, delivered, durations } = addCounts(answers)
  return {
    /** The start of the shortest count: that partition had another owner before. */
    since: Math.max(...answers.map(({ since }) => since)),
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

/** Returns what queues and backlogs may take, bytes. Undefined is unknown or unlimited. */
export const waitingLimits = ({ dead, room: { events, history } }: Survey) =>
  waitingRooms({
    eventBytes: events.limit ?? -1,
    historyBytes: history.limit ?? -1,
    deadBytes: dead.limit ?? -1
  })
