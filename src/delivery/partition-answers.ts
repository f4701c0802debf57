import { Effect } from "effect"
import type { TaskActivity } from "../cluster/introspection.ts"
import type { RoundIdentity } from "../domain/delivery.ts"
import { roundKey } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import { timers } from "../time/timers.ts"
import { answerCommands } from "./commands/answer-commands.ts"
import { retryNow } from "./commands/retry-now.ts"
import { sendTest } from "./commands/send-test.ts"
import type { DeliveryTask } from "./execution/task.ts"
import { checkEndpoint } from "./http/connection-check.ts"
import type { AttemptTallies } from "./introspection/attempt-tallies.ts"
import { answerQueries } from "./introspection/introspection-answer.ts"
import type { PartitionOptions, PartitionServices } from "./partition-services.ts"
import type { LaneScheduler } from "./scheduling/lane-scheduler.ts"
import type { QueueSource } from "./source/queue-source.ts"

interface PartitionAnswersOptions {
  readonly options: PartitionOptions
  readonly services: PartitionServices
  readonly lanes: LaneScheduler<DeliveryTask>
  readonly queue: QueueSource
  readonly tallies: AttemptTallies
  /** True once the partition delivers. */
  readonly isReady: () => boolean
}

/** Returns what the round of a delivery is doing; undefined where it is not in memory. */
const taskIn = (
  lanes: LaneScheduler<DeliveryTask>,
  key: string,
  round: RoundIdentity
): TaskActivity | undefined => {
  const name = roundKey(round)
  const position = lanes.find(key, ({ handle }) => roundKey(handle.delivery) === name)
  if (position === undefined) return undefined
  return { mode: position.item.mode, forMs: Math.round(timers.monotonicMs() - position.since) }
}

/** Answers what is asked about a partition, and does what is wanted of it, until the scope closes. */
export const answerAbout = Effect.fnUntraced(function* (about: PartitionAnswersOptions) {
  const { isReady, lanes, queue, tallies } = about
  const { directory, health, index, queueSettlement } = about.services
  const { alerts, checkConnection, fence, memory, sender, worker, workerClock } = about.options
  yield* answerQueries({
    partition: memory.index,
    worker,
    holds: fence.holds,
    clock: sender.clock,
    clockSkewMs: workerClock.skewMs,
    activity: {
      ...{ tallies, lanes },
      prefetched: () => queue.size,
      unreadable: () => queue.unreadableCount + index.unreadableCount(),
      backlogs: index,
      alerts: alerts.windows,
      openCircuits: health.openCircuits,
      taskOf: (key, round) => taskIn(lanes, key, round)
    },
    checkConnection: (key) => checkEndpoint(checkConnection, directory.find(key))
  })
  yield* answerCommands({
    partition: memory.index,
    ...{ worker, holds: () => fence.holds() && isReady() },
    retryNow: (command, onProgress) =>
      retryNow(
        {
          memory,
          probeNow: health.probeNow,
          inBacklog: (key) => index.count(key),
          hurry: (key, handle, since) => queue.hurry(key, handle, since),
          isWaiting: (handle, since) => queue.isWaiting(handle, since),
          progressOf: (handle) =>
            Effect.map(queueSettlement.decisions.recall(handle), (found) =>
              found === undefined || found === "released"
                ? handle.delivery.progress
                : found.record.progress
            )
        },
        endpointKey(command.tenant, command.endpoint),
        command,
        onProgress
      ),
    sendTest: (command) => {
      const to = directory.find(endpointKey(command.tenant, command.endpoint))
      return to === undefined ? undefined : sendTest(sender, to, command)
    }
  })
})
