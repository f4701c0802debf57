import type { StreamSurvey } from "../../../src/broker/survey-streams.ts"
import type { Present, Role } from "../../../src/cluster/roster.ts"
import type { PartitionSurvey, Survey } from "../../../src/delivery/introspection/survey.ts"
import type { EndpointsSurvey } from "../../../src/delivery/introspection/survey-endpoints.ts"

export const now = new Date("2026-06-03T10:32:00").getTime()
export const minute = 60_000

export const partition = (
  index: number,
  changes: Partial<PartitionSurvey> = {}
): PartitionSurvey => ({
  partition: index,
  owner: `worker-${index % 3}`,
  unownedSince: undefined,
  answer: {
    worker: `worker-${index % 3}`,
    since: now - 60 * minute,
    inFlight: 4,
    inLine: 3,
    prefetched: 12,
    attempts: 20_000,
    delivered: 19_900,
    durations: [0, 0, 0, 0, 0, 0, 0, 0, 18_000, 0, 0, 0, 0, 2_000]
  },
  new: 1_200,
  ackPending: 2_012,
  scheduled: 40_000,
  backlog: 120_000,
  backlogs: 15,
  ...changes
})

const everything: ReadonlyArray<Role> = ["router", "deliver"]
export const someone = (
  id: string,
  startedAt = now - 60 * minute,
  roles = everything
): Present => ({
  id,
  heartbeat: {
    v: 1,
    id,
    instance: "x",
    roles,
    host: "delivery-7.example",
    pid: 7,
    startedAt,
    partitions: []
  },
  partitions: [0, 1, 2, 3, 4, 5, 6, 7].filter((index) => id === `worker-${index % 3}`)
})

export const endpoints: EndpointsSurvey = {
  total: 100_000,
  closed: 99_000,
  open: 0,
  halfOpen: 3,
  paused: 7,
  suspended: 0,
  disabled: 990,
  unreadable: 0,
  lost: 0,
  longestOpen: []
}

export const busy: Survey = {
  at: now,
  version: "2.15.1",
  cluster: "petrels-eu-west",
  account: { bytes: 4 * 1024 ** 3, limit: 10 * 1024 ** 3 },
  streams: [],
  room: {
    events: {
      name: "PETREL_EVENTS",
      bytes: 2 * 1024 ** 3,
      limit: 5 * 1024 ** 3,
      oldestAt: now - 24 * 60 * minute,
      maxAge: 7 * 24 * 60 * minute
    },
    history: {
      name: "PETREL_HISTORY",
      bytes: 1024 ** 3,
      limit: 2.5 * 1024 ** 3,
      oldestAt: now - 12 * 24 * 60 * minute,
      maxAge: 30 * 24 * 60 * minute
    },
    queues: 20 * 1024 ** 2,
    backlogs: 500 * 1024 ** 2
  },
  events: {
    ...{ stored: 12_345_678, pending: 4, inRouter: 3, lost: 0, isRouterMissing: false },
    ...{ oldestUnroutedAt: now - 200, lastRoutedAt: now - 1 }
  },
  dead: { stored: 4_321, open: 1_234, lastHour: 0, bytes: 1, limit: 100 },
  alerts: [],
  sources: [],
  writeErrors: [],
  change: undefined,
  partitions: Array.from({ length: 8 }, (_, index) => partition(index)),
  workers: [someone("worker-0"), someone("worker-1"), someone("worker-2")],
  endpoints,
  oldest: { tenant: "acme", endpoint: "billing", place: "backlog", since: now - 125 * minute }
}

export const led = (changes: Partial<StreamSurvey>): StreamSurvey => ({
  name: "PETREL_EVENTS",
  state: "led",
  info: undefined,
  behind: [],
  ...changes
})
