import { Effect, Option } from "effect"
import type { Family, Labels, NumberFamily } from "../../metrics/family.ts"
import { counter, gauge } from "../../metrics/family.ts"
import type { SumsFill } from "../../projection/delivery-log.ts"
import { listRaisedAlerts, type RaisedAlertView } from "../alerts/alerts.ts"
import { type LastAudit, readLastAudit } from "../audit/run-audit.ts"
import { JobCounter, type JobCounts } from "../jobs/job-queue.ts"
import type { Status } from "./status-report.ts"
import { readStatus } from "./status-report.ts"

/** What the numbers of an installation are made of. */
interface SystemState {
  readonly status: Status
  readonly alerts: ReadonlyArray<RaisedAlertView>
  /** Absent if none was run. */
  readonly audit?: LastAudit | undefined
  /** Absent where no projection runs. */
  readonly projection?: ProjectionState | undefined
  /** Absent where no jobs are worked on. */
  readonly jobs?: JobCounts | undefined
}

/** What only a projection of the history knows. */
interface ProjectionState {
  /** How long ago the last fact that it has read was stored, where it has not read all; ms. */
  readonly lagMs: number
  /** Attempts that repeat one that was recorded. */
  readonly repeatedAttempts: number
  /** How full the sums of hours are. */
  readonly sums: SumsFill
}

const gauges = (
  name: string,
  help: string,
  values: ReadonlyArray<readonly [labels: Labels, value: number | null]>,
  unit?: "By"
): NumberFamily => ({
  ...{ name, help, unit, type: "gauge" },
  samples: values.flatMap(([labels, value]) => (value === null ? [] : [{ labels, value }]))
})

/** A gauge, or nothing where its value is not known. */
const known = (
  name: string,
  help: string,
  value: number | null,
  unit?: "s" | "By"
): ReadonlyArray<Family> => (value === null ? [] : [gauge(name, help, value, unit)])

/** Each waiting delivery is in one place. */
const waitingIn = ({ deliveries }: Status): NumberFamily => {
  const { backlog, ackPending, new: fresh, retries, scheduled } = deliveries
  const owned = ackPending === null ? null : ackPending - (retries ?? 0)
  return gauges("petrel.waiting.deliveries", "Deliveries that have not ended, by place.", [
    [{ place: "queue" }, fresh],
    [{ place: "owner" }, owned],
    [{ place: "retry" }, retries],
    [{ place: "schedule" }, scheduled],
    [{ place: "backlog" }, backlog]
  ])
}

const endpointsIn = ({ endpoints }: Status): ReadonlyArray<Family> => {
  if (endpoints === null) return []
  const { closed, disabled, halfOpen, open, paused, suspended, unreadable } = endpoints
  const states = { closed, open, "half-open": halfOpen, paused, suspended, disabled, unreadable }
  return [
    gauges(
      "petrel.endpoints",
      "Endpoints by state; one that is held back counts in no state of its circuit.",
      Object.entries(states).map(([state, count]) => [{ state }, count])
    )
  ]
}

const deadLettersIn = ({ deadLetters }: Status): ReadonlyArray<Family> => {
  const { bytes, limitBytes, open, stored } = deadLetters
  return [
    ...known("petrel.dead_letters", "Dead letters that are kept.", stored),
    ...known("petrel.dead_letters.open", "Those that nobody has taken care of.", open),
    ...known("petrel.dead_letters", "Size of the dead letters.", bytes, "By"),
    ...known("petrel.dead_letters.limit", "Size at which no more are taken.", limitBytes, "By")
  ]
}

const countsBy = (names: ReadonlyArray<string>): ReadonlyMap<string, number> =>
  new Map([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]))

const conditionsIn = ({ status, alerts }: SystemState): ReadonlyArray<Family> => [
  // A zero without label: the metric is there also when all is well.
  gauges("petrel.problems", "What stops until an operator acts, by code.", [
    [{ code: "" }, 0],
    ...[...countsBy(status.problems.map(({ code }) => code))].map(
      ([code, count]) => [{ code }, count] as const
    )
  ]),
  gauges("petrel.alerts.raised", "Alerts that are raised, by name.", [
    [{ name: "" }, 0],
    ...[...countsBy(alerts.map(({ name }) => name))].map(
      ([name, count]) => [{ name }, count] as const
    )
  ])
]

const auditIn = (audit: LastAudit | undefined): ReadonlyArray<Family> =>
  audit === undefined
    ? []
    : [
        gauge("petrel.audit.problems", "Problems that the last audit found.", audit.problems),
        gauge(
          "petrel.audit.last_run_timestamp",
          "When the last audit ended, since the epoch.",
          audit.at / 1_000,
          "s"
        )
      ]

const projectionIn = (projection: ProjectionState | undefined): ReadonlyArray<Family> =>
  projection === undefined
    ? []
    : [
        gauge(
          "petrel.projection.lag",
          "Age of the oldest fact that the projection has not read.",
          projection.lagMs / 1_000,
          "s"
        ),
        counter(
          "petrel.repeated.attempts",
          "Attempts that repeat a recorded one: the receiver got it twice.",
          projection.repeatedAttempts
        ),
        gauges("petrel.projection.sums", "Rows of the sums of hours, and how many there may be.", [
          [{ what: "stored" }, projection.sums.rows],
          [{ what: "limit" }, projection.sums.maxRows]
        ]),
        counter(
          "petrel.projection.sums_together",
          "Times that an endpoint or type was summed up with others: its tenant had too many in an hour.",
          projection.sums.together
        )
      ]

const jobsIn = (jobs: JobCounts | undefined): ReadonlyArray<Family> =>
  jobs === undefined
    ? []
    : [
        gauges("petrel.jobs", "Redeliveries, replays and audits that have not ended, by state.", [
          [{ state: "waiting" }, jobs.waiting],
          [{ state: "running" }, jobs.running]
        ])
      ]

/** What comes in; what a gateway and a relay count themselves is theirs. */
const incomingIn = ({ incoming }: Status): ReadonlyArray<Family> => {
  if (incoming === null) return []
  const { gateways, notCopied, outboxes, quarantined } = incoming
  const ofOutboxes = (value: (one: (typeof outboxes)[number]) => number) =>
    outboxes.map((one) => [{ outbox: one.name }, value(one)] as const)
  return [
    ...known(
      "petrel.intake.pending",
      "Messages that came in and have not become events yet.",
      notCopied
    ),
    gauge("petrel.quarantined.requests", "Requests in quarantine.", quarantined),
    gauge("petrel.gateways", "Gateways that run.", gateways.length),
    gauges(
      "petrel.outboxes.pending_rows",
      "Rows that wait to be published, as the relay last reported.",
      ofOutboxes(({ pending }) => pending)
    ),
    gauges(
      "petrel.outboxes.set_aside_rows",
      "Rows that can never be published as they are.",
      ofOutboxes(({ setAside }) => setAside)
    ),
    gauges(
      "petrel.outboxes.silent",
      "1 for an outbox whose relay has been silent for 30 s.",
      ofOutboxes(({ isSilent }) => (isSilent ? 1 : 0))
    )
  ]
}

/** Returns the numbers of an installation. What is not known has no sample. */
export const systemFamilies = (state: SystemState): ReadonlyArray<Family> => {
  const { at, events, oldestWaiting, partitions, room, workers } = state.status
  const unowned = partitions.filter(({ owner }) => owner === null).length
  const silent = partitions.filter(({ answers, owner }) => owner !== null && !answers).length
  return [
    waitingIn(state.status),
    gauge(
      "petrel.oldest.waiting",
      "How long the delivery that waits longest has waited.",
      oldestWaiting === null ? 0 : Math.max(0, at - oldestWaiting.since) / 1_000,
      "s"
    ),
    ...known(
      "petrel.router.pending_events",
      "Events that no router has taken.",
      events.waitingForRouter
    ),
    ...deadLettersIn(state.status),
    ...endpointsIn(state.status),
    ...known("petrel.workers", "Workers that live.", workers?.length ?? null),
    gauges("petrel.partitions", "Partitions by whether a worker delivers in them.", [
      [{ state: "owned" }, partitions.length - unowned - silent],
      [{ state: "silent" }, silent],
      [{ state: "unowned" }, unowned]
    ]),
    gauges(
      "petrel.stream",
      "Size of the streams.",
      [
        [{ stream: "events" }, room.events.bytes],
        [{ stream: "history" }, room.history.bytes],
        [{ stream: "queues" }, room.queues.bytes],
        [{ stream: "backlogs" }, room.backlogs.bytes],
        [{ stream: "intake" }, state.status.incoming?.bytes ?? null]
      ],
      "By"
    ),
    ...incomingIn(state.status),
    ...conditionsIn(state),
    ...auditIn(state.audit),
    ...projectionIn(state.projection),
    ...jobsIn(state.jobs)
  ]
}

/**
 * Reads the numbers of an installation, for `/metrics` of a console. One survey asks all owners and
 * counts dead letters: who serves it keeps the result for some seconds.
 *
 * @param projection what the projection knows, where one runs.
 */
export const readSystemFamilies = Effect.fnUntraced(function* (projection?: ProjectionState) {
  const [status, alerts, audit] = yield* Effect.all(
    [readStatus, listRaisedAlerts(), readLastAudit],
    { concurrency: "unbounded" }
  )
  const counter = yield* Effect.serviceOption(JobCounter)
  const jobs = Option.getOrUndefined(counter)?.()
  return systemFamilies({ status, alerts, audit, projection, jobs })
})
