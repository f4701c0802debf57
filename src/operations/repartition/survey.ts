import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { scanQueue } from "../../broker/scan.ts"
import { deliverySubject } from "../../domain/delivery.ts"
import { home } from "./schedules.ts"

/** An endpoint with messages in a partition that is not its own. */
interface Stray {
  readonly kind: "queue" | "backlog"
  readonly subject: string
  readonly tenant: string
  readonly endpoint: string
  readonly to: number
  readonly messages: number
}

/** What one partition holds for others. */
interface Strays {
  readonly endpoints: ReadonlyArray<Stray>
  /** All schedules of the partition. Their endpoints are known only after reading them. */
  readonly schedules: number
}

/** Lists what a partition holds for others, as its leader knows it. */
export const listStrays = Effect.fnUntraced(function* (partition: number, partitions: number) {
  const { names, streamInfo } = yield* Broker
  const subjectsOf = (stream: string) =>
    streamInfo(`list what waits in ${stream}`, stream, { subjects_filter: ">" }).pipe(
      Effect.map(({ state }) => Object.entries(state.subjects ?? {}))
    )
  const later = names.subjects.schedulesOf(partition).slice(0, -1)
  const queue = yield* subjectsOf(names.deliveries(partition))
  const backlog = yield* subjectsOf(names.backlog(partition))
  const strays = (kind: Stray["kind"], subjects: typeof queue) =>
    subjects.flatMap(([subject, messages]): ReadonlyArray<Stray> => {
      const to = home(subject, partitions)
      if (to === partition || subject.startsWith(later)) return []
      const [tenant = "", endpoint = ""] = subject.split(".").slice(-2)
      return [{ kind, subject, tenant, endpoint, to, messages }]
    })
  return {
    endpoints: [...strays("queue", queue), ...strays("backlog", backlog)],
    schedules: queue
      .filter(([subject]) => subject.startsWith(later))
      .reduce((sum, [, messages]) => sum + messages, 0)
  } satisfies Strays
})

/** The number of messages that a change would move out of one partition. */
export interface MoveCount {
  readonly partition: number
  readonly queue: number
  readonly schedules: number
  readonly backlog: number
}

/** Counts what a change would move out of one partition. Moves nothing. */
export const survey = Effect.fnUntraced(function* (partition: number, partitions: number) {
  const { names } = yield* Broker
  const { endpoints, schedules } = yield* listStrays(partition, partitions)
  const count = (kind: Stray["kind"]) =>
    endpoints
      .filter((stray) => stray.kind === kind)
      .reduce((sum, { messages }) => sum + messages, 0)
  const all = scanQueue(names.deliveries(partition), names.subjects.schedulesOf(partition))
  return {
    partition,
    queue: count("queue"),
    schedules:
      schedules === 0
        ? 0
        : yield* all.pipe(
            Stream.filter((message) => home(deliverySubject(message), partitions) !== partition),
            Stream.runCount
          ),
    backlog: count("backlog")
  } satisfies MoveCount
})
