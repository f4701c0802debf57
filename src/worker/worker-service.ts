import { hostname } from "node:os"
import { Effect } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { Broker } from "../broker/broker.ts"
import { startMicroService } from "../broker/micro-service.ts"
import type { WorkerMetrics, WorkerTotals } from "../metrics/worker-metrics.ts"
import type { WorkerOptions } from "./node.ts"

/** What a worker tells of itself. */
interface WorkerFigures extends WorkerTotals {
  readonly worker: string
  /** Partitions that it delivers in. */
  readonly partitions: ReadonlyArray<number>
  /** What keeps it from its work; none if it is ready. */
  readonly problems: ReadonlyArray<string>
}

const nanosecondsPerSecond = 1_000_000_000

/**
 * Offers a worker's numbers as a NATS micro service, until the scope closes: `nats micro stats
 * petrel-worker` shows attempts as requests and failed ones as errors, and a request to its subject
 * gets all of them. A broker that does not permit it makes a warning, and the worker goes on.
 */
export const offerWorkerFigures = Effect.fnUntraced(function* (
  {
    partitions,
    problems
  }: { readonly [Figure in "partitions" | "problems"]: () => WorkerFigures[Figure] },
  { id, roles }: Pick<WorkerOptions, "id" | "roles">,
  metrics: WorkerMetrics
) {
  const { names } = yield* Broker
  const figures = (): WorkerFigures => ({
    worker: id,
    partitions: partitions(),
    problems: problems(),
    ...metrics.totals()
  })
  yield* startMicroService({
    name: `${names.subjects.root}-worker`,
    version: packageJson.version,
    description: "A worker of Petrel: its requests are the attempts that it made",
    metadata: { worker: id, host: hostname(), roles: roles.join(",") },
    endpoints: [
      {
        name: "attempts",
        subject: names.subjects.worker(id),
        metadata: { summary: "Tell the worker's numbers, as its statistics do" },
        answer: () =>
          Effect.sync(() => ({
            body: Buffer.from(JSON.stringify(figures()), "utf8"),
            headers: { "content-type": "application/json" }
          })),
        figures: () => {
          const data = figures()
          return {
            requests: data.attempts,
            errors: data.failures,
            nanoseconds: Math.round(data.attemptSeconds * nanosecondsPerSecond),
            data
          }
        }
      }
    ]
  })
})

/** What a worker knows of itself at a moment. */
interface WorkerState {
  readonly isConnected: boolean
  /** True while the others see its heartbeats. */
  readonly isKnown: boolean
  /** True while the history takes facts. */
  readonly isHistoryOpen: boolean
  /** What does not go on, one sentence each. */
  readonly waits: ReadonlyArray<string>
  /** Streams in which publishes time out and none is stored. */
  readonly unanswered: ReadonlyArray<string>
  /** Streams that it pulls from in vain. */
  readonly failedPulls: ReadonlyArray<string>
  /** True once it delivers in its partitions, or where it is not to. */
  readonly delivers: boolean
  readonly isStopping: boolean
  /** Partitions whose lease was not renewed in time. */
  readonly overdue: ReadonlyArray<number>
}

/** Returns what keeps a worker from its work, one sentence each; none if it is ready. */
export const problemsOf = (state: WorkerState): ReadonlyArray<string> => {
  if (state.isStopping) return ["the worker is stopping"]
  if (!state.isConnected) return ["the broker is not connected"]
  const { failedPulls, overdue, unanswered } = state
  return [
    ...(state.isKnown ? [] : ["the worker's heartbeats are not seen in the bucket of workers"]),
    ...(state.isHistoryOpen ? [] : ["the history takes no facts: nothing new is sent"]),
    ...state.waits,
    ...(failedPulls.length === 0
      ? []
      : [
          `the broker gives no messages of ${failedPulls.join(", ")}; \`petrel status\` says whether something is missing`
        ]),
    ...(unanswered.length === 0
      ? []
      : [`the broker acknowledges nothing that is to be stored in ${unanswered.join(", ")}`]),
    ...(overdue.length === 0
      ? []
      : [
          `the lease of ${overdue.length === 1 ? "partition" : "partitions"} ${overdue.join(", ")} was not renewed in time`
        ]),
    ...(state.delivers ? [] : ["the worker has not begun to deliver"])
  ]
}
