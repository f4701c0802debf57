import type { StreamSurvey } from "../../../src/broker/survey-streams.ts"
import type { Present, Role } from "../../../src/cluster/roster.ts"
import type { PartitionSurvey, Survey } from "../../../src/delivery/introspection/survey.ts"
import type { EndpointsSurvey } from "../../../src/delivery/introspection/survey-endpoints.ts"
import type { IncomingSurvey } from "../../../src/delivery/introspection/survey-incoming.ts"

export const now = new Date("2026-06-03T10:32:00").getTime()
export const minute = 60_000

export const partition = (
  index: number,
  changes: Partial<PartitionSurvey> = {}
): PartitionSurvey => ({
  partition: index,
  owner: `worker-${index % 3}`,
  answers: true,
  lastHour: {
    since: now - 60 * minute,
    attempts: 20_000,
    delivered: 19_900,
    durations: [0, 0, 0, 0, 0, 0, 0, 0, 18_000, 0, 0, 0, 0, 2_000]
  },
  new: 1_200,
  ackPending: 2_012,
  inFlight: 4,
  inLine: 3,
  retries: 2_000,
  scheduled: 40_000,
  backlog: 120_000,
  unreadable: null,
  endpointsWithBacklog: 15,
  ...changes
})

/** What is not known of a partition whose owner does not answer. */
export const silent: Partial<PartitionSurvey> = {
  ...{ answers: false, lastHour: undefined },
  ...{ inFlight: null, inLine: null, retries: null, unreadable: null }
}

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
  counts: {
    ...{ total: 100_000, closed: 99_000, open: 0, halfOpen: 3 },
    ...{ paused: 7, suspended: 0, disabled: 990, unreadable: 0 }
  },
  lost: 0,
  incomplete: 0,
  longestOpen: []
}

export const busy: Survey = {
  at: now,
  version: "2.15.1",
  cluster: "petrels-eu-west",
  account: { bytes: 4 * 1024 ** 3, limitBytes: 10 * 1024 ** 3 },
  streams: [],
  space: {
    events: {
      name: "PETREL_EVENTS",
      maxAge: 7 * 24 * 60 * minute,
      space: {
        ...{ bytes: 2 * 1024 ** 3, limitBytes: 5 * 1024 ** 3 },
        oldestAt: now - 24 * 60 * minute
      }
    },
    history: {
      name: "PETREL_HISTORY",
      maxAge: 30 * 24 * 60 * minute,
      space: {
        ...{ bytes: 1024 ** 3, limitBytes: 2.5 * 1024 ** 3 },
        oldestAt: now - 12 * 24 * 60 * minute
      }
    },
    queues: { bytes: 20 * 1024 ** 2, limitBytes: 1_260 * 1024 ** 2 },
    backlogs: { bytes: 500 * 1024 ** 2, limitBytes: 1_260 * 1024 ** 2 }
  },
  events: {
    counts: {
      ...{ stored: 12_345_678, waitingForRouter: 4, inRouter: 3, lost: 0 },
      oldestUnroutedAt: now - 200
    },
    ...{ isRouterMissing: false, lastRoutedAt: now - 1, restrictions: [] }
  },
  dead: {
    ...{ stored: 4_321, open: 1_234, lastHour: 0, bytes: 1, limitBytes: 100 },
    byTenant: null
  },
  alerts: [],
  sources: [],
  writeErrors: [],
  change: undefined,
  partitions: Array.from({ length: 8 }, (_, index) => partition(index)),
  workers: [someone("worker-0"), someone("worker-1"), someone("worker-2")],
  endpoints,
  oldest: { tenant: "acme", endpoint: "billing", place: "backlog", since: now - 125 * minute }
}

/** What comes in where two gateways run, one source refuses, and an outbox waits. */
export const comingIn: IncomingSurvey = {
  ...{ events: 12_000, bytes: 20 * 1024 ** 2, limitBytes: 200 * 1024 ** 2, notCopied: 5 },
  oldestAt: now - 3 * 24 * 60 * minute,
  quarantined: new Map([
    ["acme", 2],
    ["globex", 7]
  ]),
  gateways: ["one", "two"].map((gateway) => ({
    ...{ v: 1, gateway, host: "edge-1", startedAt: now - minute, at: now - 1_000, underWay: 3 },
    refusing: [{ tenant: "acme", source: "stripe", reason: "11 in a row", since: now - 2 * minute }]
  })),
  reconciled: [],
  outboxes: [
    {
      ...{ v: 1, name: "shop", at: now - 1_000, relay: "r", pending: 4, oldestMs: 9_000 },
      ...{ setAside: 1, problem: "the database is away", problemMs: 9_000 }
    }
  ]
}

export const led = (changes: Partial<StreamSurvey>): StreamSurvey => ({
  name: "PETREL_EVENTS",
  state: "led",
  info: undefined,
  behind: [],
  ...changes
})
