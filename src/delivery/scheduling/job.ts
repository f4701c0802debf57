import type { DirectDelivery } from "../../routing/partition-owner.ts"
import type { AckHandle } from "../source/ack-handle.ts"
import { leaveUntried } from "../source/direct-delivery.ts"

/**
 * A delivery in its endpoint's lane: from the queue, from the backlog, or directly from its event.
 */
export type Job =
  | { readonly key: string; readonly held: AckHandle; readonly isFromBacklog: boolean }
  | { readonly key: string; readonly direct: DirectDelivery }

export const deliveryOf = (job: Job) => ("direct" in job ? job.direct : job.held)

/** Where a delivery returns that was not begun. `key` is that of its endpoint. */
export interface Origins {
  readonly queue: (key: string, held: AckHandle) => void
  readonly backlog: (key: string, held: AckHandle) => void
}

/** Returns a job to its source. */
export const giveBackTo =
  ({ backlog, queue }: Origins) =>
  (job: Job): void => {
    if ("direct" in job) leaveUntried(job.direct)
    else if (job.isFromBacklog) backlog(job.key, job.held)
    else queue(job.key, job.held)
  }
