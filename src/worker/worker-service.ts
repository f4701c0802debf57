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
